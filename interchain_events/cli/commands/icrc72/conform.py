"""`pubsub icrc72 conform`: tests a foreign canister in one role and says which rules hold."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import cast

from interchain_events.cli.commands.icrc72.modules import canister_of, read_module
from interchain_events.icrc72.conformance.members import try_publisher, try_subscriber
from interchain_events.icrc72.conformance.probes import Verdict
from interchain_events.icrc72.conformance.remote import visit
from interchain_events.icrc72.conformance.servers import try_broadcaster, try_orchestrator
from interchain_events.icrc72.conformance.trial import Candidate, Trial
from interchain_events.icrc72.errors import Icrc72Error
from interchain_events.icrc72.ic.candid.did import parse_types
from interchain_events.icrc72.ic.canister import Answer
from interchain_events.icrc72.ic.errors import CandidError
from interchain_events.icrc72.ic.network import CanisterNetwork
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.ic.wasm.canister import NOTHING
from interchain_events.icrc72.services import Codec
from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.screen import say
from pubsub_emulator.files.atomic import write_whole

_SHOWN = 3  # breaches of one rule on the screen; the document has all
_TRIALS: dict[str, Callable[[Candidate, bytes, int], Trial]] = {
    "subscriber": try_subscriber,
    "publisher": try_publisher,
    "broadcaster": try_broadcaster,
    "orchestrator": try_orchestrator,
}
_IDS = Codec(parse_types("(vec nat)"))
_NUMBER = Codec(parse_types("(nat)"))


def conform(
    role: str,
    place: Path,
    *,
    publish: str | None,
    handled: str | None,
    bare: bool,
    seed: str,
    refuse: int,
    trace: Path | None,
) -> Result:
    """Try a module in a role; exit code 1 where a rule is broken."""
    wasm = read_module(place)

    def say_publish(network: CanisterNetwork, who: Principal, number: int) -> None:
        network.submit(ANONYMOUS, who, publish or "", _NUMBER.encode(number))

    def say_handled(network: CanisterNetwork, who: Principal) -> list[int]:
        return _ids(
            str(place), handled or "", network.query(ANONYMOUS, who, handled or "", NOTHING)
        )

    if role == "publisher" and publish is None:
        raise Icrc72Error("--publisher needs --publish: the update, of a nat, that makes an event")
    made = partial(canister_of, wasm, bare=bare)
    candidate = Candidate(made, say_publish if publish else None, say_handled if handled else None)
    trial = _TRIALS[role](candidate, seed.encode(), refuse)
    if trace is not None:
        write_whole(trace, _trace(trial))
    end = f"; the trace is in {trace}" if trace else ""
    return _told(role, trial.book.verdicts, "not met", {"rounds": trial.network.round}, end=end)


def conform_url(
    url: str,
    role: str,
    canister: str,
    *,
    proxy: str | None,
    handled: str | None,
    namespace: str | None,
) -> Result:
    """Try a canister of a replica in a role; exit code 1 where a rule is broken."""
    from interchain_events.icrc72.port.agent import Agent

    who = Principal.from_text(canister)
    agent = Agent(url, who, None if proxy is None else Principal.from_text(proxy))
    other = Agent(url, who) if proxy is None else None

    def ids() -> list[int]:
        return _ids(canister, handled or "", agent.query(handled or "", NOTHING))

    verdicts, note = visit(role, agent, other, namespace, ids if handled else None)
    note += "; --proxy sends calls through a canister" if note and not proxy else ""
    return _told(role, verdicts, "not testable here", {"url": url, "canister": canister}, note=note)


def _ids(place: str, method: str, answer: Answer) -> list[int]:
    if not answer.ok:
        raise Icrc72Error(f"{place}: the query {method} fails: {answer.message}")
    try:
        return list(cast("tuple[int, ...]", _IDS.decode(answer.data)[0]))
    except CandidError as error:
        raise Icrc72Error(f"{place}: {method} does not answer `vec nat`: {error}") from error


def _told(
    role: str,
    verdicts: Sequence[Verdict],
    unmet: str,
    about: dict[str, object],
    *,
    note: str = "",
    end: str = "",
) -> Result:
    """Say what holds; `unmet` is the word for a rule that was not met, `end` ends the last line."""
    width = max(len(unmet), 8)
    for each in verdicts:
        word = "broken" if each.broken else "holds" if each.shown else unmet
        say(f"{word:<{width}} {each.rule:<18} {each.about}")
        for words in each.broken[:_SHOWN]:
            say(f"{'':<{width}} {words}")
        if len(each.broken) > _SHOWN:
            say(f"{'':<{width}} and {len(each.broken) - _SHOWN} more")
    if note:
        say(note)
    broken = [each.rule for each in verdicts if each.broken]
    met = sum(each.shown > 0 or not each.holds for each in verdicts)
    say("", f"{role}: {met - len(broken)} of {met} rules hold{end}")
    rules = [
        {**each._asdict(), "holds": each.holds if each.shown or each.broken else None}
        for each in verdicts
    ]
    return Result({"role": role, **about, "rules": rules}, 1 if broken else 0)


def _trace(trial: Trial) -> str:
    """Return a line per event: round, kind, call number, sender, receiver, method, bytes."""
    names = {trial.who: "candidate", trial.system.orchestrator: "orchestrator"}
    names |= {
        each: f"broadcaster{at}"
        for at, each in enumerate(trial.system.broadcasters)
        if each not in names
    }
    lines = []
    for each in trial.recorder.happenings:
        sender = names.get(each.sender, each.sender.text) or "system"
        receiver = names.get(each.receiver, each.receiver.text)
        if each.kind == "trap":
            data = each.data.decode(errors="backslashreplace")
        else:
            data = each.data.hex() or "-"
        lines.append(
            f"{each.round} {each.kind} {each.number} {sender} {receiver} {each.method or '-'}"
            f" {data}\n"
        )
    return "".join(lines)

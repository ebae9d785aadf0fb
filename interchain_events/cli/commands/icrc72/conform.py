"""`pubsub icrc72 conform`: tests a foreign canister in one role and says which rules hold."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from interchain_events.icrc72.conformance.candidates import candidate_of, ids_of
from interchain_events.icrc72.conformance.probes import Verdict
from interchain_events.icrc72.conformance.publishers import try_publisher
from interchain_events.icrc72.conformance.remote import visit
from interchain_events.icrc72.conformance.rules import EXTENSION, LEVELS, REQUIRED, rules_of
from interchain_events.icrc72.conformance.servers import try_broadcaster, try_orchestrator
from interchain_events.icrc72.conformance.subscribers import try_subscriber
from interchain_events.icrc72.conformance.traces import trace_text
from interchain_events.icrc72.conformance.trial import Trial
from interchain_events.icrc72.errors import Icrc72Error
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.ic.wasm.canister import NOTHING
from interchain_events.icrc72.modules import canister_of, read_module
from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.screen import say
from pubsub_emulator.files.atomic import write_whole

_SHOWN = 3  # breaches of one rule on the screen; the document has all
_TRIALS: dict[str, Callable[..., Trial]] = {
    "subscriber": try_subscriber,
    "publisher": try_publisher,
    "broadcaster": try_broadcaster,
    "orchestrator": try_orchestrator,
}


def conform(
    role: str,
    place: Path,
    *,
    publish: str | None,
    handled: str | None,
    register: str | None,
    bare: bool,
    seed: str,
    refuse: int,
    trace: Path | None,
    with_: tuple[str, ...],
    level: str,
) -> Result:
    """Test a module in a role, and print the verdicts.

    The exit code is 1 if a required rule is broken. Raises `Icrc72Error`.
    """
    wasm = read_module(place)
    if role == "publisher" and publish is None:
        raise Icrc72Error("--publisher needs --publish: the update with a nat that makes an event")
    made = partial(canister_of, wasm, bare=bare)
    candidate = candidate_of(str(place), made, publish, handled, register)
    trial = _TRIALS[role](candidate, seed.encode(), refuse, with_=with_)
    if trace is not None:
        write_whole(trace, trace_text(trial))
    end = f"; the trace is in {trace}" if trace else ""
    about = {"rounds": trial.network.round}
    return _result(role, trial.book.verdicts, "not met", about, with_=with_, level=level, end=end)


def conform_url(
    url: str,
    role: str,
    canister: str,
    *,
    proxy: str | None,
    handled: str | None,
    namespace: str | None,
    with_: tuple[str, ...],
    level: str,
) -> Result:
    """Test a canister of a replica in a role, and print the verdicts.

    The exit code is 1 if a required rule is broken.
    """
    from interchain_events.icrc72.port.agent import Agent

    principal = Principal.from_text(canister)
    agent = Agent(url, principal, None if proxy is None else Principal.from_text(proxy))
    other = Agent(url, principal) if proxy is None else None

    def ids() -> list[int]:
        return ids_of(canister, handled or "", agent.query(handled or "", NOTHING))

    handled_ids = ids if handled else None
    verdicts, note = visit(role, agent, other, namespace, handled_ids, with_=with_)
    note += "; --proxy sends calls through a canister" if note and not proxy else ""
    about = {"url": url, "canister": canister}
    return _result(role, verdicts, "not testable here", about, with_=with_, level=level, note=note)


def _result(
    role: str,
    verdicts: Sequence[Verdict],
    unmet: str,
    about: Mapping[str, object],
    *,
    with_: tuple[str, ...],
    level: str,
    note: str = "",
    end: str = "",
) -> Result:
    """Print the verdicts, and return them with the exit code.

    `unmet` is the word for a rule that was not tested. `about` are further fields of the JSON
    document. Rules of `level` and of more binding levels are printed. `end` is the end of the last
    line.
    """
    known = rules_of(role, with_)
    printed = LEVELS[: LEVELS.index(level) + 1]
    width = max(len(unmet), len("broken"))
    for verdict in verdicts:
        if verdict.level not in printed:
            continue
        word = _word(verdict, unmet)
        say(f"{word:<{width}}  {verdict.level:<11}  {verdict.rule:<19} {verdict.about}")
        if not verdict.broken:
            continue
        blank = " " * (width + 2)
        for words in verdict.broken[:_SHOWN]:
            say(f"{blank}{words}")
        if len(verdict.broken) > _SHOWN:
            say(f"{blank}and {len(verdict.broken) - _SHOWN} more")
        if verdict.cause:
            say(f"{blank}This follows from {verdict.cause}.")
        else:
            say(f"{blank}{known[verdict.rule].place}: {known[verdict.rule].text}")
    if note:
        say(note)
    say("")
    say(f"{role}: {'; '.join(_count(verdicts, shown) for shown in printed)}{end}")
    rules = [
        {
            **verdict._asdict(),
            "holds": verdict.holds if verdict.shown or verdict.broken else None,
            "place": known[verdict.rule].place,
            "text": known[verdict.rule].text,
        }
        for verdict in verdicts
    ]
    broken = any(verdict.broken and verdict.level == REQUIRED for verdict in verdicts)
    return Result({"role": role, **about, "rules": rules}, 1 if broken else 0)


def _word(verdict: Verdict, unmet: str) -> str:
    """Return the verdict in a word. Only a required rule can be "broken"."""
    if verdict.broken:
        return "broken" if verdict.level == REQUIRED else "lacks"
    return "holds" if verdict.shown else unmet


def _count(verdicts: Sequence[Verdict], level: str) -> str:
    """Return, as text, how many of the tested rules of a level hold."""
    tested = [
        verdict
        for verdict in verdicts
        if verdict.level == level and (verdict.shown or verdict.broken)
    ]
    names = {REQUIRED: "required rules", EXTENSION: "rules of extensions"}
    held = sum(verdict.holds for verdict in tested)
    words = f"{held} of {len(tested)} {names.get(level, level)}"
    return f"{words} hold" if level == REQUIRED else words

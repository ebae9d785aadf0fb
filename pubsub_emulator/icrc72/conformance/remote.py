"""Trials of canisters that run elsewhere: what whoever may call them, and nothing else, can judge."""

import secrets
import time
from collections.abc import Callable
from typing import Protocol

from pubsub_emulator.icrc72 import messages as m
from pubsub_emulator.icrc72 import methods
from pubsub_emulator.icrc72.conformance.probes import (
    GARBAGE,
    STATS,
    Book,
    Line,
    Probes,
    Verdict,
    fake,
    fake_alert,
    identified,
)
from pubsub_emulator.icrc72.ic.errors import NotAdmitted
from pubsub_emulator.icrc72.ic.principal import ANONYMOUS, Principal
from pubsub_emulator.icrc72.keys import REPLAY
from pubsub_emulator.icrc72.methods import CONFIRM, HANDLE
from pubsub_emulator.icrc72.values import boolean

Handled = Callable[[], list[int]] | None


class RemoteLine(Line, Protocol):
    """A line to a canister that runs elsewhere."""

    calls: int
    """How many there were."""

    @property
    def canister(self) -> Principal:
        """Who is called."""

    def heard(self) -> list[str] | None:
        """The methods of the caller that the canister has called; `None` where that cannot be seen."""


def visit(
    role: str, line: RemoteLine, other: Line | None = None, namespace: str | None = None, handled: Handled = None
) -> tuple[list[Verdict], str]:
    """A verdict on each rule of the role, and why calls came to nothing if they did.

    `shown` is 0 for rules that cannot be judged from outside. `other` is another caller, who publishes where nobody
    does. `namespace` is one to which a subscriber subscribes, `handled` gives the ids of the events that it handled.
    """
    probes = Probes(Book(role), line)
    prefix, note = f"trial.{secrets.token_hex(4)}", ""
    if role in STATS:
        probes.stats(role)
    try:
        if role == "orchestrator":
            _orchestrator(probes, other, prefix)
        elif role == "broadcaster":
            probes.publishing(ANONYMOUS, prefix, time.time_ns())
        else:
            _member(role, probes, line, namespace, handled)
        probes.book.judge("IC-4", line.calls, probes.traps)
    except NotAdmitted as error:
        note = str(error)
        if role == "orchestrator" and not probes.book.verdicts:
            probes.listing(None, ())
    verdicts = probes.book.verdicts
    judged = {each.rule for each in verdicts}
    rest = {rule: words for rule, words in probes.book.rules.items() if rule not in judged}
    return [*verdicts, *(Verdict(rule, words, 0, ()) for rule, words in rest.items())], note


def _orchestrator(probes: Probes, other: Line | None, prefix: str) -> None:
    known = probes.query(methods.GET_PUBLICATIONS, m.ByText()) or ()
    others = [each for each in known if not each.namespace.startswith("trial.")]
    free = [each for each in others if not any("pricing" in key for key, _ in each.config)]
    replays = [each.namespace for each in free if any(key == REPLAY for key, _ in each.config)]
    probes.registering(prefix)
    valid = probes.update(methods.GET_VALID, None)
    probes.listing(f"{prefix}.new", valid.value if valid is not None and valid.tag == "list" else ())
    name = replays[0] if replays else f"{prefix}.other"
    theirs = None if replays or other is None else Probes(probes.book, other)
    if theirs is not None:
        item = m.PublicationRegistration(name, ((REPLAY, boolean(True)),))
        theirs.update(methods.REGISTER_PUBLICATION, (item,))
    if replays or theirs is not None:
        probes.intruding(name)
        probes.replaying(name, prefix, None, waits=20 if replays else 1)
    for each, ours in ((probes, f"{prefix}.new"), (theirs, name)):
        if each is not None:
            each.update(methods.DELETE_PUBLICATION, (m.PublicationDelete(identified(ours)),))
    for mine in (f"{prefix}.twice", name):
        probes.update(methods.DELETE_SUBSCRIPTION, (m.SubscriptionDelete(identified(mine)),))


def _member(role: str, probes: Probes, line: RemoteLine, namespace: str | None, handled: Handled) -> None:
    before = line.heard()
    marks = [time.time_ns() + at for at in range(4)]
    for number in marks:
        event = fake(number, namespace or "trial.events", ANONYMOUS)
        alert = fake_alert(line.canister, ANONYMOUS, [1], line.caller)
        probes.update(HANDLE, (event if role == "subscriber" else alert,))
    line.call(HANDLE.name, GARBAGE)
    line.wait()
    after = line.heard()
    if before is not None and after is not None:
        confirmed = after.count(CONFIRM.name) - before.count(CONFIRM.name)
        probes.book.judge("IC-49b strangers", len(marks), ["it confirmed to its caller"] * confirmed)
    if handled is not None and namespace is not None:
        strange = sorted(set(marks) & set(handled()))
        probes.book.must("IC-49b events", not strange, f"{strange}", len(marks))

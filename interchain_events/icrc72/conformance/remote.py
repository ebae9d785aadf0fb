"""Tests of remote canisters, using only calls that anyone can make."""

import secrets
import time
from collections.abc import Callable
from typing import Protocol

from interchain_events.icrc72 import messages as m
from interchain_events.icrc72 import methods
from interchain_events.icrc72.conformance.probes import (
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
from interchain_events.icrc72.conformance.wording import ranges
from interchain_events.icrc72.ic.errors import NotAdmitted
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.keys import REPLAY
from interchain_events.icrc72.methods import CONFIRM, HANDLE
from interchain_events.icrc72.values import boolean

Handled = Callable[[], list[int]] | None
"""Returns the ids of the events that a subscriber has handled; `None` if this cannot be seen."""


class RemoteLine(Line, Protocol):
    """A connection to a remote canister."""

    calls: int
    """How many calls were made."""

    @property
    def canister(self) -> Principal:
        """The canister that is called."""

    def heard(self) -> list[str] | None:
        """Return the methods that the canister has called at the caller.

        Returns `None` if this cannot be seen.
        """


def visit(
    role: str,
    line: RemoteLine,
    other: Line | None = None,
    namespace: str | None = None,
    handled: Handled = None,
    *,
    with_: tuple[str, ...] = (),
) -> tuple[list[Verdict], str]:
    """Test a remote canister, and return a verdict on each rule of its role.

    The second result says why calls were not admitted, if so, and is empty otherwise. Rules that
    cannot be judged from outside have a verdict with `shown` 0. `other` is another caller, which
    registers a publication if there is none that can be used. `namespace` is one to which a
    subscriber subscribes, and `with_` are the extensions that the canister claims to support.
    """
    probes = Probes(Book(role, with_), line)
    prefix = f"trial.{secrets.token_hex(4)}"
    note = ""
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
        # Users may not call updates (IC-10), but queries.
        if role == "orchestrator" and not probes.book.verdicts:
            probes.listing(None, ())
    verdicts = probes.book.verdicts
    judged = {each.rule for each in verdicts}
    rest = [
        Verdict(name, rule.about, 0, (), rule.level)
        for name, rule in probes.book.rules.items()
        if name not in judged
    ]
    return [*verdicts, *rest], note


def _orchestrator(probes: Probes, other: Line | None, prefix: str) -> None:
    """Probe an orchestrator, and delete the registrations that this needed.

    A replay is asked for in a free publication of another canister, if there is one.
    """
    known = probes.query(methods.GET_PUBLICATIONS, m.ByText()) or ()
    others = [each for each in known if not each.namespace.startswith("trial.")]
    free = [each for each in others if not any("pricing" in key for key, _ in each.config)]
    replays = [each.namespace for each in free if any(key == REPLAY for key, _ in each.config)]
    probes.registering(prefix)
    valid = probes.update(methods.GET_VALID, None)
    probes.listing(
        f"{prefix}.new", valid.value if valid is not None and valid.tag == "list" else ()
    )
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


def _member(
    role: str, probes: Probes, line: RemoteLine, namespace: str | None, handled: Handled
) -> None:
    """Probe a publisher or subscriber with forged notifications, which it must not take."""
    before = line.heard()
    # Ids that real events do not have.
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
        probes.book.judge(
            "IC-49b strangers", len(marks), ["it confirmed to its caller"] * confirmed
        )
    if handled is not None and namespace is not None:
        strange = sorted(set(marks) & set(handled()))
        probes.book.must("IC-49b events", not strange, ranges(strange), len(marks))

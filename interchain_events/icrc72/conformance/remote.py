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
    """The number of calls that were made."""

    @property
    def canister(self) -> Principal:
        """The canister that is called."""

    def heard(self) -> list[str] | None:
        """Return the methods of the caller that the canister has called.

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

    The second result is the reason why calls were not admitted, or an empty text if they were.
    Rules that cannot be judged from outside have a verdict with `shown` 0. `other` is another
    caller, which registers a publication if no existing one can be used. `namespace` is one to
    which a subscriber subscribes, and `with_` are the extensions that the canister claims to
    support.
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
        # Users may be refused updates (IC-10), but they may make queries.
        if role == "orchestrator" and not probes.book.verdicts:
            probes.listing(None, ())
    verdicts = probes.book.verdicts
    judged = {verdict.rule for verdict in verdicts}
    not_judged = [
        Verdict(name, rule.about, 0, (), rule.level)
        for name, rule in probes.book.rules.items()
        if name not in judged
    ]
    return [*verdicts, *not_judged], note


def _orchestrator(probes: Probes, other: Line | None, prefix: str) -> None:
    """Probe an orchestrator, and delete the registrations that this needed.

    A replay is asked for in a publication of another canister that replays without a price, if
    there is one. Otherwise `other` registers one.
    """
    replayable: list[str] = []
    for publication in probes.query(methods.GET_PUBLICATIONS, m.ByText()) or ():
        config_keys = [key for key, _ in publication.config]
        priced = any("pricing" in key for key in config_keys)
        if REPLAY in config_keys and not priced and not publication.namespace.startswith("trial."):
            replayable.append(publication.namespace)
    probes.registering(prefix)
    valid = probes.update(methods.GET_VALID, None)
    broadcasters = valid.value if valid is not None and valid.tag == "list" else ()
    probes.listing(f"{prefix}.new", broadcasters)
    name = replayable[0] if replayable else f"{prefix}.other"
    creator = None if replayable or other is None else Probes(probes.book, other)
    if creator is not None:
        item = m.PublicationRegistration(name, ((REPLAY, boolean(True)),))
        creator.update(methods.REGISTER_PUBLICATION, (item,))
    if replayable or creator is not None:
        probes.intruding(name)
        probes.replaying(name, prefix, None, waits=20 if replayable else 1)
    deletion = m.PublicationDelete(identified(f"{prefix}.new"))
    probes.update(methods.DELETE_PUBLICATION, (deletion,))
    if creator is not None:
        creator.update(methods.DELETE_PUBLICATION, (m.PublicationDelete(identified(name)),))
    for subscribed in (f"{prefix}.twice", name):
        deleted = m.SubscriptionDelete(identified(subscribed))
        probes.update(methods.DELETE_SUBSCRIPTION, (deleted,))


def _member(
    role: str, probes: Probes, line: RemoteLine, namespace: str | None, handled: Handled
) -> None:
    """Probe a publisher or subscriber with forged notifications, which it must not take."""
    before = line.heard()
    # Real events do not have such ids.
    now = time.time_ns()
    marks = list(range(now, now + 4))
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

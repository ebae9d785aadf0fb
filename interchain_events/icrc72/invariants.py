"""The invariants that show in a trace and are not about cheats of participants: I6, I7, R1, R3.

`InvariantObserver` checks calls and states of replays while they happen, and compares replays with
the publishers' logs at the end. Other invariants are checked elsewhere: I4, I5, I14 and R5 by the
audit; I1, I2, I9, R2 and R7 by `stories`.
"""

from collections.abc import Mapping
from typing import Final

from interchain_events.icrc72.deployment import PubSub
from interchain_events.icrc72.facts import Width
from interchain_events.icrc72.filters import lets_pass
from interchain_events.icrc72.headers import read
from interchain_events.icrc72.ic.errors import CandidError
from interchain_events.icrc72.ic.messaging import Happening
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.messages import Event, EventNotification
from interchain_events.icrc72.methods import HANDLE
from interchain_events.icrc72.namespaces import is_system
from interchain_events.icrc72.orchestrator.state import Replay
from interchain_events.icrc72.values import Value

_ENDS: Final = ("errored", "canceled")
STEPS: Final = {"": ("pending",), "pending": ("running", *_ENDS), "running": ("completed", *_ENDS)}
"""The states that may follow each state of a replay (RP-5). A replay begins as pending."""

LATE: Final = 30
"""The rounds after which a response is missing. Bounded calls take 10 and the way back."""


class InvariantObserver:
    """An observer that finds broken invariants."""

    def __init__(self, system: PubSub) -> None:
        self.system = system
        self.broken: list[str] = []
        """A text for each of the first 20 breaches."""
        self.notes: list[tuple[Principal, Principal, EventNotification]] = []
        """The notifications of events: sender and receiver."""
        self._now = 0
        self._first: int | None = None
        """The first call that was seen. Earlier calls may still be answered."""
        self._open: dict[int, tuple[Principal, int]] = {}
        """The calls without an answer by number: sender and round."""
        self._started: dict[tuple[Principal, Principal], int] = {}
        """For each sender and receiver, the number of the last request that was executed."""
        self._states: dict[int, str] = {}
        """The last state of each replay."""

    def happened(self, happening: Happening) -> None:
        """Check an entry of the trace."""
        kind = happening.kind
        number = happening.number
        self._now = happening.round
        if kind == "send":
            self._open[number] = happening.sender, happening.round
            self._first = number if self._first is None else self._first
        elif kind == "answer":
            if (
                self._open.pop(number, None) is None
                and self._first is not None
                and number >= self._first
            ):
                self._breaks("I6", f"call {number} of {happening.method} has a second response")
        elif kind == "execute":
            self._execute(happening)
        elif kind in {"upgrade", "uninstall"}:
            self._open = {
                number: (receiver, round_)
                for number, (receiver, round_) in self._open.items()
                if receiver != happening.receiver
            }

    def _breaks(self, rule: str, breach: str) -> None:
        """Add a breach of a rule, unless there are already 20."""
        if len(self.broken) < 20:
            self.broken.append(f"{rule}: {breach} (round {self._now})")

    def _execute(self, happening: Happening) -> None:
        """Check the order of requests (I7), and note notifications."""
        pair = happening.sender, happening.receiver
        if happening.number <= self._started.get(pair, 0):
            self._breaks(
                "I7",
                f"request {happening.number} started after {self._started[pair]} of the same pair",
            )
        self._started[pair] = happening.number
        try:
            notes = HANDLE.value(happening.data) if happening.method.startswith(HANDLE.name) else ()
        except CandidError:
            return
        self.notes += [(*pair, note) for note in notes if not is_system(note.namespace)]
        if happening.receiver == self.system.orchestrator:
            self._step()

    def _step(self) -> None:
        """Check the states of replays (R3). It runs after each message to the orchestrator."""
        for number, replay in self.system.registry.state.replays.items():
            former = self._states.get(number, "")
            if former == replay.state:
                continue
            if not former and replay.state != "pending":
                # Within one execution a replay can be registered and reach its next state.
                former = "pending"
            if replay.state not in STEPS.get(former, ()):
                self._breaks("R3", f"replay {number} went from {former} to {replay.state}")
            self._states[number] = replay.state

    def finish(
        self,
        logs: Mapping[Principal, Mapping[tuple[str, int], Event]],
        over: Mapping[Principal, list[int]],
    ) -> list[str]:
        """Make the final checks, and return all breaches.

        `over` has, for each subscriber, the replays that were reported to it as completely
        delivered.
        """
        self._step()
        for number, (canister, since) in self._open.items():
            if self._now - since > LATE:
                breach = f"call {number} of {canister.text} in round {since} has no response"
                self._breaks("I6", breach)
        for subscriber, numbers in over.items():
            for number in numbers:
                replay = self.system.registry.state.replays.get(number)
                if replay is not None and replay.state == "completed":
                    log = list(logs.get(replay.publisher, {}).values())
                    self._judge_replay(replay, subscriber, log)
        return self.broken

    def _judge_replay(self, replay: Replay, subscriber: Principal, log: list[Event]) -> None:
        """Check that a replay notified the events of its range that pass, in order (R1)."""
        events = [
            event
            for event in log
            if event.namespace == replay.namespace and replay.start <= event.eventId
        ]
        events.sort(key=lambda event: event.eventId)
        sent = events[: replay.count]
        if replay.end is not None and any(event.eventId >= replay.end for event in sent):
            breach = f"replay {replay.id} counts {replay.count} events, its range has fewer"
            self._breaks("R1", breach)
        width = Width(replay.filter, replay.skip)
        due = [event.eventId for event in sent if lets_pass(width, event)]
        notified: dict[int, Value] = {}
        for _, receiver, note in self.notes:
            if receiver == subscriber and read(note.headers).replay == replay.id:
                notified.setdefault(note.eventId, note.data)
        data = {event.eventId: event.data for event in events}
        if list(notified) != due:
            breach = f"replay {replay.id} notified {list(notified)[:12]}, its range has {due[:12]}"
            self._breaks("R1", breach)
        elif any(data[number] != value for number, value in notified.items()):
            self._breaks("R1", f"replay {replay.id} has other data than the log")

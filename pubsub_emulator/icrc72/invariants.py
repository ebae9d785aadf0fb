"""The invariants of both standards, as they show in a trace: I4 to I7, I14, R1, R3, R5.

`InvariantObserver` notes what breaks a rule at once; `finish` compares all notifications with the publishers' logs.
What subscribers handled is compared in `stories` (I1, I2, R2, R7), bounds too (I9).
"""

from collections.abc import Iterable, Mapping
from typing import Final

from pubsub_emulator.icrc72 import keys
from pubsub_emulator.icrc72.deployment import PubSub
from pubsub_emulator.icrc72.filters import matches as filter_matches
from pubsub_emulator.icrc72.headers import read
from pubsub_emulator.icrc72.ic.errors import CandidError
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.ic.trace import Happening
from pubsub_emulator.icrc72.ic.words import shown
from pubsub_emulator.icrc72.messages import Event, EventNotification
from pubsub_emulator.icrc72.methods import HANDLE, REGISTER_SUBSCRIPTION
from pubsub_emulator.icrc72.namespaces import is_system, matches
from pubsub_emulator.icrc72.orchestrator.state import Replay
from pubsub_emulator.icrc72.values import Pairs, Value

EventKey = tuple[str, Principal, int]

STEPS: Final = frozenset(
    [
        ("", "pending"),
        ("pending", "running"),
        ("pending", "errored"),
        ("pending", "canceled"),
        ("running", "completed"),
        ("running", "errored"),
        ("running", "canceled"),
    ]
)
"""The steps of RP-5; a replay begins as pending."""

LATE: Final = 30
"""Rounds after which a call without response is one too many; the longest wait of a bounded call is 10 and a way."""

_ORDER: Final = {each.name: at for at, each in enumerate(keys.HEADERS)}


class InvariantObserver:
    """An observer that finds broken invariants."""

    def __init__(self, system: PubSub) -> None:
        self.system = system
        self.broken: list[str] = []
        self.notes: list[tuple[Principal, Principal, EventNotification]] = []
        self._now = 0
        self._first: int | None = None
        """The first call that was seen; what was under way before is not known."""
        self._open: dict[int, tuple[Principal, int]] = {}
        self._started: dict[tuple[Principal, Principal], int] = {}
        self._registering: dict[int, tuple[Principal, tuple[str, ...]]] = {}
        self._patterns: dict[Principal, dict[str, None]] = {}
        self._states: dict[int, str] = {}

    def happened(self, happening: Happening) -> None:
        """Look at one thing that happened."""
        kind, number = happening.kind, happening.number
        self._now = happening.round
        if kind == "send":
            self._open[number] = happening.sender, happening.round
            self._first = number if self._first is None else self._first
        elif kind == "answer":
            self._answered(happening)
        elif kind == "execute":
            self._execute(happening)
        elif kind == "respond":
            self._respond(happening)
        elif kind in {"upgrade", "uninstall"}:
            self._open = {n: each for n, each in self._open.items() if each[0] != happening.receiver}

    def _breaks(self, rule: str, what: str) -> None:
        if len(self.broken) < 20:
            self.broken.append(f"{rule}: {what} (round {self._now})")

    def _answered(self, happening: Happening) -> None:
        known = self._open.pop(happening.number, None)
        if known is None and self._first is not None and happening.number >= self._first:
            self._breaks("I6", f"call {happening.number} of {happening.method} has a second response")

    def _execute(self, happening: Happening) -> None:
        pair = happening.sender, happening.receiver
        if happening.number <= self._started.get(pair, 0):
            self._breaks("I7", f"request {happening.number} started after {self._started[pair]} of the same pair")
        self._started[pair] = happening.number
        method = happening.method
        try:
            if method.startswith(HANDLE.name):
                for note in HANDLE.value(happening.data):
                    self._notified(happening, note)
            elif method == REGISTER_SUBSCRIPTION.name:
                items = REGISTER_SUBSCRIPTION.value(happening.data)
                self._registering[happening.number] = happening.sender, tuple(each.namespace for each in items)
        except CandidError:
            return
        if happening.receiver == self.system.orchestrator:
            self._step()

    def _respond(self, happening: Happening) -> None:
        known = self._registering.pop(happening.number, None)
        if known is None or happening.code:
            return
        who, names = known
        for name, result in zip(names, REGISTER_SUBSCRIPTION.result(happening.data), strict=False):
            if result is not None and result.tag == "Ok":
                self._patterns.setdefault(who, {})[name] = None

    def _notified(self, happening: Happening, note: EventNotification) -> None:
        receiver = happening.receiver
        if is_system(note.namespace):
            return
        self.notes.append((happening.sender, receiver, note))
        if not any(matches(pattern, note.namespace) for pattern in self._patterns.get(receiver, ())):
            self._breaks("I14", f"{receiver.text} was notified of {note.namespace} without a subscription")
        replay = read(note.headers).replay
        if replay is not None:
            known = self.system.registry.state.replays.get(replay)
            if known is not None and known.subscriber != receiver:
                self._breaks("R5", f"replay {replay} of {known.subscriber.text} went to {receiver.text}")

    def _step(self) -> None:
        for number, replay in self.system.registry.state.replays.items():
            had = self._states.get(number, "")
            if had != replay.state:
                if not had and replay.state != "pending":
                    had = "pending"
                if (had, replay.state) not in STEPS:
                    self._breaks("R3", f"replay {number} went from {had} to {replay.state}")
                self._states[number] = replay.state

    # At the end

    def finish(
        self, logs: Mapping[Principal, Iterable[Event]], over: Mapping[Principal, Iterable[int]] | None = None
    ) -> list[str]:
        """The broken invariants. `over` has the replays that each subscriber knows to be delivered whole."""
        self._step()
        events = {(each.namespace, who, each.eventId): each for who, log in logs.items() for each in log}
        for sender, _, note in self.notes:
            event = events.get((note.namespace, note.source, note.eventId))
            if event is not None:
                self._judge_headers(sender, note, event)
        for number, (who, since) in self._open.items():
            if self._now - since > LATE:
                self._breaks("I6", f"call {number} of {who.text} in round {since} has no response")
        for who, numbers in (over or {}).items():
            for number in numbers:
                replay = self.system.registry.state.replays.get(number)
                if replay is not None and replay.state == "completed":
                    self._judge_replay(replay, who, list(logs.get(replay.publisher, ())))
        return self.broken

    def _judge_headers(self, sender: Principal, note: EventNotification, event: Event) -> None:
        """I5: what the publisher wrote comes first, then each participant's, in order; I4: at most one relay."""
        headers = note.headers or ()
        written = event.headers or ()
        grown: Pairs = headers[len(written) :]
        places = [_ORDER.get(name, -1) for name, _ in grown]
        what = f"event {shown(note.eventId)} of {note.namespace} by {sender.text}"
        if headers[: len(written)] != written or places != sorted(set(places)) or -1 in places:
            self._breaks("I5", f"{what} has headers {', '.join(name for name, _ in headers)}")
        said = read(grown)
        deliverer = said.relay if said.relayed else said.broadcaster
        if deliverer != sender:
            self._breaks("I4", f"{what} came through {deliverer.text if deliverer else 'nobody'} last")

    def _judge_replay(self, replay: Replay, who: Principal, log: list[Event]) -> None:
        """R1: the range of the log after skip and filter, in order."""
        rows = [each for each in log if each.namespace == replay.namespace and replay.start <= each.eventId]
        rows.sort(key=lambda each: each.eventId)
        sent = rows[: replay.count]
        if replay.end is not None and any(each.eventId >= replay.end for each in sent):
            self._breaks("R1", f"replay {replay.id} counts {replay.count} events, its range has fewer")
        due = [each.eventId for each in sent if self._passes(replay, each)]
        got: dict[int, Value] = {}
        data = {each.eventId: each.data for each in rows}
        for _, receiver, note in self.notes:
            if receiver == who and read(note.headers).replay == replay.id:
                got.setdefault(note.eventId, note.data)
        if list(got) != due:
            self._breaks("R1", f"replay {replay.id} notified {list(got)[:12]}, its range has {due[:12]}")
        elif any(data[number] != value for number, value in got.items()):
            self._breaks("R1", f"replay {replay.id} has other data than the log")

    @staticmethod
    def _passes(replay: Replay, event: Event) -> bool:
        if replay.skip is not None and not replay.skip.passes(event.eventId):
            return False
        return replay.filter is None or filter_matches(replay.filter, event.data)

"""Messages between canisters: bounded, scheduled, answered or timed out (IC-5 to IC-7), and traced (IC-12)."""

import heapq
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from pubsub_emulator.collator.draws import draw
from pubsub_emulator.icrc72.ic.canister import GUARANTEED, SYS_TRANSIENT, SYS_UNKNOWN, Answer, Call, Host, Key
from pubsub_emulator.icrc72.ic.principal import Principal, subnet_of


@dataclass(frozen=True, slots=True)
class MessageLimits:
    """The limits of IC-5 and IC-7."""

    message_bytes: int = 2_097_152
    under_way: int = 500
    messages_a_round: int = 100
    timeout: int = 10
    own_subnet: int = 1
    across: int = 2


@dataclass(frozen=True, slots=True)
class Schedule:
    """A fair schedule, drawn by hashes: late by up to `delay` rounds, `refuse` percent of requests refused."""

    seed: bytes
    delay: int = 0
    refuse: int = 0

    def late(self, number: int) -> int:
        """The rounds by which message `number` arrives later than usual."""
        return draw(self.seed, b"late", number) % (self.delay + 1) if self.delay else 0

    def refuses(self, number: int) -> bool:
        """True when request `number` is refused."""
        return self.refuse > 0 and draw(self.seed, b"refuse", number) % 100 < self.refuse

    def place(self, arrival: int, label: bytes) -> int:
        """The place in its round of what arrives together under one label."""
        return draw(self.seed, b"place" + label, arrival)


class Happening(NamedTuple):
    """One thing that happened.

    `kind` is `send`, `execute`, `answer` (a response is executed), `respond`, `refuse`, `reject`, `trap`, `timer`,
    `heartbeat`, `install`, `stop`, `stopped`, `start`, `upgrade`, `uninstall` or `ingress`.
    """

    round: int
    kind: str
    number: int  # the call's number; 0 where there is none
    sender: Principal
    receiver: Principal
    method: str
    data: bytes
    code: int = 0


class Observer(Protocol):
    """An observer of a network."""

    def happened(self, happening: Happening) -> None:
        """Called in order, for everything that happens."""


class Recorder:
    """An observer that keeps everything."""

    def __init__(self) -> None:
        self.happenings: list[Happening] = []

    def happened(self, happening: Happening) -> None:
        """Append it to the list."""
        self.happenings.append(happening)


@dataclass(slots=True, eq=False)
class Subnet:
    """A subnet: its canisters with a heartbeat, timers by time, and messages on their way to it."""

    created: int = 0
    heartbeats: list[Host] = field(default_factory=list)
    timers: list[tuple[int, int, Principal]] = field(default_factory=list)
    transit: list[tuple[Key, int, Call, Answer | None]] = field(default_factory=list)


class Messaging:
    """The messages of a network that are on their way, and what observers are told."""

    def __init__(self, subnets: int, schedule: Schedule, limits: MessageLimits) -> None:
        self.schedule = schedule
        self.limits = limits
        self.round = 0
        self.observers: list[Observer] = []
        self._subnets = [Subnet() for _ in range(subnets)]
        self._hosts: dict[Principal, Host] = {}
        self._number = 0
        self._sequence = 0
        self._pending: dict[int, Call] = {}
        self._timeouts: list[tuple[int, int]] = []
        self._under_way: dict[tuple[Principal, Principal], int] = {}
        self._last: dict[tuple[Principal, Principal], int] = {}

    def _send(self, host: Host, call: Call) -> None:
        self._number += 1
        call.number = self._number
        self._pending[call.number] = call
        self._tell("send", call.number, call.sender, call.receiver, call.method, call.arg)
        if call.kind != GUARANTEED:
            call.deadline = self.round + max(min(self.limits.timeout, call.timeout or self.limits.timeout), 1)
            heapq.heappush(self._timeouts, (call.deadline, call.number))
        pair = (call.sender, call.receiver)
        waiting = self._under_way.get(pair, 0)
        target = self._hosts.get(call.receiver)
        subnet = subnet_of(call.receiver) if target is None else target.subnet
        there = subnet if subnet is not None and subnet < len(self._subnets) else host.subnet
        if waiting >= self.limits.under_way:
            self._tell("refuse", call.number, call.sender, call.receiver, call.method)
            full = Answer(b"", SYS_TRANSIENT, "too many messages are under way")
            self._arrive(host.subnet, host.subnet, call, full, self.limits.own_subnet)
            return
        self._under_way[pair] = waiting + 1
        self._arrive(host.subnet, there, call, None, self._way(host.subnet, there))

    def _way(self, here: int, there: int) -> int:
        return self.limits.own_subnet if here == there else self.limits.across

    def _respond(self, call: Call, answer: Answer) -> None:
        self._tell("respond", call.number, call.receiver, call.sender, call.method, answer.data, answer.code)
        if call.ticket is not None:
            call.ticket.answer = answer
            return
        caller, callee = self._hosts[call.sender], self._hosts.get(call.receiver)
        here = caller.subnet if callee is None else callee.subnet
        self._arrive(here, caller.subnet, call, answer, self._way(here, caller.subnet))

    def _arrive(self, here: int, there: int, call: Call, answer: Answer | None, way: int) -> None:
        """Put a request or a response on its way: requests of a pair never overtake each other (IC-6a)."""
        self._sequence += 1
        arrival, place, number, schedule = self.round + way, here, self._sequence, self.schedule
        if schedule.delay or schedule.refuse:
            if answer is None and call.sender != call.receiver:
                pair = (call.sender, call.receiver)
                arrival = max(arrival + schedule.late(number), self._last.get(pair, 0))
                self._last[pair] = arrival
                place = schedule.place(arrival, b"%b>%b" % pair)
            elif answer is not None:
                arrival += schedule.late(number)
                place = schedule.place(arrival, b"%d" % number)
        elif self._last and answer is None:  # what an earlier schedule has delayed is not overtaken
            late = self._last.pop((call.sender, call.receiver), 0)
            if late >= arrival:
                arrival = self._last[call.sender, call.receiver] = late + 1
        heapq.heappush(self._subnets[there].transit, ((arrival, place, number), number, call, answer))

    def _left(self, call: Call) -> None:
        pair = (call.sender, call.receiver)
        waiting = self._under_way.pop(pair, 0)
        if waiting > 1:
            self._under_way[pair] = waiting - 1

    def _time_out(self) -> None:
        while self._timeouts and self._timeouts[0][0] <= self.round:
            _, number = heapq.heappop(self._timeouts)
            call = self._pending.get(number)
            if call is not None:
                host = self._hosts[call.sender]
                self._arrive(host.subnet, host.subnet, call, Answer(b"", SYS_UNKNOWN, "no response in time"), 0)

    def _tell(  # noqa: PLR0917 — the fields of a happening in order
        self,
        kind: str,
        number: int,
        sender: Principal,
        receiver: Principal,
        method: str = "",
        data: bytes = b"",
        code: int = 0,
    ) -> None:
        if self.observers:
            happening = Happening(self.round, kind, number, sender, receiver, method, data, code)
            for observer in self.observers:
                observer.happened(happening)

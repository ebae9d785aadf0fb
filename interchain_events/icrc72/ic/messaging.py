"""Transport of messages between canisters (IC-5 to IC-7), and its trace (IC-12).

`Messaging` sends requests and responses, lets them arrive in a later round, limits their number and
times bounded calls out. `network.CanisterNetwork` adds the execution of canisters.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from interchain_events.icrc72.ic.candid.carried import plain
from interchain_events.icrc72.ic.canister import (
    GUARANTEED,
    SYS_TRANSIENT,
    SYS_UNKNOWN,
    Answer,
    Call,
    Host,
    Key,
)
from interchain_events.icrc72.ic.principal import Principal, subnet_of
from pubsub_emulator.primitives.draws import draw

CALL_BYTES: Final = 1 << 10
"""The bytes that a request takes besides its argument."""


@dataclass(frozen=True, slots=True)
class MessageLimits:
    """The limits and times of messages (IC-5, IC-7)."""

    message_bytes: int = 2_097_152
    """The most bytes of a request or response."""
    under_way: int = 500
    """How many requests from one canister to another may be under way."""
    under_way_bytes: int = 64 << 20
    """The most bytes of the requests of one canister that are under way or not answered.

    Each takes `CALL_BYTES` until it is answered, and its argument until it is executed.
    """
    messages_a_round: int = 100
    """How many messages a canister executes in a round."""
    bytes_a_round: int = 32 << 20
    """How many bytes a canister sends in a round before its other messages wait for the next."""
    timeout: int = 10
    """The rounds after which a bounded call times out."""
    own_subnet: int = 1
    """The rounds that a message takes on its own subnet."""
    across: int = 2
    """The rounds that a message takes to another subnet."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A random but repeatable schedule of messages (IC-6), drawn by hashes of a seed.

    With neither `delay` nor `refuse`, messages are executed in the order in which they were sent.
    """

    seed: bytes
    delay: int = 0
    """By how many rounds a message may be late."""
    refuse: int = 0
    """The percentage of requests that are refused."""

    def late(self, number: int) -> int:
        """Return by how many rounds message `number` is late."""
        return draw(self.seed, b"late", number) % (self.delay + 1) if self.delay else 0

    def refuses(self, number: int) -> bool:
        """Return whether request `number` is refused."""
        return self.refuse > 0 and draw(self.seed, b"refuse", number) % 100 < self.refuse

    def place(self, arrival: int, label: bytes) -> int:
        """Return the position that all messages with a label have in their round of arrival."""
        return draw(self.seed, b"place" + label, arrival)


class Happening(NamedTuple):
    """An entry of the trace.

    `kind` is `send`, `execute`, `answer` (a response is executed), `respond`, `refuse`, `reject`,
    `trap`, `timer`, `heartbeat`, `install`, `stop`, `stopped`, `start`, `upgrade`, `uninstall` or
    `ingress`.
    """

    round: int
    kind: str
    number: int
    """The number of the call, or 0."""
    sender: Principal
    receiver: Principal
    method: str
    data: bytes
    code: int = 0


class Observer(Protocol):
    """An observer of a network."""

    def happened(self, happening: Happening) -> None:
        """Take an entry of the trace. Called for all entries in order."""


class Recorder:
    """An observer that records the whole trace."""

    def __init__(self) -> None:
        self.happenings: list[Happening] = []

    def happened(self, happening: Happening) -> None:
        """Append an entry to the record."""
        self.happenings.append(happening)


Arrival = tuple[Key, Call, Answer | None]
"""A request (with `None`) or an answer that arrives, with its place in the order."""


@dataclass(slots=True, eq=False)
class Subnet:
    """A subnet."""

    created: int = 0
    """How many canisters were created on it."""
    heartbeats: list[Host] = field(default_factory=list)
    """Its canisters with a heartbeat."""
    timers: list[tuple[int, int, Principal]] = field(default_factory=list)
    """A heap of timers: time (ns), number and canister. Entries may be outdated."""
    transit: dict[int, list[Arrival]] = field(default_factory=dict)
    """The messages on their way to this subnet, by the round in which they arrive."""


class Messaging:
    """The messages under way in a network, and its observers."""

    def __init__(self, subnets: int, schedule: Schedule, limits: MessageLimits) -> None:
        self.schedule = schedule
        self.limits = limits
        self.round = 0
        self.observers: list[Observer] = []
        self._subnets = [Subnet() for _ in range(subnets)]
        self._hosts: dict[Principal, Host] = {}
        self._number = 0
        """The number of the last call or timer."""
        self._sequence = 0
        """The number of the last request or answer that was put on its way."""
        self._pending: dict[int, Call] = {}
        """The calls of canisters that wait for their answer, by number."""
        self._timeouts: dict[int, list[int]] = {}
        """The numbers of the bounded calls that time out in a round."""
        self._under_way: dict[tuple[Principal, Principal], int] = {}
        """For each sender and receiver, how many requests are on their way."""
        self._last: dict[tuple[Principal, Principal], int] = {}
        """For each sender and receiver, the round in which the last delayed request arrives."""

    def _send(self, host: Host, call: Call) -> None:
        """Send a request of a canister, or refuse it if too many are under way to the receiver.

        A refusal is an answer (SYS_TRANSIENT) that takes its time like others.
        """
        limits = self.limits
        self._number += 1
        call.number = self._number
        self._pending[call.number] = call
        # `_tell` checks for observers, too. The check here saves a call for each message.
        if self.observers:
            self._tell("send", call.number, call.sender, call.receiver, call.method, call.arg)
        if call.kind != GUARANTEED:
            wait = limits.timeout
            if call.timeout:
                wait = min(wait, call.timeout)
            call.deadline = self.round + max(wait, 1)
            self._timeouts.setdefault(call.deadline, []).append(call.number)
        pair = (call.sender, call.receiver)
        waiting = self._under_way.get(pair, 0)
        size = CALL_BYTES + len(call.arg)
        host.under_way_bytes += size
        host.sent += size
        if waiting >= limits.under_way or host.under_way_bytes > limits.under_way_bytes:
            host.under_way_bytes -= len(call.arg)
            call.arg = b""
            self._tell("refuse", call.number, call.sender, call.receiver, call.method)
            full = Answer(b"", SYS_TRANSIENT, "too many messages are under way")
            self._arrive(host.subnet, host.subnet, call, full)
            return
        self._under_way[pair] = waiting + 1
        target = self._hosts.get(call.receiver)
        there = self._subnet_of(call) if target is None else target.subnet
        self._arrive(host.subnet, there, call, None)

    def _subnet_of(self, call: Call) -> int:
        """Return the subnet that serves a request to a canister that does not exist.

        It is the sender's for the management canister, and for an id that no subnet has.
        """
        subnet = subnet_of(call.receiver)
        if subnet is None or subnet >= len(self._subnets):
            return self._hosts[call.sender].subnet
        return subnet

    def _respond(self, call: Call, answer: Answer) -> None:
        """Send the answer of a call to its caller. A user's ticket has it at once."""
        if self.observers:
            self._tell(
                "respond",
                call.number,
                call.receiver,
                call.sender,
                call.method,
                answer.data,
                answer.code,
            )
        if call.ticket is not None:
            call.ticket.answer = answer._replace(data=plain(answer.data))
            return
        caller = self._hosts[call.sender]
        callee = self._hosts.get(call.receiver)
        if callee is not None:
            callee.sent += CALL_BYTES + len(answer.data)
        here = caller.subnet if callee is None else callee.subnet
        self._arrive(here, caller.subnet, call, answer)

    def _arrive(
        self,
        here: int,
        there: int,
        call: Call,
        answer: Answer | None,
        *,
        at_once: bool = False,
    ) -> None:
        """Put a request or a response on its way from one subnet to another.

        With `at_once`, the message takes no time, but the schedule may still delay it.

        Requests from one canister to another never overtake each other (IC-6a): a request arrives
        in no earlier round than the one before it, and all of a pair in a round have the same place
        and so keep the order of their numbers. Responses may overtake.
        """
        self._sequence += 1
        number = self._sequence
        schedule = self.schedule
        arrival = self.round
        if not at_once:
            arrival += self.limits.own_subnet if here == there else self.limits.across
        place = here
        if schedule.delay or schedule.refuse:
            if answer is None and call.sender != call.receiver:
                pair = (call.sender, call.receiver)
                arrival = max(arrival + schedule.late(number), self._last.get(pair, 0))
                self._last[pair] = arrival
                place = schedule.place(arrival, b"%b>%b" % pair)
            elif answer is not None:
                arrival += schedule.late(number)
                place = schedule.place(arrival, b"%d" % number)
        # Without delays, a request must still not overtake one that a former schedule has delayed.
        elif self._last and answer is None:
            late = self._last.pop((call.sender, call.receiver), 0)
            if late >= arrival:
                arrival = late + 1
                self._last[call.sender, call.receiver] = arrival
        message = ((arrival, place, number), call, answer)
        transit = self._subnets[there].transit
        arriving = transit.get(arrival)
        if arriving is None:
            transit[arrival] = [message]
        else:
            arriving.append(message)

    def _request_arrived(self, call: Call) -> None:
        """Take a request that has arrived out of the counts of its sender.

        Requests of users, which have a ticket, do not count towards the limit of bytes.
        """
        pair = (call.sender, call.receiver)
        waiting = self._under_way.pop(pair, 0)
        if waiting > 1:
            self._under_way[pair] = waiting - 1
        if call.ticket is None:
            self._hosts[call.sender].under_way_bytes -= len(call.arg)

    def _time_out(self) -> None:
        """Answer the bounded calls whose time is over. A later answer of the callee is dropped."""
        for number in self._timeouts.pop(self.round, ()):
            call = self._pending.get(number)
            if call is not None:
                subnet = self._hosts[call.sender].subnet
                late = Answer(b"", SYS_UNKNOWN, "no response in time")
                self._arrive(subnet, subnet, call, late, at_once=True)

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
        """Give an entry of the trace to the observers."""
        if self.observers:
            happening = Happening(
                self.round, kind, number, sender, receiver, method, plain(data), code
            )
            for observer in self.observers:
                observer.happened(happening)

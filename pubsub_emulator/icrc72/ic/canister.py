"""Canisters as the network runs them: execution, and what an execution may do (IC-4).

An execution gets a `Context`: caller and time go in, at most one response, calls and a timer come out. It may raise
`Trap`; then nothing of it has happened.
"""

from collections import deque
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass, field
from typing import Final, NamedTuple, cast

from pubsub_emulator.icrc72.ic.errors import Trap
from pubsub_emulator.icrc72.ic.principal import Principal

SECOND: Final = 10**9  # nanoseconds of a round

SYS_TRANSIENT: Final = 2
DESTINATION_INVALID: Final = 3
CANISTER_REJECT: Final = 4
CANISTER_ERROR: Final = 5
SYS_UNKNOWN: Final = 6

GUARANTEED: Final = "guaranteed"
BOUNDED: Final = "bounded"
ONE_WAY: Final = "one-way"

RUNNING: Final = "running"
STOPPING_STATUS: Final = "stopping"
STOPPED: Final = "stopped"
EMPTY: Final = "empty"

STOPPING: Final = "IC0508: the canister is stopping or stopped"  # reject 5 of who does not run


class Answer(NamedTuple):
    """The result of a call: `code` 0 with data, or a reject."""

    data: bytes
    code: int = 0
    message: str = ""
    refunded: int = 0  # the cycles that came back, because the callee did not accept them

    @property
    def ok(self) -> bool:
        """True when the callee replied."""
        return self.code == 0


Then = Callable[["Context", Answer], None]  # what is executed with the answer of a call

CleanUp = Callable[["Context"], None]
"""What is executed where that trapped: what it does counts, but it makes no calls and answers none."""


Key = tuple[int, int, int]  # arrival, place in the round, and number: in this order messages are executed


@dataclass(slots=True, eq=False)
class Call:
    """A request as an execution makes it, on its way, being served, or waiting for its response."""

    sender: Principal
    receiver: Principal
    method: str
    arg: bytes
    kind: str
    then: Then | None = None
    cleanup: CleanUp | None = None
    timeout: int | None = None
    _: KW_ONLY
    cycles: int = 0  # sent with it, and not accepted so far
    number: int = 0
    deadline: int = 0  # the round in which a bounded call times out
    context: "CallContext | None" = None
    ticket: "Ticket | None" = None


@dataclass(slots=True, eq=False)
class CallContext:
    """A message that is being served: the `call` that it `owes` an answer to, and how many answers it waits for."""

    call: Call | None
    life: int
    owes: bool
    waits: int = 0


@dataclass(slots=True, eq=False)
class Ticket:
    """A user's request: `answer` is `None` until it ended."""

    answer: Answer | None = None


@dataclass(slots=True, eq=False)
class Host:
    """A canister where it runs: `code` is `None` once it was removed."""

    id: Principal
    subnet: int
    code: "Canister | None"
    most_bytes: int  # the most bytes of a request or response
    clock: Callable[[], int]  # the time of its subnet
    status: str = RUNNING
    inbox: deque[tuple[Key, Call, Answer | None]] = field(default_factory=deque)
    open: set[CallContext] = field(default_factory=set)
    due: int | None = None  # when its timer runs
    round: int = -1
    ran: int = 0
    life: int = 0  # how often its code changed
    cycles: int = 0
    controllers: tuple[Principal, ...] = ()
    stopping: list[Call] = field(default_factory=list)  # calls that are answered when it has stopped


@dataclass(slots=True, eq=False)
class Context:
    """One execution: what it was given, and what it does."""

    host: Host
    me: Principal
    caller: Principal
    time: int
    available: int = 0  # the cycles that came with the call and are not accepted
    _: KW_ONLY
    answered: bool = True
    deadline: int = 0  # the time (ns) until which the caller of a bounded call waits, otherwise 0
    answer: Answer | None = field(default=None, init=False)
    calls: list[Call] = field(default_factory=list, init=False)
    timer: int | None = field(init=False)
    timer_set: bool = field(default=False, init=False)
    balance: int = field(init=False)  # the cycles that the canister owns

    def __post_init__(self) -> None:
        self.timer, self.balance = self.host.due, self.host.cycles

    @property
    def now(self) -> int:
        """The time of this subnet in whole rounds."""
        return self.time // SECOND

    def reply(self, data: bytes) -> None:
        """Answer the call that this execution belongs to; once."""
        self.bound(len(data))
        self._respond(Answer(data))

    def reject(self, message: str) -> None:
        """Reject the call that this execution belongs to; once."""
        self._respond(Answer(b"", CANISTER_REJECT, message))

    def call(
        self,
        receiver: Principal,
        method: str,
        arg: bytes,
        then: Then | None = None,
        *,
        kind: str = GUARANTEED,
        cycles: int = 0,
        cleanup: CleanUp | None = None,
        timeout: int | None = None,
    ) -> None:
        """Call a method; `then` is executed with the answer. A one-way call has none.

        What the callee does not accept of the `cycles` comes back with the answer. `cleanup` is executed if `then`
        traps. A bounded call waits `timeout` rounds, at most as long as all do. Raises `Trap` for more cycles than
        there are.
        """
        self.bound(len(arg))
        if not 0 <= cycles <= self.balance:
            raise Trap(f"{cycles} cycles cannot be sent, the canister has {self.balance}")
        self.balance -= cycles
        self.calls.append(Call(self.me, receiver, method, arg, kind, then, cleanup, timeout, cycles=cycles))

    def accept(self, most: int) -> int:
        """Take up to `most` of the cycles that came with the call; returns how many were taken."""
        taken = min(max(most, 0), self.available)
        self.available -= taken
        self.balance += taken
        return taken

    def set_timer(self, time: int | None) -> None:
        """Run `on_timer` once, in the first round at or after `time` (ns). `None` clears the timer."""
        self.timer_set = True
        self.timer = time

    def _respond(self, answer: Answer) -> None:
        if self.answered:
            raise Trap("there is no call to answer, or it was answered")
        self.answered = True
        self.answer = answer

    def bound(self, size: int) -> None:
        """Raises `Trap` for more bytes than a message may have."""
        if size > self.host.most_bytes:
            raise Trap(f"a message has at most {self.host.most_bytes} bytes, not {size}")


class Canister:
    """A program with state. The state is what the instance holds; by default all of it is copied to undo a trap."""

    module_hash: bytes | None = None  # SHA-256 of its module, where it has one

    metadata: Mapping[str, bytes] = {}  # what of it everybody may read, by name

    certified: bytes = b""  # what it has certified

    heartbeat: bool = False  # true when `on_heartbeat` is executed each round

    def init(self, ctx: Context) -> None:
        """Executed when the canister is installed."""

    def inspect(self, _method: str, _caller: Principal, _arg: bytes) -> bool:
        """True when a user's request is let in (IC-10)."""
        return True

    def update(self, _ctx: Context, method: str, _arg: bytes) -> None:
        """Execute a request. Raises `Trap`."""
        raise Trap(f"there is no method {method}")

    def query(self, _caller: Principal, _time: int, method: str, _arg: bytes) -> bytes:
        """Answer a query without changing anything. Raises `Trap`."""
        raise Trap(f"there is no query {method}")

    def on_timer(self, ctx: Context) -> None:
        """Executed when the timer is due."""

    def on_heartbeat(self, ctx: Context) -> None:
        """Executed each round when `heartbeat` is true."""

    def pre_upgrade(self) -> bytes:
        """The data kept over an upgrade. Raises `Trap`."""
        return b""

    def post_upgrade(self, ctx: Context, _kept: bytes) -> None:
        """Restore the state from what was kept. Raises `Trap`."""
        self.init(ctx)

    def take_over(self, ctx: Context, former: "Canister") -> bytes:
        """Continue where `former`, which ran in the same place, ends: an upgrade. Returns what was kept."""
        kept = former.pre_upgrade()
        self.post_upgrade(ctx, kept)
        return kept

    def snapshot(self) -> object:
        """The state by which `restore` undoes an execution."""
        return deepcopy(self.__dict__)

    def restore(self, snapshot: object) -> None:
        """Undo what was done since `snapshot`."""
        self.__dict__.clear()
        self.__dict__.update(cast("dict[str, object]", snapshot))

    def state_bytes(self) -> bytes:
        """The state as bytes, for comparison."""
        return self.pre_upgrade()

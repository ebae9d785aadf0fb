"""Canisters, and the context through which an execution acts on the network (IC-4).

The network runs one message at a time. It gives the canister's method a `Context`, which has the
caller and the time and collects at most one response, calls and a timer. The network carries them
out when the method has returned. If the method raises `Trap`, the network drops them and restores
the canister's state, so that the execution leaves no trace.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass, field
from typing import Final, NamedTuple, cast

from interchain_events.icrc72.ic.errors import Trap
from interchain_events.icrc72.ic.principal import Principal

SECOND: Final = 10**9
"""The nanoseconds that a round takes."""

# Reject codes of the Internet Computer.
SYS_TRANSIENT: Final = 2
DESTINATION_INVALID: Final = 3
CANISTER_REJECT: Final = 4
CANISTER_ERROR: Final = 5
SYS_UNKNOWN: Final = 6

# Kinds of calls (IC-5).
GUARANTEED: Final = "guaranteed"
BOUNDED: Final = "bounded"
ONE_WAY: Final = "one-way"

# Statuses of a host (IC-8).
RUNNING: Final = "running"
STOPPING_STATUS: Final = "stopping"
STOPPED: Final = "stopped"
EMPTY: Final = "empty"

REFUSED: Final = "IC0406: refused at inspect"
"""The text of the reject (code 4) of a request that a canister does not admit (IC-10)."""
STOPPING: Final = "IC0508: the canister is stopping or stopped"
"""The text of the reject (code 5) of a request to a canister that is not running."""


class Answer(NamedTuple):
    """The result of a call: a reply with data, or a reject with a code and a message."""

    data: bytes
    code: int = 0
    """0 for a reply, otherwise one of the reject codes above."""
    message: str = ""
    refunded: int = 0
    """The cycles that come back because the callee did not accept them."""

    @property
    def ok(self) -> bool:
        """Return whether the callee replied."""
        return self.code == 0


Then = Callable[["Context", Answer], None]
"""Continues the caller's work with the answer of a call, in an execution of its own."""

CleanUp = Callable[["Context"], None]
"""Runs if the continuation of a call has trapped. It can change state, but not call or reply."""


Key = tuple[int, int, int]
"""Round of arrival, position in the round and number of a message: the order of execution."""


@dataclass(slots=True, eq=False)
class Call:
    """A request from the moment it is made until its response has arrived."""

    sender: Principal
    receiver: Principal
    method: str
    arg: bytes
    kind: str
    """`GUARANTEED`, `BOUNDED` or `ONE_WAY`."""
    then: Then | None = None
    cleanup: CleanUp | None = None
    timeout: int | None = None
    """How many rounds a bounded call waits; `None` means as long as the network allows."""
    _: KW_ONLY
    cycles: int = 0
    """The cycles that were sent with the call and have not been accepted."""
    number: int = 0
    deadline: int = 0
    """The round in which a bounded call times out."""
    context: "CallContext | None" = None
    """The caller's work that waits for this call."""
    ticket: "Ticket | None" = None
    """The user's ticket if a user made the request."""


@dataclass(slots=True, eq=False)
class CallContext:
    """The work on one message, which may go on after calls that it makes are answered."""

    call: Call | None
    """The request that is served; `None` for a timer and the like."""
    life: int
    """The host's `life` when the work began. Answers are not delivered to later code."""
    owes: bool
    """Whether the request still has to be answered."""
    waits: int = 0
    """The number of its own calls for whose answers the work waits."""


@dataclass(slots=True, eq=False)
class Ticket:
    """A user's request. `answer` is `None` until the request has ended."""

    answer: Answer | None = None


@dataclass(slots=True, eq=False)
class Host:
    """The place of one canister on a subnet: its code, inbox, timer, cycles and status."""

    id: Principal
    subnet: int
    code: "Canister | None"
    """The program; `None` after it was removed."""
    most_bytes: int
    """The most bytes that a request or response may have."""
    clock: Callable[[], int]
    """Returns the time of the subnet in nanoseconds."""
    status: str = RUNNING
    due: int | None = None
    """The time (ns) at which the timer runs, if it is set."""
    round: int = -1
    """The last round in which the canister was executed."""
    ran: int = 0
    """How many executions it had in that round."""
    sent: int = 0
    """The bytes of the requests and answers that it sent in that round."""
    under_way_bytes: int = 0
    """The bytes of its requests that are on their way or not answered."""
    life: int = 0
    """How many times the code was changed."""
    cycles: int = 0
    controllers: tuple[Principal, ...] = ()
    stopping: tuple[Call, ...] = ()
    """Calls to stop the canister, which are answered when it has stopped."""


@dataclass(slots=True, eq=False)
class Context:
    """One execution of a canister: its inputs, and the effects that it collects."""

    host: Host
    me: Principal
    caller: Principal
    time: int
    """The time of the subnet in nanoseconds."""
    available: int = 0
    """The cycles that came with the call and have not been accepted."""
    _: KW_ONLY
    answered: bool = True
    """Whether the call was answered, or there is no call to answer."""
    deadline: int = 0
    """The time (ns) until which the caller of a bounded call waits, otherwise 0."""
    answer: Answer | None = field(default=None, init=False)
    """The answer that this execution gives."""
    calls: list[Call] = field(default_factory=list, init=False)
    """The calls that this execution makes."""
    timer: int | None = field(init=False)
    timer_set: bool = field(default=False, init=False)
    """Whether this execution set or cleared the timer."""
    balance: int = field(init=False)
    """The cycles that the canister owns."""
    now: int = field(init=False)
    """The time of the subnet in whole rounds."""

    def __post_init__(self) -> None:
        self.timer = self.host.due
        self.balance = self.host.cycles
        self.now = self.time // SECOND

    def reply(self, data: bytes) -> None:
        """Reply to the call that this execution serves.

        Raises `Trap` if there is no call, it was answered, or the data is too long.
        """
        self.bound(len(data))
        self._respond(Answer(data))

    def reject(self, message: str) -> None:
        """Reject the call that this execution serves.

        Raises `Trap` if there is no call or it was answered.
        """
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
        """Call a method of another canister (IC-5).

        `then` is executed with the answer, and `cleanup` if `then` traps. A one-way call is never
        answered. Cycles that the callee does not accept come back with the answer. A bounded call
        waits `timeout` rounds, but not longer than the network allows. Raises `Trap` if the
        argument is too long or the canister has fewer cycles.
        """
        self.bound(len(arg))
        if not 0 <= cycles <= self.balance:
            raise Trap(f"{cycles} cycles cannot be sent, the canister has {self.balance}")
        self.balance -= cycles
        self.calls.append(
            Call(
                self.me,
                receiver,
                method,
                arg=arg,
                kind=kind,
                then=then,
                cleanup=cleanup,
                timeout=timeout,
                cycles=cycles,
            )
        )

    def accept(self, most: int) -> int:
        """Accept up to `most` of the cycles that came with the call and return how many."""
        taken = min(max(most, 0), self.available)
        self.available -= taken
        self.balance += taken
        return taken

    def set_timer(self, time: int | None) -> None:
        """Have `on_timer` run once, in the first round at or after `time` (ns).

        `None` clears the timer. A canister has only one, so a new time replaces the old one.
        """
        self.timer_set = True
        self.timer = time

    def _respond(self, answer: Answer) -> None:
        if self.answered:
            raise Trap("there is no call to answer, or it was answered")
        self.answered = True
        self.answer = answer

    def bound(self, size: int) -> None:
        """Check the size of a message. Raises `Trap` if it is too long."""
        if size > self.host.most_bytes:
            raise Trap(f"a message has at most {self.host.most_bytes} bytes, not {size}")


class Canister:
    """A program with state, the base class of all canisters.

    The state is in the attributes of the instance. By default they are all copied before each
    execution, so that a trap can be undone.
    """

    module_hash: bytes | None = None
    """The SHA-256 of the WebAssembly module; `None` for a canister written in Python."""

    metadata: Mapping[str, bytes] = {}
    """The public metadata sections by name."""

    certified: bytes = b""
    """The certified data."""

    heartbeat: bool = False
    """Whether `on_heartbeat` is executed in each round."""

    def init(self, ctx: Context) -> None:
        """Initialize the state. Executed when the canister is installed."""

    def inspect(self, _method: str, _caller: Principal, _arg: bytes) -> bool:
        """Return whether a user's request is admitted (IC-10)."""
        return True

    def update(self, _ctx: Context, method: str, _arg: bytes) -> None:
        """Execute a request. Raises `Trap` if the method does not exist or fails."""
        raise Trap(f"there is no method {method}")

    def query(self, _caller: Principal, _time: int, method: str, _arg: bytes) -> bytes:
        """Answer a query without changing state. Raises `Trap` if it does not exist or fails."""
        raise Trap(f"there is no query {method}")

    def on_timer(self, ctx: Context) -> None:
        """Do the work of the timer. Executed when it is due."""

    def on_heartbeat(self, ctx: Context) -> None:
        """Do the work of a round. Executed in each round if `heartbeat` is true."""

    def pre_upgrade(self) -> bytes:
        """Return the data that `post_upgrade` of the new code will get (IC-8). Raises `Trap`."""
        return b""

    def post_upgrade(self, ctx: Context, _kept: bytes) -> None:
        """Restore the state from the data of `pre_upgrade`. Raises `Trap`."""
        self.init(ctx)

    def take_over(self, ctx: Context, former: "Canister") -> bytes:
        """Continue the work of `former`, the code before an upgrade.

        Returns the data that was handed over.
        """
        kept = former.pre_upgrade()
        self.post_upgrade(ctx, kept)
        return kept

    def snapshot(self) -> object:
        """Return a copy of the state with which `restore` can undo an execution."""
        return deepcopy(self.__dict__)

    def restore(self, snapshot: object) -> None:
        """Set the state back to a snapshot."""
        self.__dict__.clear()
        self.__dict__.update(cast("dict[str, object]", snapshot))

    def state_bytes(self) -> bytes:
        """Return the state as bytes, so that it can be compared."""
        return self.pre_upgrade()

    def state_size(self) -> int:
        """Return the size of the state in bytes."""
        return len(self.state_bytes())

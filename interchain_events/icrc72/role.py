"""Canisters that consist of roles, such as an orchestrator and a broadcaster in one (IC-36).

A core implements one role as a state machine without I/O. It gets method calls and answers, makes
responses and calls through a `Context`, and says in which round it wants to be woken next. The
cores of a canister share its identity, its only timer and one counter of notifications.

Cores make all checks before they change their state. An execution that traps has therefore changed
nothing, and the state need not be copied before each one.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Final, Literal, TypedDict, TypeVar, Unpack, cast

from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.canister import (
    BOUNDED,
    CANISTER_ERROR,
    SECOND,
    STOPPING,
    Answer,
    Canister,
    Context,
    Then,
)
from interchain_events.icrc72.ic.errors import CandidError, Trap
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.ic.stable import StableError, decode, encode
from interchain_events.icrc72.messages import AllAccepted, Itemized, Result
from interchain_events.icrc72.methods import CONFIRM, FLAT_RESULTS, Method, err, ok, too_many
from interchain_events.icrc72.services import codec

Handler = Callable[..., None]
"""An update method: gets the context and the arguments, and replies through the context."""
Query = Callable[..., object]
"""A query: gets caller, time and the arguments, and returns the result."""
Private = Callable[[Context, bytes], None]
"""A method for the canister itself alone: gets the context and the bytes of the argument."""
A = TypeVar("A")
R = TypeVar("R")
S = TypeVar("S")
Confirmed = Literal["Ok", "Unauthorized", "NotFound"]
Got = Callable[[Context, R | None], None] | None
"""Continues with the result of a call, or with `None` if it was rejected or is unreadable."""

_CONFIRMED: Final = ok(None)
"""The result for a notification that was pending."""

ROLE_METHODS: Final = ("icrc72_", "icrc77_")
"""The beginnings of the names of the standards' methods."""


class How(TypedDict, total=False):
    """Options of a call."""

    kind: str
    """The kind of call; bounded by default."""
    absent: Callable[[Context], None] | None
    """Called instead of the continuation if the callee has no such method or traps."""
    cycles: int
    """The cycles that are sent with the call."""


class Core:
    """One role of a canister. By default it has no methods and is never woken."""

    name: str
    """The key of the role's state in the data of an upgrade."""

    state: object = None
    """The state that survives an upgrade."""

    role: "RoleCanister"
    """The canister that the core is a part of."""

    def attach(self, role: "RoleCanister") -> None:
        """Become a part of a canister. Called once, by the canister."""
        self.role = role

    def updates(self) -> Mapping[str, Handler]:
        """Return the update methods by name."""
        return {}

    def queries(self) -> Mapping[str, Query]:
        """Return the queries by name."""
        return {}

    def private(self) -> Mapping[str, Private]:
        """Return the methods by name that only the canister itself may call."""
        return {}

    def begin(self, ctx: Context) -> None:
        """Start the work of the role. Called when the canister is installed."""

    def wake(self, ctx: Context) -> None:
        """Do the work that is due. Called in the round that `due` returned, or earlier."""

    def due(self, _now: int) -> int | None:
        """Return the next round in which the core wants to be woken, or `None`."""
        return None

    def saved(self) -> object:
        """Return the state for an upgrade."""
        return self.state

    def resume(self, state: object) -> None:
        """Continue with a saved state. Raises `StableError` if it is the state of another role."""
        self.state = restored(state, type(self.state))


class RoleCanister(Canister):
    """A canister that consists of cores."""

    def __init__(self, cores: Iterable[Core]) -> None:
        self.cores = tuple(cores)
        self.me = Principal()
        self.notifications = 0
        self.batch_items = 0
        self._woken: int | None = None
        """The round for which the timer is set."""
        self.confirmers: tuple[Callable[[Context, int], Confirmed], ...] = ()
        for core in self.cores:
            core.attach(self)

    def _handlers(self, method: str) -> list[Handler]:
        """Return the update methods of a name, of which several cores may have one each.

        The cores are asked for each message. A table in every canister would take a kilobyte, and
        an upgrade replaces objects behind the methods.
        """
        handlers: list[Handler] = []
        if self.confirmers and method == CONFIRM.name:
            handlers.append(self._confirm)
        for core in self.cores:
            handler = core.updates().get(method)
            if handler is not None:
                handlers.append(handler)
        return handlers

    def _query(self, method: str) -> Query | None:
        """Return the query of a name, or `None`. The last core that has it counts."""
        for core in reversed(self.cores):
            query = core.queries().get(method)
            if query is not None:
                return query
        return None

    def _private(self, method: str) -> Private | None:
        """Return the method of a name that only the canister itself may call, or `None`."""
        for core in self.cores:
            run = core.private().get(method)
            if run is not None:
                return run
        return None

    def confirmer(self, confirm: Callable[[Context, int], Confirmed], batch_items: int) -> None:
        """Add a function that knows notifications of this canister and takes their confirmation.

        A call may confirm at most `batch_items` of them (IC-30a).
        """
        self.confirmers = (*self.confirmers, confirm)
        self.batch_items = batch_items

    def offered(self) -> set[str]:
        """Return the names of all methods that others may call."""
        names = {CONFIRM.name} if self.confirmers else set()
        for core in self.cores:
            names.update(core.updates(), core.queries())
        return names

    def next_notification(self) -> int:
        """Return the id of the next notification. The ids of a canister count up from 1 (IC-25)."""
        self.notifications += 1
        return self.notifications

    def init(self, ctx: Context) -> None:
        """Start the work of each core."""
        self.me = ctx.me
        for core in self.cores:
            core.begin(ctx)
        self.rearm(ctx)

    def inspect(self, method: str, _caller: Principal, _arg: bytes) -> bool:
        """Return whether users may call the method. The standards' methods are refused (IC-10)."""
        return not method.startswith(ROLE_METHODS)

    def update(self, ctx: Context, method: str, arg: bytes) -> None:
        """Execute a method.

        If several cores have it, they get the message in turn until one has answered. Queries can
        be called as updates, too. Raises `Trap` if the method does not exist, the argument is
        unreadable, or a method of the canister itself is called by another one.
        """
        handlers = self._handlers(method)
        if handlers:
            values = _arguments(method, arg)
            for handler in handlers:
                handler(ctx, *values)
                if ctx.answered:
                    break
            else:
                # A core need not answer a one-way method, whose answer is always empty.
                if codec(method).method.mode == "oneway":
                    ctx.reply(codec(method).rets.message())
        elif (run := self._private(method)) is not None:
            if ctx.caller != self.me:
                raise Trap(f"{method} is for the canister itself")
            run(ctx, arg)
        elif self._query(method) is not None:
            ctx.reply(self.query(ctx.caller, ctx.time, method, arg))
        else:
            raise Trap(f"IC0536: there is no method {method}")
        self.rearm(ctx)

    def query(self, caller: Principal, time: int, method: str, arg: bytes) -> bytes:
        """Answer a query. Raises `Trap` if it does not exist or the argument is unreadable."""
        query = self._query(method)
        if query is None:
            raise Trap(f"IC0536: there is no query {method}")
        result = query(caller, time, *_arguments(method, arg))
        return codec(method).rets.message(result, proven=method in FLAT_RESULTS)

    def on_timer(self, ctx: Context) -> None:
        """Wake the cores."""
        self._woken = None
        for core in self.cores:
            core.wake(ctx)
        self.rearm(ctx)

    def ask(
        self,
        ctx: Context,
        to: Principal,
        method: Method[A, R],
        value: A,
        then: Got[R] = None,
        **how: Unpack[How],
    ) -> None:
        """Call a method and continue with its result. The call is bounded by default."""
        self.send(ctx, to, method, method.argument(value), then, **how)

    def send(
        self,
        ctx: Context,
        to: Principal,
        method: Method[A, R],
        arg: bytes,
        then: Got[R] = None,
        **how: Unpack[How],
    ) -> None:
        """Call a method with an argument that is already encoded.

        Senders that repeat a message encode it only once.
        """
        answered: Then | None = None
        if then is not None:
            answered = partial(self._answered, method, then, how.get("absent"))
        kind = how.get("kind", BOUNDED)
        cycles = how.get("cycles", 0)
        ctx.call(to, method.name, arg, answered, kind=kind, cycles=cycles)

    def _answered(
        self,
        method: Method[A, R],
        then: Callable[[Context, R | None], None],
        absent: Callable[[Context], None] | None,
        ctx: Context,
        answer: Answer,
    ) -> None:
        """Continue with the result of a call."""
        result: R | None = None
        if answer.code == 0:
            try:
                result = method.result(answer.data)
            except CandidError:
                result = None
        # A callee without the method rejects with the same code as one that is stopping, which will
        # have the method again.
        if absent is not None and answer.code == CANISTER_ERROR and answer.message != STOPPING:
            absent(ctx)
        else:
            then(ctx, result)
        self.rearm(ctx)

    def _confirm(self, ctx: Context, numbers: tuple[int, ...]) -> None:
        """Answer with Ok for each notification that was pending for the caller (IC-44).

        Each confirmer is called with every id, because the cores share one counter, and a confirmer
        knows only the ids of its own core.
        """
        results: list[Result[None]] = []
        for number in numbers[: self.batch_items]:
            answers = [confirmer(ctx, number) for confirmer in self.confirmers]
            if "Ok" in answers:
                results.append(_CONFIRMED)
            else:
                results.append(err("Unauthorized" if "Unauthorized" in answers else "NotFound"))
        if len(numbers) > len(results):
            results.append(too_many(self.batch_items))
        if results.count(_CONFIRMED) == len(results):
            ctx.reply(_all_accepted())
        else:
            itemized: Itemized = Variant("itemized", tuple(results))
            CONFIRM.reply(ctx, itemized)

    def pre_upgrade(self) -> bytes:
        """Return the counter of notifications and the states of all cores."""
        return encode((self.notifications, {core.name: core.saved() for core in self.cores}))

    def post_upgrade(self, ctx: Context, kept: bytes) -> None:
        """Restore the states of all cores and set the timer.

        A core that the former code did not have starts its work.
        """
        self.me = ctx.me
        self.notifications, states = cast("tuple[int, dict[str, object]]", decode(kept))
        for core in self.cores:
            if core.name in states:
                core.resume(states[core.name])
            else:
                core.begin(ctx)
        self._woken = None
        self.rearm(ctx)

    def snapshot(self) -> None:
        """Make no copy, because a core never traps after it has changed its state."""

    def restore(self, snapshot: object) -> None:
        """Do nothing, because an execution that trapped has not changed the state."""

    def rearm(self, ctx: Context) -> None:
        """Set the timer to the next round in which a core wants to be woken.

        This is at least the next round, even if a core is overdue.
        """
        now = ctx.now
        wanted: int | None = None
        # Like `earliest`, but without a generator: this runs after each execution.
        for core in self.cores:
            due = core.due(now)
            if due is None:
                continue
            if due <= now + 1:
                wanted = now + 1
                break
            if wanted is None or due < wanted:
                wanted = due
        if wanted != self._woken:
            self._woken = wanted
            ctx.set_timer(None if wanted is None else wanted * SECOND)


def earliest(dues: Iterable[int | None], now: int) -> int | None:
    """Return the first of some rounds, but at least the next one; `None` if there are no rounds.

    Reading stops at the first round that is at most the next one. A canister asks after each
    message, so cores yield first what is often due in the next round, and last what takes long to
    find.
    """
    first: int | None = None
    for due in dues:
        if due is None:
            continue
        if due <= now + 1:
            return now + 1
        if first is None or due < first:
            first = due
    return first


def restored(state: object, kind: type[S]) -> S:
    """Return a saved state with its type. Raises `StableError` if it has another type."""
    if not isinstance(state, kind):
        raise StableError(f"a state is {type(state).__name__}, not {kind.__name__}")
    return state


@cache
def _all_accepted() -> bytes:
    """Return the encoded answer to almost all confirmations."""
    accepted: AllAccepted = Variant("allAccepted")
    return CONFIRM.answer(accepted)


def _arguments(method: str, arg: bytes) -> tuple[object, ...]:
    """Decode the arguments of a method. Raises `Trap` if they are unreadable."""
    try:
        return codec(method).args.values(arg)
    except CandidError as error:
        raise Trap(f"the argument of {method} is unreadable: {error}") from error

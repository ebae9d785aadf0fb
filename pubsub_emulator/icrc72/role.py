"""Canisters made of roles: cores that share one identity, one timer and one counter of notifications (IC-36).

A core is a pure state machine: methods and answers go in, responses, calls and the next round in which it wants to be
woken come out. A role writes only after every check, so nothing traps half-way and no copy of the state is needed.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final, Literal, TypedDict, TypeVar, Unpack, cast

from pubsub_emulator.icrc72.ic.candid.types import Variant
from pubsub_emulator.icrc72.ic.canister import BOUNDED, CANISTER_ERROR, SECOND, STOPPING, Answer, Canister, Context
from pubsub_emulator.icrc72.ic.errors import CandidError, Trap
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.ic.stable import StableError, decode, encode
from pubsub_emulator.icrc72.messages import AllAccepted, Itemized, Result
from pubsub_emulator.icrc72.methods import CONFIRM, Method, err, ok, too_many
from pubsub_emulator.icrc72.services import codec

Handler = Callable[..., None]
Query = Callable[..., object]
A = TypeVar("A")
R = TypeVar("R")
S = TypeVar("S")
Confirmed = Literal["Ok", "Unauthorized", "NotFound"]
Got = Callable[[Context, R | None], None] | None
"""What is done with the result of a call: `None` when it was rejected or its result is unreadable."""

ROLE_METHODS: Final = ("icrc72_", "icrc77_")


class How(TypedDict, total=False):
    """How a call is made: bounded, unless it is of another kind."""

    kind: str
    absent: Callable[[Context], None] | None  # what is called if the callee has no such method
    cycles: int


class Core:
    """One role of a canister. By default it has no methods and is never woken."""

    name: str  # the key of its state in an upgrade

    state: object = None  # what it remembers, also over an upgrade

    role: "RoleCanister"  # the canister that it is part of

    def attach(self, role: "RoleCanister") -> None:
        """Called once, by the canister that it is part of."""
        self.role = role

    def updates(self) -> Mapping[str, Handler]:
        """Update methods by name. They are called with the context and the arguments, and reply."""
        return {}

    def queries(self) -> Mapping[str, Query]:
        """Queries by name. They are called with caller, time and the arguments, and return the results."""
        return {}

    def begin(self, ctx: Context) -> None:
        """Called when the canister is installed."""

    def wake(self, ctx: Context) -> None:
        """Called in the round that `due` returned, and possibly earlier."""

    def due(self, _now: int) -> int | None:
        """The next round in which the core wants to be woken, or `None`."""
        return None

    def saved(self) -> object:
        """The state that is kept over an upgrade."""
        return self.state

    def resume(self, state: object) -> None:
        """Continue with a saved state."""
        self.state = restored(state, type(self.state))


class RoleCanister(Canister):
    """A canister made of cores."""

    def __init__(self, cores: Iterable[Core]) -> None:
        self.cores = tuple(cores)
        self.me, self.notifications, self.batch_items = Principal(), 0, 0
        self._updates: dict[str, list[Handler]] = {}
        self._queries: dict[str, Query] = {}
        self._private: dict[str, Callable[[Context, bytes], None]] = {}
        self._woken: int | None = None
        self.confirmers: list[Callable[[Context, int], Confirmed]] = []
        for core in self.cores:
            core.attach(self)
        self._wire()

    def _wire(self) -> None:
        self._updates.clear()
        if self.confirmers:
            self._updates["icrc72_confirm_notifications"] = [self._confirm]
        for core in self.cores:
            for name, handler in core.updates().items():
                self._updates.setdefault(name, []).append(handler)
            self._queries.update(core.queries())

    def confirmer(self, confirm: Callable[[Context, int], Confirmed], batch_items: int) -> None:
        """Have notifications that are confirmed here, at most `batch_items` in one call (IC-30a)."""
        self.confirmers.append(confirm)
        self.batch_items = batch_items

    def offered(self) -> set[str]:
        """The names of all methods that others may call."""
        return {*self._updates, *self._queries}

    def private(self, method: str, run: Callable[[Context, bytes], None]) -> None:
        """Have a method that only the canister itself may call."""
        self._private[method] = run

    def next_notification(self) -> int:
        """An id for a notification: they count up per canister (IC-25)."""
        self.notifications += 1
        return self.notifications

    def init(self, ctx: Context) -> None:
        """Let each core begin."""
        self.me = ctx.me
        for core in self.cores:
            core.begin(ctx)
        self.rearm(ctx)

    def inspect(self, method: str, _caller: Principal, _arg: bytes) -> bool:
        """Users call no updates of the standards (IC-10)."""
        return not method.startswith(ROLE_METHODS)

    def update(self, ctx: Context, method: str, arg: bytes) -> None:
        """Execute a method of the first core that takes it. Raises `Trap` when the argument is unreadable."""
        handlers = self._updates.get(method)
        if handlers is not None:
            values = _arguments(method, arg)
            for handler in handlers:
                handler(ctx, *values)
                if ctx.answered:
                    break
            else:
                if codec(method).method.mode == "oneway":
                    ctx.reply(codec(method).rets.encode())
        elif method in self._private:
            if ctx.caller != self.me:
                raise Trap(f"{method} is for the canister itself")
            self._private[method](ctx, arg)
        elif method in self._queries:
            ctx.reply(self.query(ctx.caller, ctx.time, method, arg))
        else:
            raise Trap(f"IC0536: there is no method {method}")
        self.rearm(ctx)

    def query(self, caller: Principal, time: int, method: str, arg: bytes) -> bytes:
        """Answer a query."""
        query = self._queries.get(method)
        if query is None:
            raise Trap(f"IC0536: there is no query {method}")
        return codec(method).rets.encode(query(caller, time, *_arguments(method, arg)))

    def on_timer(self, ctx: Context) -> None:
        """Wake the cores."""
        self._woken = None
        for core in self.cores:
            core.wake(ctx)
        self.rearm(ctx)

    def ask(
        self, ctx: Context, to: Principal, method: Method[A, R], value: A, then: Got[R] = None, **how: Unpack[How]
    ) -> None:
        """Call a method of the standards and read its result."""
        self.send(ctx, to, method, method.argument(value), then, **how)

    def send(
        self, ctx: Context, to: Principal, method: Method[A, R], arg: bytes, then: Got[R] = None, **how: Unpack[How]
    ) -> None:
        """Call a method with an argument that is encoded already."""
        absent = how.get("absent")

        def answered(ctx: Context, answer: Answer) -> None:
            result: R | None = None
            with suppress(CandidError):
                result = method.result(answer.data) if answer.ok else None
            if absent is not None and answer.code == CANISTER_ERROR and answer.message != STOPPING:
                absent(ctx)
            elif then is not None:
                then(ctx, result)
            self.rearm(ctx)

        kind, cycles = how.get("kind", BOUNDED), how.get("cycles", 0)
        ctx.call(to, method.name, arg, answered if then is not None else None, kind=kind, cycles=cycles)

    def _confirm(self, ctx: Context, numbers: tuple[int, ...]) -> None:
        """Answer for each notification: Ok where it was pending and the caller's (IC-44)."""
        results: list[Result[None]] = []
        for number in numbers[: self.batch_items]:
            said = [each(ctx, number) for each in self.confirmers]
            refusal = err("Unauthorized" if "Unauthorized" in said else "NotFound")
            results.append(ok(None) if "Ok" in said else refusal)
        if len(numbers) > len(results):
            results.append(too_many(self.batch_items))
        accepted: AllAccepted = Variant("allAccepted")
        itemized: Itemized = Variant("itemized", tuple(results))
        CONFIRM.reply(ctx, accepted if all(each.tag == "Ok" for each in results) else itemized)

    def pre_upgrade(self) -> bytes:
        """The states of all cores."""
        return encode((self.notifications, {core.name: core.saved() for core in self.cores}))

    def post_upgrade(self, ctx: Context, kept: bytes) -> None:
        """Continue with the states that were kept; timers are set again."""
        self.me = ctx.me
        self.notifications, states = cast("tuple[int, dict[str, object]]", decode(kept))
        for core in self.cores:
            if core.name in states:
                core.resume(states[core.name])
            else:
                core.begin(ctx)
        self._wire()
        self._woken = None
        self.rearm(ctx)

    def snapshot(self) -> None:
        """Nothing: a role traps before it writes, or not at all."""

    def restore(self, snapshot: object) -> None:
        """Nothing was written."""

    def rearm(self, ctx: Context) -> None:
        """Set the timer to the next round in which a core wants to be woken."""
        dues = [due for core in self.cores if (due := core.due(ctx.now)) is not None]
        wanted = max(min(dues), ctx.now + 1) if dues else None
        if wanted != self._woken:
            self._woken = wanted
            ctx.set_timer(None if wanted is None else wanted * SECOND)


def restored(state: object, kind: type[S]) -> S:
    """A saved state as what it is. Raises `StableError` when it is something else."""
    if not isinstance(state, kind):
        raise StableError(f"a state is {type(state).__name__}, not {kind.__name__}")
    return state


def _arguments(method: str, arg: bytes) -> tuple[object, ...]:
    try:
        return codec(method).args.decode(arg)
    except CandidError as error:
        raise Trap(f"the argument of {method} is unreadable: {error}") from error

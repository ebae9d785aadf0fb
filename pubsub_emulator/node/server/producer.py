"""Builds the blocks of a network in one thread, on request, on demand or at intervals (ND-3).

All changes are made under one lock. The results of a step become visible together when it is
complete, so that readers need no lock and never wait.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from pubsub_emulator.emulator.network import actions
from pubsub_emulator.emulator.network.actions import Action
from pubsub_emulator.node.chain.block import RELAY, Chain, Moment
from pubsub_emulator.node.chain.journal import BadJournal, Journal
from pubsub_emulator.node.chain.live import LiveNetwork
from pubsub_emulator.node.chain.timeline import Advance, CannotRewind, Timeline
from pubsub_emulator.node.pool import Pool
from pubsub_emulator.node.rpc.errors import INTERNAL_ERROR, RpcError
from pubsub_emulator.node.server.beside import Beside
from pubsub_emulator.node.server.options import BadOption, Build, Options
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.types import ParaId

T = TypeVar("T")
P = ParamSpec("P")

READING: Final = 1
"""The number of threads for calls that read a lot."""
EXECUTING: Final = 2
"""The number of threads for calls that run the runtime. With two, a call of several seconds does
not block all others.
"""
AT_ONCE: Final = 16
"""The maximum number of successive steps for ready extrinsics. Then other requests have a turn."""
_BREATH: Final = 0.002
"""The time in seconds after which `breathe` lets other tasks run."""
_FIRST_BLOCKS: Final = 64
"""The maximum number of relay blocks until each parachain has built its first block."""

log: Final = logging.getLogger("pubsub.node")


def _ends() -> RpcError:
    return RpcError(INTERNAL_ERROR, "Internal error", "the node ends")


def _whole(
    method: Callable[Concatenate["Producer", P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["Producer", P], Coroutine[Any, Any, T]]:
    """Run a method of `Producer` under the lock, and complete it even if the caller is cancelled.

    Otherwise a client that disconnects could interrupt a step after the network has changed and
    before the timeline has.
    """

    @wraps(method)
    async def run(producer: "Producer", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await producer.to_its_end(method(producer, *args, **kwargs))

    return run


class Writer(Protocol):
    """The destination of a journal."""

    def action(self, action: Action) -> None:
        """Write an action that the next step contains."""

    def step(self, moment: Moment) -> None:
        """Write a completed step."""


class StepFailed(PubsubError):
    """A step that raised an error and was then made without the requested actions."""


@dataclass(eq=False)
class Producer:
    """Builds the blocks of a network. It is the node's `Control`."""

    live: LiveNetwork
    """The network that is stepped."""
    timeline: Timeline
    """The timeline that receives the new moments."""
    options: Options
    announce: Callable[[Advance], None]
    """Called after each step and rewind."""
    pools: Mapping[Chain, Pool]
    """The pools whose ready extrinsics go into blocks."""
    reject: Callable[[Chain, Iterable[bytes]], None]
    """Called with a chain and the extrinsics that made its block fail."""
    journal: Writer | None = None
    """The journal to write, if any."""
    floor: int = 0
    """The relay height below which there are no rewinds."""
    broken: Exception | None = None
    """The error because of which no block can be built until a rewind."""

    def __post_init__(self) -> None:
        self.mode = self.options.build
        self._lock = asyncio.Lock()
        self._wake = asyncio.Event()
        self._mode_changed = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="network")
        self._reading = Beside(READING)
        self._executing = Beside(EXECUTING)
        self._under_way: dict[asyncio.Future[Any], None] = {}
        """The requests that are being processed. The dictionary is an ordered set."""
        self._ending = False
        """Whether steps are refused because the node is stopping."""
        self._ended = False
        """Whether all requests are refused because the node has stopped."""
        self._breath = 0.0
        """The time at which `breathe` last let other tasks run."""

    # Life

    async def start(self) -> None:
        """Build blocks until every chain has a final block after its first one.

        Raises `BadOption` if a parachain builds none.
        """
        async with self._lock:
            missing = list(self.timeline.views)
            for _ in range(_FIRST_BLOCKS + self.options.finality):
                missing = [
                    chain
                    for chain, view in self.timeline.views.items()
                    if view.final is view.genesis
                ]
                if not missing:
                    break
                for chain in missing:
                    if (
                        chain is not RELAY
                        and self.timeline.views[chain].best is self.timeline.views[chain].genesis
                    ):
                        self.live.apply(actions.Turn(para=chain))
                await self._step()
            else:
                raise BadOption(
                    f"no block of parachain {missing[0]} became final: its collators build none"
                )
        self.floor = self.timeline.newest.number

    async def replay(self, journal: Journal, name: str) -> None:
        """Build all blocks of a journal again.

        `name` is the file's name in errors. Raises `BadJournal` if a block differs or cannot be
        built.
        """
        for entry in journal.entries:
            await self._redo(entry.actions, f"{name}:{entry.line}")
            try:
                moment = await self.build()
            except PubsubError as error:
                raise BadJournal(
                    f"{name}:{entry.line}: relay block {entry.number} cannot be built: {error}"
                ) from error
            if moment.number != entry.number or moment.relay.hash != entry.relay:
                raise BadJournal(
                    f"{name}:{entry.line}: relay block {entry.number} was {hexed(entry.relay)}, "
                    f"but is now block {moment.number}, {hexed(moment.relay.hash)}"
                )
        await self._redo(journal.rest, name)

    async def _redo(self, todo: Iterable[Action], place: str) -> None:
        """Repeat actions of a journal. Raises `BadJournal`, which names the `place`."""
        for action in todo:
            try:
                if isinstance(action, actions.Rewind):
                    await self.rewind(self._stored(action.relay))
                else:
                    await self.act((action,))
            except PubsubError as error:
                raise BadJournal(f"{place}: {action.kind}: {error}") from error

    def _stored(self, relay: bytes) -> Moment:
        """Return the moment of a relay block by its hash. Raises `CannotRewind`."""
        block = self.timeline.block(RELAY, relay)
        moment = None if block is None else self.timeline.moment_of(block)
        if moment is None:
            raise CannotRewind(f"relay block {hexed(relay)} is not stored")
        return moment

    async def run(self) -> None:
        """Build blocks in the present mode until cancelled."""
        while True:
            self._mode_changed.clear()
            if self.mode is Build.INTERVAL:
                await self._run_interval()
            elif self.mode is Build.MANUAL:
                await self._mode_changed.wait()
            else:
                await self._run_on_demand()

    async def close(self) -> None:
        """Wait for the requests that are being processed, then stop."""
        self._ending = True
        if self._under_way:
            await asyncio.wait(self._under_way)
        async with self._lock:
            self._ended = True
            self._thread.shutdown(wait=True)
            self._reading.close()
            self._executing.close()
            self.live.finish()

    async def _run_interval(self) -> None:
        """Build at regular times.

        If a step takes longer than the interval, the next one follows at once, and the times of all
        later ones shift.
        """
        clock = asyncio.get_running_loop().time
        due = clock()
        while self.mode is Build.INTERVAL:
            due = max(due + self.options.interval / 1000, clock())
            try:
                async with asyncio.timeout_at(due):
                    await self._mode_changed.wait()
            except TimeoutError:
                await self._quietly()

    async def _run_on_demand(self) -> None:
        """Build when a step is requested, until the mode changes."""
        while self.mode in {Build.INSTANT, Build.SINGLE}:
            waiting = asyncio.ensure_future(self._wake.wait())
            changed = asyncio.ensure_future(self._mode_changed.wait())
            try:
                await asyncio.wait((waiting, changed), return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.cancel()
                changed.cancel()
            if self._mode_changed.is_set():
                return
            self._wake.clear()
            # Requests that arrive in the same turn of the event loop share the step.
            await asyncio.sleep(0)
            for _ in range(AT_ONCE):
                await self._quietly()
                if self.broken is not None or not self._ready():
                    break
            for _ in range(self.options.settle):
                await self._quietly()

    async def _quietly(self) -> None:
        """Build a block without a caller to raise errors to. A failure is logged."""
        if self.broken is not None:
            return
        try:
            await self.build()
        except PubsubError as error:
            log.warning("%s", error)

    def _ready(self) -> bool:
        return any(pool.ready_count for pool in self.pools.values())

    # Requests of methods (`Control`)

    @_whole
    async def act(self, todo: Iterable[Action]) -> list[int | None]:
        """Apply all actions before the next step, or leave the network unchanged.

        Raises `PubsubError`.
        """
        return await self._act(todo)

    @_whole
    async def build(self, todo: Iterable[Action] = ()) -> Moment:
        """Apply all actions and build a relay block.

        Raises `PubsubError` if an action is refused or the step fails, and `RpcError` if no block
        can be built.
        """
        actions_first = list(todo)
        if actions_first:
            await self._act(actions_first)
        return await self._step()

    def ask(self) -> None:
        """Request a step, if blocks are built on demand."""
        self._wake.set()

    @_whole
    async def rewind(self, moment: Moment, todo: Iterable[Action] = ()) -> None:
        """Return the network to a stored moment and apply actions there. Raises `PubsubError`."""
        if self._ended:
            raise _ends()
        if moment.saved is None or moment.number < self.floor:
            raise CannotRewind(f"the network cannot return to relay block {moment.number}")
        advance = self.timeline.rewind(moment)
        await self._in_thread(lambda: self.live.rewind(moment))
        self.broken = None
        if self.journal is not None:
            self.journal.action(actions.Rewind(relay=moment.relay.hash))
        self.announce(advance)
        await self._act(todo)

    @_whole
    async def aside(self, work: Callable[[LiveNetwork], T]) -> T:
        """Call `work` between two steps, in the thread that steps.

        `work` must leave the network as it is.
        """
        return await self._in_thread(lambda: work(self.live))

    async def beside(self, work: Callable[[], T], *, executing: bool = False) -> T:
        """Call `work` in another thread. Raises `RpcError` if the node is stopping."""
        if self._ended:
            raise _ends()
        threads = self._executing if executing else self._reading
        try:
            return await threads.run(work)
        except RuntimeError:
            # The node can stop while the call waits for a thread. Other errors are those of `work`.
            if self._ended:
                raise _ends() from None
            raise

    def set_mode(self, mode: str) -> None:
        """Set the mode of building by its name: `instant`, `single`, `interval` or `manual`."""
        self.mode = Build(mode)
        self._mode_changed.set()

    async def breathe(self) -> None:
        """Let other tasks run if this last happened more than `_BREATH` seconds ago."""
        now = asyncio.get_running_loop().time()
        if now - self._breath > _BREATH:
            await asyncio.sleep(0)
            self._breath = asyncio.get_running_loop().time()

    # Helpers, under the lock

    async def _act(self, todo: Iterable[Action]) -> list[int | None]:
        return await self._in_thread(lambda: self.live.apply_all(todo))

    async def _step(self) -> Moment:
        """Build one relay block, record it and announce it. The caller must hold the lock.

        If the step raises an error, a block is built without the pending actions and without
        extrinsics, which are dropped from the pools (ND-31). Raises `StepFailed` after that.
        """
        if self._ending:
            raise _ends()
        if self.broken is not None:
            raise self._refused()
        failure: Exception | None = None
        offers = self._offers()
        contents: Sequence[Action] = [*self.live.pending, *offers]
        try:
            moment = await self._in_thread(lambda: self._stepped(offers))
        except Exception as error:
            log.exception("a step failed and is repeated without %d requests", len(contents))
            failure = error
            contents = ()
            moment = await self._step_without_actions()
            for offer in offers:
                self.reject(None if offer.chain is None else ParaId(offer.chain), offer.extrinsics)
        if self.journal is not None:
            for action in contents:
                self.journal.action(action)
            self.journal.step(moment)
        self.announce(self.timeline.extend(moment))
        if failure is not None:
            raise StepFailed(f"the step failed and was repeated without the requests: {failure}")
        return moment

    def _offers(self) -> list[actions.Offer]:
        """Return the ready extrinsics of all pools as actions."""
        most = 1 if self.mode is Build.SINGLE else None
        ready = (
            (chain, pool.ready()[:most]) for chain, pool in self.pools.items() if pool.ready_count
        )
        return [actions.Offer(chain=chain, extrinsics=extrinsics) for chain, extrinsics in ready]

    def _stepped(self, offers: Iterable[Action]) -> Moment:
        """Apply the offers and build one relay block. This runs in the thread that steps."""
        for offer in offers:
            self.live.apply(offer)
        return self.live.step()

    async def _step_without_actions(self) -> Moment:
        """Build a block without actions. If that fails too, refuse all steps until a rewind.

        The failed step has already discarded the actions.
        """
        try:
            return await self._in_thread(self.live.step)
        except Exception as error:
            log.exception("a step failed again: no block can be built until a rewind")
            self.broken = error
            raise self._refused() from error

    def _refused(self) -> RpcError:
        return RpcError(
            INTERNAL_ERROR, "Internal error", f"no block can be built until a rewind: {self.broken}"
        )

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Call `work` in the thread that steps. Raises `RpcError` if the node has stopped."""
        if self._ended:
            raise _ends()
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def to_its_end(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` under the lock and return its result.

        The work completes even if the caller is cancelled.
        """

        async def locked() -> T:
            async with self._lock:
                return await work

        task = asyncio.ensure_future(locked())
        self._under_way[task] = None
        task.add_done_callback(self._done)
        return await asyncio.shield(task)

    def _done(self, task: asyncio.Future[Any]) -> None:
        self._under_way.pop(task, None)
        if not task.cancelled():
            # asyncio warns of exceptions that are never retrieved. If the caller was cancelled,
            # only this line retrieves the exception.
            task.exception()

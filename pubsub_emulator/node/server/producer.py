"""Steps the network in one thread, under one lock; what a step did is visible whole, and readers never wait (ND-3)."""

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
"""Calls that read at length, at once."""
EXECUTING: Final = 2
"""Calls that execute the runtime, at once: one of seconds does not keep the others waiting."""
AT_ONCE: Final = 16
"""Steps that are built for what is ready, at most, before others have a turn."""
_BREATH: Final = 0.002
_FIRST_BLOCKS: Final = 64

log: Final = logging.getLogger("pubsub.node")


def _ends() -> RpcError:
    return RpcError(INTERNAL_ERROR, "Internal error", "the node ends")


def _whole(
    method: Callable[Concatenate["Producer", P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["Producer", P], Coroutine[Any, Any, T]]:
    """Decorator: under the lock, and to its end even when whoever wants it goes away meanwhile: no step is lost."""

    @wraps(method)
    async def run(producer: "Producer", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await producer.to_its_end(method(producer, *args, **kwargs))

    return run


class Writer(Protocol):
    """The destination of a journal."""

    def action(self, action: Action) -> None:
        """Something was asked for that the next step has."""

    def step(self, moment: Moment) -> None:
        """A step was made."""


class StepFailed(PubsubError):
    """A step raised because of what was asked for; it was made without."""


@dataclass(eq=False)
class Producer:
    """Steps a network and tells what became of it."""

    live: LiveNetwork
    timeline: Timeline
    options: Options
    announce: Callable[[Advance], None]
    pools: Mapping[Chain, Pool]
    reject: Callable[[Chain, Iterable[bytes]], None]
    journal: Writer | None = None
    floor: int = 0
    """The relay height below which nothing is rewound."""
    broken: Exception | None = None
    """Why no step can be built until a rewind."""

    def __post_init__(self) -> None:
        self.mode = self.options.build
        self._lock = asyncio.Lock()
        self._wake = asyncio.Event()
        self._mode_changed = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="network")
        self._reading = Beside(READING)
        self._executing = Beside(EXECUTING)
        self._under_way: dict[asyncio.Future[Any], None] = {}
        self._ending = False  # no step is begun any more
        self._ended = False  # nothing is done any more
        self._breath = 0.0

    # Life

    async def start(self) -> None:
        """Build until every chain has a final block 1. Raises `BadOption` where a chain builds none."""
        async with self._lock:
            missing = list(self.timeline.views)
            for _ in range(_FIRST_BLOCKS + self.options.finality):
                missing = [chain for chain, view in self.timeline.views.items() if view.final is view.genesis]
                if not missing:
                    break
                for chain in missing:
                    if chain is not RELAY and self.timeline.views[chain].best is self.timeline.views[chain].genesis:
                        self.live.apply(actions.Turn(para=chain))
                await self._step()
            else:
                raise BadOption(f"no block of parachain {missing[0]} became final: its collators build none")
        self.floor = self.timeline.newest.number

    async def replay(self, journal: Journal, name: str) -> None:
        """Do all of a journal again; `name` is what errors call it. Raises `BadJournal` where a block differs."""
        for entry in journal.entries:
            await self._redo(entry.actions, f"{name}:{entry.line}")
            try:
                moment = await self.build()
            except PubsubError as error:
                raise BadJournal(f"{name}:{entry.line}: relay block {entry.number} cannot be built: {error}") from error
            if moment.number != entry.number or moment.relay.hash != entry.relay:
                raise BadJournal(
                    f"{name}:{entry.line}: relay block {entry.number} was {hexed(entry.relay)}, "
                    f"and is block {moment.number}, {hexed(moment.relay.hash)}, now"
                )
        await self._redo(journal.rest, name)

    async def _redo(self, todo: Iterable[Action], place: str) -> None:
        for action in todo:
            try:
                if isinstance(action, actions.Rewind):
                    await self.rewind(self._kept(action.relay))
                else:
                    await self.act((action,))
            except PubsubError as error:
                raise BadJournal(f"{place}: {action.kind}: {error}") from error

    def _kept(self, relay: bytes) -> Moment:
        block = self.timeline.block(RELAY, relay)
        moment = None if block is None else self.timeline.moment_of(block)
        if moment is None:
            raise CannotRewind(f"relay block {hexed(relay)} is not kept")
        return moment

    async def run(self) -> None:
        """Build as the mode says, until cancelled."""
        while True:
            self._mode_changed.clear()
            if self.mode is Build.INTERVAL:
                await self._run_interval()
            elif self.mode is Build.MANUAL:
                await self._mode_changed.wait()
            else:
                await self._run_on_demand()

    async def close(self) -> None:
        """Let the step that is under way come to its end, then end."""
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
            await asyncio.sleep(0)  # what else arrives in this turn shares the step
            for _ in range(AT_ONCE):
                await self._quietly()
                if self.broken is not None or not self._ready():
                    break
            for _ in range(self.options.settle):
                await self._quietly()

    async def _quietly(self) -> None:
        """A step that nobody waits for: why it fails is logged."""
        if self.broken is not None:
            return
        try:
            await self.build()
        except PubsubError as error:
            log.warning("%s", error)

    def _ready(self) -> bool:
        return any(pool.ready_count for pool in self.pools.values())

    # What methods ask for

    @_whole
    async def act(self, todo: Iterable[Action]) -> list[int | None]:
        """Do all of it before the next step, or nothing. Raises `PubsubError`."""
        return await self._act(todo)

    @_whole
    async def build(self, todo: Iterable[Action] = ()) -> Moment:
        """Do all of it and build a relay block. Raises `PubsubError`, or `RpcError` where nothing can be built."""
        asked = list(todo)
        if asked:
            await self._act(asked)
        return await self._step()

    def ask(self) -> None:
        """A step is wanted, if blocks are built on demand."""
        self._wake.set()

    @_whole
    async def rewind(self, moment: Moment, todo: Iterable[Action] = ()) -> None:
        """Go back to a kept moment, and do all of it then. Raises `PubsubError`."""
        if self._ended:
            raise _ends()
        if moment.saved is None or moment.number < self.floor:
            raise CannotRewind(f"relay block {moment.number} cannot be gone back to")
        advance = self.timeline.rewind(moment)
        await self._in_thread(lambda: self.live.rewind(moment))
        self.broken = None
        if self.journal is not None:
            self.journal.action(actions.Rewind(relay=moment.relay.hash))
        self.announce(advance)
        await self._act(todo)

    @_whole
    async def aside(self, work: Callable[[LiveNetwork], T]) -> T:
        """Run `work` between two steps in the thread that steps; it must leave the network as it is."""
        return await self._in_thread(lambda: work(self.live))

    async def beside(self, work: Callable[[], T], *, executing: bool = False) -> T:
        """Run `work` in a thread beside the event loop. Raises `RpcError` when the node ends."""
        if self._ended:
            raise _ends()
        try:
            return await (self._executing if executing else self._reading).run(work)
        except RuntimeError:
            if self._ended:
                raise _ends() from None
            raise

    def set_mode(self, mode: str) -> None:
        """Build in the mode called `mode`: `instant`, `single`, `manual` or an interval."""
        self.mode = Build(mode)
        self._mode_changed.set()

    async def breathe(self) -> None:
        """Let others go on after 10 ms of work."""
        now = asyncio.get_running_loop().time()
        if now - self._breath > _BREATH:
            await asyncio.sleep(0)
            self._breath = asyncio.get_running_loop().time()

    # Helpers, under the lock

    async def _act(self, todo: Iterable[Action]) -> list[int | None]:
        return await self._in_thread(lambda: self.live.apply_all(todo))

    async def _step(self) -> Moment:
        """One step. One that raises is made again without what was asked for (ND-31)."""
        if self._ending:
            raise _ends()
        if self.broken is not None:
            raise self._refused()
        failed: Exception | None = None
        offers = self._offers()
        done: Sequence[Action] = [*self.live.pending, *offers]
        try:
            moment = await self._in_thread(lambda: self._stepped(offers))
        except Exception as error:
            log.exception("a step failed and is made again without %d requests", len(done))
            failed, done = error, ()
            moment = await self._again()
            for offer in offers:
                self.reject(None if offer.chain is None else ParaId(offer.chain), offer.extrinsics)
        if self.journal is not None:
            for action in done:
                self.journal.action(action)
            self.journal.step(moment)
        self.announce(self.timeline.extend(moment))
        if failed is not None:
            raise StepFailed(f"the step failed and was made without what was asked for: {failed}")
        return moment

    def _offers(self) -> list[actions.Offer]:
        most = 1 if self.mode is Build.SINGLE else None
        ready = ((chain, pool.ready()[:most]) for chain, pool in self.pools.items() if pool.ready_count)
        return [actions.Offer(chain=chain, extrinsics=extrinsics) for chain, extrinsics in ready]

    def _stepped(self, offers: Iterable[Action]) -> Moment:
        for offer in offers:
            self.live.apply(offer)
        return self.live.step()

    async def _again(self) -> Moment:
        try:
            return await self._in_thread(self.live.step)
        except Exception as error:
            log.exception("a step failed again: no block can be built until a rewind")
            self.broken = error
            raise self._refused() from error

    def _refused(self) -> RpcError:
        return RpcError(INTERNAL_ERROR, "Internal error", f"no block can be built until a rewind: {self.broken}")

    async def _in_thread(self, work: Callable[[], T]) -> T:
        if self._ended:
            raise _ends()
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def to_its_end(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work` under the lock, which comes to its end even when whoever waits goes away."""

        async def locked() -> T:
            async with self._lock:
                return await work

        task = asyncio.ensure_future(locked())
        self._under_way[task] = None
        task.add_done_callback(self._came_to_its_end)
        return await asyncio.shield(task)

    def _came_to_its_end(self, task: asyncio.Future[Any]) -> None:
        self._under_way.pop(task, None)
        if not task.cancelled():
            task.exception()  # whoever waited for it may be gone

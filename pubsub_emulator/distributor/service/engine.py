"""The shell around the state machine: inputs go to the store in batches, effects go out, their ends come back.

One thread talks to the store. What waits while it works becomes the next transaction, so that many inputs cost one
round trip. Effects are begun only after their transaction was stored. A process that dies loses what was under way in
it and nothing else: leases lapse, and due rows bring it back.
"""

import asyncio
import contextlib
import logging
import secrets
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeVar, cast

from pubsub_emulator.database.errors import StoreError
from pubsub_emulator.distributor.core import messages
from pubsub_emulator.distributor.core.reading import is_key
from pubsub_emulator.distributor.core.rules import Rules
from pubsub_emulator.distributor.core.states import Whereabouts, whereabouts
from pubsub_emulator.distributor.event import Event, Notice, legacy_notice
from pubsub_emulator.distributor.once import Store, Transaction
from pubsub_emulator.distributor.service.adapters import Adapter
from pubsub_emulator.distributor.service.metrics import Metrics
from pubsub_emulator.distributor.service.poster import Poster
from pubsub_emulator.distributor.service.waiting import Waiter, Waiting, in_log_order

log = logging.getLogger("pubsub.distributor")
T = TypeVar("T")

MOST_BATCH: Final = 64
"""Inputs in one transaction."""
POLL_SECONDS: Final = 0.2
DUE_AT_ONCE: Final = 100
ANSWER_SECONDS: Final = 30.0
LOOK_SECONDS: Final = 0.5
"""How often a client's event is looked at though nothing was told of it here; another replica may work on it."""
STORE_SECONDS: Final = 1.0
"""How long an end of an effect waits before it is told to a store again that was down."""
RETELL: Final = 5
CONCURRENCY: Final = 256
PAGE: Final = 1000
POSTPONED: Final = 60_000
MOST_KEYS: Final = 1024
"""Keys of webhooks that are remembered, so that only the first notification costs a question to the store."""


@dataclass(frozen=True)
class Settings:
    """Settings beside the rules: the third form of ID-32, and what each legacy adapter appends to the metadata."""

    types: tuple[str, ...] = ()
    metadata: tuple[str, ...] = ()
    chain_ids: Mapping[str, str] = field(default_factory=dict)
    grace: float = 10.0


DEFAULTS: Final = Settings()


@dataclass
class Reached:
    """Seconds of the monotonic clock at which an adapter last answered and last failed to; 0 for never."""

    answered: float = 0.0
    silent: float = 0.0


class Engine:
    """One process of a distributor."""

    def __init__(
        self, rules: Rules, store: Store, adapters: Mapping[str, Adapter], poster: Poster, settings: Settings = DEFAULTS
    ) -> None:
        self.rules = rules
        self.store = store
        self.adapters = adapters
        self.metrics = Metrics()
        self.reached = {name: Reached() for name in rules.networks}
        self._poster = poster
        self._settings = settings
        self._thread = ThreadPoolExecutor(1, "store")
        self._queue: deque[Waiting] = deque()
        self._filled = asyncio.Event()  # whether anything is in the queue
        self._tasks: set[asyncio.Task[None]] = set()
        self._loops: list[asyncio.Task[None]] = []
        self._limit = asyncio.Semaphore(CONCURRENCY)
        self._waiters: dict[str, Waiter] = {}
        self._keys: set[tuple[str, str | None, str]] = set()
        self._offset = 0
        self._stopping = False

    # life

    async def start(self) -> None:
        """Take inputs in, compare subscriptions, read logs, and do what is due, as soon as the store answers."""
        self._loops = [asyncio.create_task(self._serve_store()), asyncio.create_task(self._poll())]
        self._spawn(self._begin())
        for name in self.rules.networks:
            self._spawn(self._compare_profile(name))

    async def _compare_profile(self, network: str) -> None:
        if misfit := await self.adapters[network].misfit():
            fields = {"network": network, "error": misfit}
            log.warning("an adapter does not fit its profile", extra={"fields": fields})

    async def _begin(self) -> None:
        keys = {name: secrets.token_hex(16) for name in self.rules.networks}
        while not self._stopping:
            try:
                self._offset = await self.in_thread(self.store.now) - _monotonic()
                await self.tell(messages.Start(keys))
            except StoreError as error:
                log.warning("the store is down", extra={"fields": {"error": str(error)}})
                await asyncio.sleep(STORE_SECONDS)
            else:
                return

    async def stop(self) -> None:
        """Begin nothing new, let what is under way end for a while, and close the store; a second call does nothing."""
        if self._stopping:
            return
        self._stopping = True
        end = time.monotonic() + self._settings.grace
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._settings.grace)
        with contextlib.suppress(StoreError, asyncio.TimeoutError):  # what was told before this is stored after it
            await asyncio.wait_for(self.look(lambda _: None), max(end - time.monotonic(), STORE_SECONDS))
        for task in [*self._tasks, *self._loops]:
            task.cancel()
        await asyncio.gather(*self._tasks, *self._loops, return_exceptions=True)
        self._thread.shutdown(wait=True)
        self.store.close()

    async def in_thread(self, function: Callable[..., T], *arguments: object) -> T:
        """Call a method of the store. Raises `StoreError`."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(function, *arguments))

    # inputs

    async def tell(self, message: messages.Input) -> messages.Effects:
        """Apply an input. Returns its effects once they are stored and begun. Raises `StoreError`."""
        return (await self._wait(Waiting(message)))[0]

    async def tell_all(self, inputs: Sequence[messages.Input]) -> list[messages.Effects | StoreError]:
        """Apply several inputs. Returns for each its effects, or the error with which it was not stored."""
        ends = await asyncio.gather(*(self._wait(Waiting(each)) for each in inputs), return_exceptions=True)
        found: list[messages.Effects | StoreError] = []
        for end in ends:
            if isinstance(end, BaseException) and not isinstance(end, StoreError):
                raise end
            found.append(end if isinstance(end, StoreError) else end[0])
        return found

    def _wait(self, waiting: Waiting) -> "asyncio.Future[tuple[messages.Effects, Any]]":
        waiting.done = asyncio.get_running_loop().create_future()
        self._put(waiting)
        return waiting.done

    def _put(self, waiting: Waiting) -> None:
        self._queue.append(waiting)
        self._filled.set()

    async def _serve_store(self) -> None:
        while True:
            await self._filled.wait()
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), MOST_BATCH))]
            if not self._queue:
                self._filled.clear()
            await self._take_in(in_log_order(batch))

    async def _take_in(self, batch: list[Waiting]) -> None:
        try:
            found = await self.in_thread(self.store.transact, lambda tx: [each.take(self.rules, tx) for each in batch])
        except StoreError as error:
            self._fail(batch, error)
        except Exception as error:  # one input is a defect's: the others must not suffer
            if len(batch) > 1:
                for each in batch:
                    await self._take_in([each])
                return
            log.exception("a defect", extra={"fields": {"input": type(batch[0].message).__name__}})
            if isinstance(batch[0].message, messages.Due):
                await self._postpone(batch[0].message)
            self._fail(batch, error)
        else:
            self.metrics.count("inputs", len(batch))
            for each, effects in zip(batch, found, strict=True):
                for effect in effects[0]:
                    self._begin_effect(effect)
                if each.done is not None and not each.done.done():
                    each.done.set_result(effects)
                if self._waiters:
                    self._wake(each.message)

    def _wake(self, message: messages.Input | None) -> None:
        """Wake the clients that wait for an event once something was told of every network they wait for."""
        if isinstance(message, messages.Noticed):
            event_id = message.notice.id or ""
        elif isinstance(message, (messages.Answered, messages.Probed)):
            event_id = message.id
        else:
            return
        if event_id in self._waiters:
            self._waiters[event_id].hear(message.network)

    async def _postpone(self, due: messages.Due) -> None:
        """Postpone a due row that a step cannot take, so that it is not repeated at once."""

        def postpone(tx: Transaction) -> None:
            value = tx.get(due.table, due.key)
            if value is not None:
                tx.put(due.table, due.key, value, due=tx.now + POSTPONED)

        with contextlib.suppress(StoreError):
            await self.in_thread(self.store.transact, postpone)

    def _fail(self, waiting: list[Waiting], error: Exception) -> None:
        """Report an error to waiting callers. Ends of effects are repeated for some time; after that leases end."""
        for each in waiting:
            if each.done is not None:
                if not each.done.done():
                    each.done.set_exception(error)
            elif each.left and isinstance(error, StoreError):
                again = replace(each, left=each.left - 1)
                asyncio.get_running_loop().call_later(STORE_SECONDS, self._put, again)

    async def _poll(self) -> None:
        while not self._stopping:
            try:
                found = await self.in_thread(self.store.due, DUE_AT_ONCE)
                if found:
                    ends = await asyncio.gather(*map(self.tell, found), return_exceptions=True)
                    if any(isinstance(end, StoreError) for end in ends):
                        await asyncio.sleep(STORE_SECONDS)
            except StoreError:
                await asyncio.sleep(STORE_SECONDS)
                found = []
            if len(found) < DUE_AT_ONCE:
                await asyncio.sleep(POLL_SECONDS)

    # effects

    def _begin_effect(self, effect: messages.Effect) -> None:
        if isinstance(effect, messages.Note):
            self.metrics.count("notes", kind=effect.kind)
            log.info(effect.kind, extra={"fields": {"place": effect.place, "id": effect.id, "detail": effect.detail}})
        elif not isinstance(effect, messages.Reply) and not self._stopping:
            self._spawn(self._perform(effect))

    def _spawn(self, what: Coroutine[object, None, None]) -> None:
        task = asyncio.create_task(what)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("a defect", exc_info=task.exception())

    async def _perform(self, effect: messages.Effect) -> None:
        async with self._limit:
            end = await self._end_of(effect)
        if end is not None:
            self._put(Waiting(end, left=RETELL))

    async def _end_of(self, effect: messages.Effect) -> messages.Input | None:
        match effect:
            case messages.Call():
                return await self._call(effect)
            case messages.Post():
                return await self._post(effect)
            case messages.Probe():
                found = await self.adapters[effect.network].probe(effect.id, effect.since, effect.entity)
                self._note_reached(effect.network, answered=found.there is not None)
                return messages.Probed(effect.network, effect.id, found.there, effect.asked_at, found.hidden)
            case messages.Read():
                page = await self.adapters[effect.network].read(effect.after, effect.limit, effect.since)
                self._note_reached(effect.network, answered=page is not None)
                return messages.Paged(effect.network, effect.after, page)
            case messages.List():
                return messages.Listed(effect.network, await self.adapters[effect.network].hooks())
            case messages.MakeHook():
                return await self.make_hook(effect)
            case messages.DropHook():
                await self.adapters[effect.network].drop(effect.subscription)
        return None

    def _note_reached(self, network: str, *, answered: bool) -> None:
        setattr(self.reached[network], "answered" if answered else "silent", time.monotonic())

    def store_time(self) -> int:
        """The store's clock, as known here."""
        return _monotonic() + self._offset

    async def _call(self, effect: messages.Call) -> messages.Input:
        if self.store_time() > effect.before:
            return messages.Answered(effect.network, effect.id, messages.Unknown("not begun in time"))
        begun = time.monotonic()
        answer = await self.adapters[effect.network].publish(effect.event)
        self.metrics.observe("call_seconds", time.monotonic() - begun)
        self.metrics.count("calls", network=effect.network, outcome=type(answer).__name__.lower())
        self._note_reached(effect.network, answered=not isinstance(answer, messages.Unknown))
        return messages.Answered(effect.network, effect.id, answer)

    async def _post(self, effect: messages.Post) -> messages.Input:
        if self.store_time() > effect.before:
            return messages.Posted(effect.subscription, effect.id, None)
        begun = time.monotonic()
        status = await self._poster.post(effect)
        self.metrics.observe("post_seconds", time.monotonic() - begun)
        self.metrics.count("posts", outcome="none" if status is None else f"{status // 100}xx")
        if status is not None and status // 100 == 2:
            self.metrics.observe("block_to_post_seconds", max(time.time() - effect.notice.time, 0))
        return messages.Posted(effect.subscription, effect.id, status)

    async def make_hook(self, effect: messages.MakeHook) -> messages.Hooked:
        """Subscribe on an adapter."""
        types, metadata = effect.types, effect.metadata
        if effect.form == "star":
            types = ("*",)
        elif effect.form == "types":
            types, metadata = self._settings.types, self._settings.metadata
            if not types:
                return messages.Hooked(effect.network, effect.form, accepted=False)
        accepted = await self.adapters[effect.network].hook(effect.endpoint, types, metadata)
        return messages.Hooked(effect.network, effect.form, accepted)

    # clients

    async def where(self, event_id: str) -> Whereabouts:
        """The states of an id on all networks. Raises `StoreError`."""
        return await self.look(partial(whereabouts, self.rules, event_id=event_id))

    async def look(self, function: Callable[[Transaction], T]) -> T:
        """The result of a function that only reads, run in the next transaction. Raises `StoreError`."""
        return cast("T", (await self._wait(Waiting(None, function)))[1])

    async def is_key(self, network: str, subscription: str | None, key: str) -> bool:
        """Whether webhooks carry that key; a right one is remembered. Raises `StoreError`."""
        place = (network, subscription, key)
        if place not in self._keys and await self.look(lambda tx: is_key(tx, *place)):
            self._keys = {*self._keys, place} if len(self._keys) < MOST_KEYS else {place}
        return place in self._keys

    def as_published(self, network: str, notice: Notice) -> Notice:
        """A notice as its event was published: without what a legacy adapter appended (ID-1)."""
        chain_id = self._settings.chain_ids.get(network)
        return notice if chain_id is None else legacy_notice(notice, chain_id)

    async def publish(self, event_id: str, event: Event) -> tuple[messages.Reply, Whereabouts | None]:
        """Publish and wait until all adapters have answered, at most 30 s. Raises `StoreError`."""
        end = time.monotonic() + ANSWER_SECONDS
        waiter = self._waiters.setdefault(event_id, Waiter())
        waiter.users += 1
        try:
            waiting = Waiting(messages.Publish(event_id, event), partial(whereabouts, self.rules, event_id=event_id))
            effects, found = await self._wait(waiting)
            reply = messages.reply_of(effects)
            if reply.code:
                return reply, None
            while (left := end - time.monotonic()) > 0 and any(each.waiting for each in found.networks):
                await waiter.wait({each.name for each in found.networks if each.waiting}, min(left, LOOK_SECONDS))
                found = await self.where(event_id)
            return reply, found
        finally:
            waiter.users -= 1
            if not waiter.users:
                del self._waiters[event_id]

    async def read_all(self, table: str) -> list[tuple[str, str]]:
        """A whole table. Raises `StoreError`."""
        found: list[tuple[str, str]] = []
        while True:
            part = await self.in_thread(self.store.rows, table, found[-1][0] if found else "", PAGE)
            found += part
            if len(part) < PAGE:
                return found


def _monotonic() -> int:
    return time.monotonic_ns() // 1_000_000

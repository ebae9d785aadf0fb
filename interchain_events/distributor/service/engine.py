"""The engine, which runs the state machine over a store and carries out its effects.

One thread talks to the store. The inputs that arrive while it works are applied together in the
next transaction, so that many inputs cost one round trip.

Effects begin only after their transaction has been stored, and their results become inputs. If a
process dies, only its unfinished work is lost: the leases lapse, and the store's due rows start
that work again.
"""

import asyncio
import contextlib
import logging
import secrets
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeVar, cast

from interchain_events.database.errors import StoreError
from interchain_events.distributor.core import messages
from interchain_events.distributor.core.continuity import Entered, Seat, enter
from interchain_events.distributor.core.reading import is_key
from interchain_events.distributor.core.rules import Rules
from interchain_events.distributor.core.states import Whereabouts, whereabouts
from interchain_events.distributor.event import Event, Notice, legacy_notice
from interchain_events.distributor.once import Store, Transaction
from interchain_events.distributor.service.adapters import Adapter
from interchain_events.distributor.service.metrics import Metrics
from interchain_events.distributor.service.notes import log_note
from interchain_events.distributor.service.poster import Poster
from interchain_events.distributor.service.standing import Party, Standing
from interchain_events.distributor.service.waiting import Waiter, Waiting, in_log_order

log = logging.getLogger("pubsub.distributor")
T = TypeVar("T")

MOST_BATCH: Final = 64
"""The greatest number of inputs in one transaction."""
POLL_SECONDS: Final = 0.2
"""The wait between two questions for due rows."""
DUE_AT_ONCE: Final = 100
"""The greatest number of due rows in one question to the store."""
ANSWER_SECONDS: Final = 30.0
"""How long a publication may wait for the adapters before the client gets an answer."""
LOOK_SECONDS: Final = 0.5
"""The interval at which the event of a waiting client is looked up without a report in this
process. Another replica may have worked on the event."""
STORE_SECONDS: Final = 1.0
"""The wait before the store is tried again after it was down."""
RETELL: Final = 5
"""How many times storing the result of an effect is repeated if the store is down."""
CONCURRENCY: Final = 256
"""The greatest number of effects that are carried out at once on each network, and the greatest
number of notifications of subscribers at once."""
MOST_WAITING: Final = 1024
"""The greatest number of effects that wait until one of these has ended, on each network. Further
calls and probes are postponed."""
POSTPONABLE: Final = (messages.CallNetwork, messages.ProbeNetwork)
"""The effects that need not be carried out. Their jobs are due again when their leases end."""
PAGE: Final = 1000
"""The number of rows in one read of a table."""
LOOK_AT_STORE_SECONDS: Final = 2.0
"""The interval at which an idle process checks whether the store has lost rows."""
POSTPONED: Final = 60_000
"""Milliseconds by which a due row is postponed if its step fails."""
MOST_KEYS: Final = 1024
"""The greatest number of webhook keys that are cached. A notification with a cached key needs no
question to the store."""


@dataclass(frozen=True)
class EngineSettings:
    """Settings that the state machine does not need."""

    types: tuple[str, ...] = ()
    """The event types of the form `types` of a subscription (see `rules.FORMS`)."""
    metadata: tuple[str, ...] = ()
    """The metadata of that form."""
    chain_ids: Mapping[str, str] = field(default_factory=dict)
    """For each legacy network, the chain id that its adapter appends to the metadata of events."""
    grace: float = 10.0
    """The longest time, in seconds, that effects under way may take after `stop`."""


DEFAULTS: Final = EngineSettings()


@dataclass
class Reached:
    """The times at which an adapter last answered and last failed to answer.

    Both are in seconds of the monotonic clock, 0 for never.
    """

    answered_at: float = 0.0
    failed_at: float = 0.0


class Limit:
    """The limit of the effects that are carried out at once on a network, or on subscribers.

    Each network has its own, so that one which does not answer delays no other.
    """

    def __init__(self) -> None:
        self.waiting = 0
        """The number of effects that wait for one of those under way to end."""
        self._free = asyncio.Semaphore(CONCURRENCY)

    @contextlib.asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Wait until fewer than `CONCURRENCY` effects are under way, and be one of them."""
        self.waiting += 1
        try:
            await self._free.acquire()
        finally:
            self.waiting -= 1
        try:
            yield
        finally:
            self._free.release()


class Engine:
    """One process of a distributor.

    All methods run in the event loop. Other processes, its replicas, may use the same store.
    """

    def __init__(
        self,
        rules: Rules,
        store: Store,
        adapters: Mapping[str, Adapter],
        poster: Poster,
        settings: EngineSettings = DEFAULTS,
    ) -> None:
        self.rules = rules
        self.store = store
        self.adapters = adapters
        self.metrics = Metrics()
        self.reached = {name: Reached() for name in rules.networks}
        self.standing = Standing()
        self._poster = poster
        self._settings = settings
        self._thread = ThreadPoolExecutor(1, "store")
        """The thread in which the store is called."""
        self._queue: deque[Waiting] = deque()
        """The work for the next transactions, in order."""
        self._filled = asyncio.Event()
        """Set while `_queue` is not empty."""
        self._tasks: set[asyncio.Task[None]] = set()
        """The effects under way."""
        self._loops: list[asyncio.Task[None]] = []
        """The tasks that serve the store and poll for due rows."""
        self._limits: defaultdict[str, Limit] = defaultdict(Limit)
        """The limits of effects by network, and that of notifications under the empty name."""
        self._waiters: dict[str, Waiter] = {}
        """The clients that wait for the result of a publication, by event id."""
        self._keys: set[tuple[str, str | None, str]] = set()
        """The network, subscription and key of webhooks whose key has been found right."""
        self._seat = Seat({name: secrets.token_hex(16) for name in rules.networks})
        self._without_hook: set[str] = set()
        """The networks for which it has been logged that no form of subscription works."""
        self.losses = 0
        """The number of times that the store has lost rows."""
        self._looked = 0.0
        """The time of the last transaction, in seconds of the monotonic clock."""
        self._offset = 0
        """The store's clock minus the machine's monotonic clock, in ms."""
        self._stopping = False

    # life

    async def start(self) -> None:
        """Start to apply inputs, compare subscriptions, read logs and take due rows.

        Returns at once. If the store is down, the work begins when it answers.
        """
        self._loops = [asyncio.create_task(self._serve_store()), asyncio.create_task(self._poll())]
        self._spawn(self._begin())
        for name in self.rules.networks:
            self._spawn(self._compare_profile(name))

    async def _compare_profile(self, network: str) -> None:
        """Log a warning if an adapter does not have the interface of its profile."""
        if misfit := await self.adapters[network].misfit():
            fields = {"network": network, "error": misfit}
            log.warning("an adapter does not fit its profile", extra={"fields": fields})

    async def _begin(self) -> None:
        """Apply the input `Start` as soon as the store answers."""
        while not self._stopping:
            try:
                self._offset = await self.in_thread(self.store.now) - _monotonic()
                await self.tell(messages.Start(dict(self._seat.keys)))
            except StoreError as error:
                self.store_failed(error)
                await asyncio.sleep(STORE_SECONDS)
            else:
                return

    async def stop(self) -> None:
        """Stop the engine and close the store.

        New effects do not begin, and those under way may take `EngineSettings.grace` seconds to
        end. A second call does nothing.
        """
        if self._stopping:
            return
        self._stopping = True
        end = time.monotonic() + self._settings.grace
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._settings.grace)
        # The queue is in order, so when this question is answered, the results of effects have been
        # stored.
        with contextlib.suppress(StoreError, asyncio.TimeoutError):
            await asyncio.wait_for(
                self.look(lambda _: None), max(end - time.monotonic(), STORE_SECONDS)
            )
        for task in [*self._tasks, *self._loops]:
            task.cancel()
        await asyncio.gather(*self._tasks, *self._loops, return_exceptions=True)
        self._thread.shutdown(wait=True)
        self.store.close()

    async def in_thread(self, function: Callable[..., T], *arguments: object) -> T:
        """Call a method of the store in the store's thread. Raises `StoreError`."""
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, partial(function, *arguments)
        )

    # inputs

    async def tell(self, message: messages.Input) -> messages.Effects:
        """Apply an input, begin its effects and return them. Raises `StoreError`."""
        effects, _ = await self._wait(Waiting(message))
        return effects

    async def tell_all(
        self, inputs: Sequence[messages.Input]
    ) -> list[messages.Effects | StoreError]:
        """Apply several inputs, and return for each its effects or its `StoreError`.

        Raises other exceptions of a step.
        """
        results = await asyncio.gather(
            *(self._wait(Waiting(message)) for message in inputs), return_exceptions=True
        )
        outcomes: list[messages.Effects | StoreError] = []
        for result in results:
            if isinstance(result, StoreError):
                outcomes.append(result)
            elif isinstance(result, BaseException):
                raise result
            else:
                effects, _ = result
                outcomes.append(effects)
        return outcomes

    def _wait(self, waiting: Waiting) -> "asyncio.Future[tuple[messages.Effects, Any]]":
        """Queue work, and return the future of its effects and of the result of its `look`."""
        waiting.done = asyncio.get_running_loop().create_future()
        self._put(waiting)
        return waiting.done

    def _put(self, waiting: Waiting) -> None:
        """Append work to the queue."""
        self._queue.append(waiting)
        self._filled.set()

    async def _serve_store(self) -> None:
        """Take batches from the queue and apply them, forever."""
        while True:
            await self._filled.wait()
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), MOST_BATCH))]
            if not self._queue:
                self._filled.clear()
            await self._apply(in_log_order(batch))

    async def _apply(self, batch: list[Waiting]) -> None:
        """Apply a batch in one transaction, begin the effects and resolve the futures."""

        def apply(tx: Transaction) -> tuple[Entered, list[tuple[messages.Effects, object]]]:
            entered = enter(self.rules, self._seat, tx)
            return entered, [waiting.take(self.rules, tx) for waiting in batch]

        try:
            entered, results = await self.in_thread(self.store.transact, apply)
        except StoreError as error:
            self.store_failed(error)
            self._fail(batch, error)
        except Exception as error:
            # An input has met a defect. The others must not suffer, so each is applied alone.
            if len(batch) > 1:
                for waiting in batch:
                    await self._apply([waiting])
                return
            log.exception("a defect", extra={"fields": {"input": type(batch[0].message).__name__}})
            if isinstance(batch[0].message, messages.Due):
                await self._postpone(batch[0].message)
            self._fail(batch, error)
        else:
            self._note_entered(entered)
            self.metrics.count("inputs", len(batch))
            for waiting, result in zip(batch, results, strict=True):
                effects, _ = result
                for effect in effects:
                    self._begin_effect(effect)
                if waiting.done is not None and not waiting.done.done():
                    waiting.done.set_result(result)
                if self._waiters:
                    self._wake(waiting.message)

    def _note_entered(self, entered: Entered) -> None:
        """Remember the seat of a transaction that has been stored, and report a loss."""
        self._seat = entered.seat
        self._looked = time.monotonic()
        self.standing.answered(Party.STORE, "store")
        if entered.loss:
            self.losses += 1
            self._keys.clear()
            log.error(
                "%s; all histories are read again before anything is published",
                entered.loss,
                extra={"fields": {"losses": self.losses}},
            )
        for effect in entered.effects:
            self._begin_effect(effect)

    def store_failed(self, error: StoreError) -> None:
        """Note that the store has not answered, or is not the right one."""
        self.standing.failed(Party.STORE, "store", str(error))

    def _wake(self, message: messages.Input | None) -> None:
        """Report an input to the clients that wait for its event."""
        if isinstance(message, messages.Noticed):
            event_id = message.notice.id or ""
        elif isinstance(message, (messages.Answered, messages.Probed)):
            event_id = message.id
        else:
            return
        if event_id in self._waiters:
            self._waiters[event_id].hear(message.network)

    async def _postpone(self, due: messages.Due) -> None:
        """Postpone a due row whose step fails, so that it is not tried again at once."""

        def postpone(tx: Transaction) -> None:
            value = tx.get(due.table, due.key)
            if value is not None:
                tx.put(due.table, due.key, value, due=tx.now + POSTPONED)

        with contextlib.suppress(StoreError):
            await self.in_thread(self.store.transact, postpone)

    def _fail(self, batch: list[Waiting], error: Exception) -> None:
        """Report an error to the callers of a batch.

        Results of effects have no callers. If the store is down, they are tried again a few times.
        After that they are lost, and their work begins again when its lease ends.
        """
        for entry in batch:
            if entry.done is not None:
                if not entry.done.done():
                    entry.done.set_exception(error)
            elif entry.left and isinstance(error, StoreError):
                again = replace(entry, left=entry.left - 1)
                asyncio.get_running_loop().call_later(STORE_SECONDS, self._put, again)

    async def _poll(self) -> None:
        """Apply the store's due rows as inputs, until the engine stops."""
        while not self._stopping:
            try:
                due = await self.in_thread(self.store.due, DUE_AT_ONCE)
                if due:
                    results = await asyncio.gather(*map(self.tell, due), return_exceptions=True)
                    if any(isinstance(result, StoreError) for result in results):
                        await asyncio.sleep(STORE_SECONDS)
                elif time.monotonic() - self._looked > LOOK_AT_STORE_SECONDS:
                    # Every transaction checks whether the store has lost rows.
                    await self.look(lambda _: None)
            except StoreError as error:
                self.store_failed(error)
                await asyncio.sleep(STORE_SECONDS)
                due = []
            if len(due) < DUE_AT_ONCE:
                await asyncio.sleep(POLL_SECONDS)

    # effects

    def _begin_effect(self, effect: messages.Effect) -> None:
        """Log a note, or start to carry out another effect. A caller of `tell` reads a `Reply`."""
        if isinstance(effect, messages.Note):
            self.metrics.count("notes", kind=effect.kind)
            # Each comparison of an adapter's subscriptions emits `no-hook`. It is logged once.
            if effect.kind != "no-hook" or effect.place not in self._without_hook:
                log_note(effect)
            if effect.kind == "no-hook":
                self._without_hook.add(effect.place)
        elif not isinstance(effect, messages.Reply) and not self._stopping:
            self._spawn(self._perform(effect))

    def _spawn(self, work: Coroutine[object, None, None]) -> None:
        """Run a coroutine as a task that `stop` waits for."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        """Forget a task that has ended, and log its exception."""
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("a defect", exc_info=task.exception())

    async def _perform(self, effect: messages.Effect) -> None:
        """Carry an effect out and queue its result.

        A call or probe is dropped if too many effects wait for the same network. Its job is due
        again when the lease ends, and then emits another one. Otherwise calls would pile up
        without limit while a network answers more slowly than new ones come.
        """
        network = getattr(effect, "network", "")
        limit = self._limits[network]
        if limit.waiting >= MOST_WAITING and isinstance(effect, POSTPONABLE):
            self.metrics.count("postponed", network=network)
            return
        async with limit.place():
            result = await self._result_of(effect)
        if result is not None:
            self._put(Waiting(result, left=RETELL))

    async def _result_of(self, effect: messages.Effect) -> messages.Input | None:
        """Carry an effect out and return its result, `None` if it has none."""
        match effect:
            case messages.CallNetwork():
                return await self._call(effect)
            case messages.Post():
                return await self._post(effect)
            case messages.ProbeNetwork():
                answer = await self.adapters[effect.network].probe(
                    effect.id, effect.since, effect.entity, second=effect.time
                )
                self._note_reached(effect.network, answered=answer.there is not None)
                return messages.Probed(
                    effect.network,
                    effect.id,
                    answer.there,
                    asked_at=effect.asked_at,
                    hidden=answer.hidden,
                    last=answer.last,
                )
            case messages.ReadLog():
                page = await self.adapters[effect.network].read(
                    effect.after, effect.limit, effect.since
                )
                self._note_reached(effect.network, answered=page is not None)
                return messages.Paged(effect.network, effect.after, page)
            case messages.ListHooks():
                listed = await self.adapters[effect.network].hooks()
                return messages.Listed(effect.network, listed)
            case messages.MakeHook():
                return await self.make_hook(effect)
            case messages.DropHook():
                await self.adapters[effect.network].drop(effect.subscription)
        return None

    def _note_reached(self, network: str, *, answered: bool) -> None:
        """Note whether an adapter has answered."""
        if answered:
            self.reached[network].answered_at = time.monotonic()
            self.standing.answered(Party.ADAPTER, network)
        else:
            self.reached[network].failed_at = time.monotonic()
            cause = self.adapters[network].fault or "it does not answer as it should"
            self.standing.failed(Party.ADAPTER, network, cause)

    def store_time(self) -> int:
        """Return an estimate of the store's clock in ms."""
        return _monotonic() + self._offset

    async def _call(self, effect: messages.CallNetwork) -> messages.Input:
        """Publish on a network, unless it is too late to begin the call."""
        if self.store_time() > effect.before:
            return messages.Answered(
                effect.network, effect.id, messages.Unknown("the call did not begin in time")
            )
        begun = time.monotonic()
        answer = await self.adapters[effect.network].publish(effect.event)
        self.metrics.observe("call_seconds", time.monotonic() - begun)
        self.metrics.count("calls", network=effect.network, outcome=type(answer).__name__.lower())
        self._note_reached(effect.network, answered=not isinstance(answer, messages.Unknown))
        return messages.Answered(effect.network, effect.id, answer)

    async def _post(self, effect: messages.Post) -> messages.Input:
        """Notify a subscriber, unless it is too late to begin the POST."""
        if self.store_time() > effect.before:
            return messages.Posted(effect.subscription, effect.id, None)
        begun = time.monotonic()
        posted = await self._poster.post(effect)
        status = posted.status
        self.metrics.observe("post_seconds", time.monotonic() - begun)
        self.metrics.count("posts", outcome="none" if status is None else f"{status // 100}xx")
        if status is not None and status // 100 == 2:
            self.metrics.observe("block_to_post_seconds", max(time.time() - effect.notice.time, 0))
            self.standing.answered(Party.SUBSCRIBER, effect.subscription)
        else:
            cause = posted.cause or f"status {status}"
            self.standing.failed(Party.SUBSCRIBER, effect.subscription, cause)
        return messages.Posted(
            effect.subscription,
            effect.id,
            status,
            cause=posted.cause,
            retry_after=posted.retry_after,
        )

    async def make_hook(self, effect: messages.MakeHook) -> messages.Hooked:
        """Subscribe on an adapter and return its answer.

        The form `types` counts as refused if the settings have no types for it.
        """
        types = effect.types
        metadata = effect.metadata
        if effect.form == "star":
            types = ("*",)
        elif effect.form == "types":
            types = self._settings.types
            metadata = self._settings.metadata
            if not types:
                return messages.Hooked(effect.network, effect.form, accepted=False)
        accepted = await self.adapters[effect.network].hook(effect.endpoint, types, metadata)
        return messages.Hooked(effect.network, effect.form, accepted)

    # clients

    async def where(self, event_id: str) -> Whereabouts:
        """Return the states of an id on all networks. Raises `StoreError`."""
        return await self.look(partial(whereabouts, self.rules, event_id=event_id))

    async def look(self, function: Callable[[Transaction], T]) -> T:
        """Run a function that only reads in the next transaction, and return its result.

        Raises `StoreError`.
        """
        _, result = await self._wait(Waiting(None, function))
        return cast("T", result)

    async def is_key(self, network: str, subscription: str | None, key: str) -> bool:
        """Return whether `key` is that of the webhooks of a network or subscription.

        Right keys are cached. Raises `StoreError`.
        """
        webhook = (network, subscription, key)
        if webhook not in self._keys and await self.look(lambda tx: is_key(tx, *webhook)):
            if len(self._keys) >= MOST_KEYS:
                self._keys = set()
            self._keys.add(webhook)
        return webhook in self._keys

    def as_published(self, network: str, notice: Notice) -> Notice:
        """Return a notice without the metadata that a legacy adapter has appended (ID-1)."""
        chain_id = self._settings.chain_ids.get(network)
        return notice if chain_id is None else legacy_notice(notice, chain_id)

    async def publish(
        self, event_id: str, event: Event
    ) -> tuple[messages.Reply, Whereabouts | None]:
        """Publish an event, and wait until all adapters have answered, at most `ANSWER_SECONDS`.

        Returns the reply and the states on all networks. The states are `None` if the reply has an
        error. Raises `StoreError`, also if the store loses rows meanwhile, because the event may be
        lost, too.
        """
        losses = self.losses
        end = time.monotonic() + ANSWER_SECONDS
        # An adapter may answer before `_wait` returns, so the client waits from here on.
        waiter = self._waiters.setdefault(event_id, Waiter())
        waiter.users += 1
        try:
            waiting = Waiting(
                messages.Publish(event_id, event),
                partial(whereabouts, self.rules, event_id=event_id),
            )
            effects, states = await self._wait(waiting)
            reply = messages.reply_of(effects)
            if reply.code:
                return reply, None
            while (left := end - time.monotonic()) > 0:
                networks = {state.name for state in states.networks if state.waiting}
                if not networks:
                    break
                await waiter.wait(networks, min(left, LOOK_SECONDS))
                states = await self.where(event_id)
                if self.losses != losses:
                    raise StoreError(
                        "the store lost rows, maybe those of this event; send it again"
                    )
            return reply, states
        finally:
            waiter.users -= 1
            if not waiter.users:
                del self._waiters[event_id]

    async def read_all(self, table: str) -> list[tuple[str, str]]:
        """Return all keys and texts of a table. Raises `StoreError`."""
        table_rows: list[tuple[str, str]] = []
        after = ""
        while True:
            part = await self.in_thread(self.store.rows, table, after, PAGE)
            table_rows += part
            if len(part) < PAGE:
                return table_rows
            after, _ = part[-1]


def _monotonic() -> int:
    """Return the machine's monotonic clock in ms."""
    return time.monotonic_ns() // 1_000_000

"""Log, hub and registry under asyncio: what every front serves (EV-20 to EV-26).

    async with EventService(store, registry) as service:
        token, after = await service.subscribe([Kind("Balances.*")], client="me")
        async with service.stream(token, client="me") as messages:
            async for message in messages: …

The databases block, so they are asked in worker threads; the hub is only touched by the event loop. While the database
does not answer, streams stay open and go on when it does.
"""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Generic, Protocol, Self, TypeVar

from pubsub_emulator.database.errors import StoreUnavailable
from pubsub_emulator.events.errors import BadCursor, CursorAbandoned, UnknownToken
from pubsub_emulator.events.log.store import Head, LogReader, check_cursor
from pubsub_emulator.events.subscriptions.cursor import Cursor, decode_cursor, encode_cursor, log_tag
from pubsub_emulator.events.subscriptions.hub import Hub, Message, Request
from pubsub_emulator.events.subscriptions.registry import Registry, Subscription
from pubsub_emulator.events.subscriptions.streams import Ended, Held, Limits, Streams, woken

_LOG: Final = logging.getLogger("pubsub.events")

F = TypeVar("F")

START: Final = "start"  #: As `after`: everything from the first row on

_PAGE: Final = 1_000
_RETRY_SECONDS: Final = 0.5
_WAIT_SECONDS: Final = 1.0
_USE_SECONDS: Final = 3_600.0  # how often the registry is told which subscriptions have streams


class Recorder(Protocol):
    """Writes deliveries down (EV-40); `stream` is a name of its own for each stream."""

    def opened(self, subscription: Subscription, stream: str, after: Cursor) -> None:
        """A stream begins after a cursor."""

    def delivered(self, stream: str, message: Message) -> None:
        """Rows are handed to the client's connection."""

    def ended(self, stream: str, cursor: Cursor, how: str) -> None:
        """A stream ended; `cursor` is that of the last message handed over."""


@dataclass(eq=False, slots=True)
class _Open:
    subscription: Subscription
    held: Held
    name: str
    reached: Cursor  # of the last message handed over
    dropped: Callable[[], None]  # called when its client took nothing for too long


class EventService(Streams, Generic[F]):
    """Subscriptions to one log with filters of type `F`; use it as an asynchronous context manager."""

    def __init__(
        self, store: LogReader, registry: Registry[F], limits: Limits | None = None, recorder: Recorder | None = None
    ) -> None:
        super().__init__(limits or Limits())
        self.store = store
        self.registry = registry
        self.tag = log_tag(store.network, store.id)
        self.counts: Counter[str] = Counter()
        """Totals for metrics: messages, rows, heartbeats, catch-up reads, streams opened and abandoned."""
        self.available = True
        self._recorder = recorder
        self._hub = Hub(store.head(), bound=self.limits.bound)
        self._open: dict[int, _Open] = {}
        self._advanced = asyncio.Event()
        self._pump: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._pump = asyncio.create_task(self._follow())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop()
        if self._pump is not None:
            await self._pump

    def stop(self) -> None:
        """End all streams with a resumable status; no new ones open (EV-26)."""
        super().stop()
        self._advanced.set()

    # What clients ask for

    async def subscribe(
        self, filters: Iterable[F], client: str, after: str | None = None, *, batches: bool = False
    ) -> tuple[str, str]:
        """A token, and the cursor of its lower bound: `after`, or the log's end. Raises `BadFilter`, `BadCursor`."""
        self.check_stopping()
        at = await self._position(after, None)
        token, bound = await asyncio.to_thread(self.registry.add, filters, at, client, batches=batches)
        return token, encode_cursor(bound, self.tag)

    async def cancel(self, token: str) -> None:
        """End the streams of a token and forget it. Raises `UnknownToken`."""
        name = await asyncio.to_thread(self.registry.cancel, token)
        for each in self._open.values():
            if each.subscription.name == name:
                each.held.is_cancelled = True
                each.held.wake.set()

    @asynccontextmanager
    async def stream(
        self,
        token: str,
        client: str | None,
        after: str | None = None,
        *,
        seam: bool = False,
        dropped: Callable[[], None] = lambda: None,
    ) -> AsyncIterator[AsyncIterator[Message]]:
        """The messages after a cursor: absent `after` is the subscription's lower bound, `START` is everything.

        `client` is who reads, `None` for who made the subscription. With `seam`, a message without rows says where the
        catch-up ends. `dropped` is called when the client took nothing for too long; the next message is `Ended` then.
        Raises `UnknownToken`, `BadCursor`, `CursorAbandoned`, `LimitReached`; while iterating also `Ended`.
        """
        subscription = await asyncio.to_thread(self.registry.get, token)
        position = await self._position(after, subscription.after, known=seam)
        with self.held(client or subscription.client, reads_all=subscription.reads_all and after == START) as held:
            number = self._hub.open(subscription.filters, position.seq, batches=subscription.batches, seam=seam)
            mine = self._open[number] = _Open(subscription, held, secrets.token_hex(8), position, dropped)
            self.counts["streams_opened"] += 1
            if self._recorder is not None:
                self._recorder.opened(subscription, mine.name, position)
            messages = self._messages(number, mine, token)
            how = "disconnected"
            try:
                yield messages
            except CursorAbandoned:
                how = "abandoned"
                self.counts["streams_abandoned"] += 1
                raise
            except Ended as ended:
                how = str(ended)
                raise
            finally:
                await messages.aclose()
                del self._open[number]
                self._hub.close(number)
                if self._recorder is not None:
                    self._recorder.ended(mine.name, mine.reached, how)

    def text(self, cursor: Cursor) -> str:
        """A cursor as its text."""
        return encode_cursor(cursor, self.tag)

    def cursor(self, text: str) -> Cursor:
        """The cursor of a text. Raises `BadCursor`."""
        return decode_cursor(text, self.tag)

    @property
    def head_seq(self) -> int:
        """The last row that the service knows of."""
        return self._hub.head.seq

    @property
    def waiting_rows(self) -> int:
        """Rows in all queues."""
        return sum(self._hub.waiting(number) for number, each in self._open.items() if not each.held.is_unread)

    # One stream

    async def _messages(self, number: int, mine: _Open, token: str) -> AsyncGenerator[Message, None]:
        while True:
            mine.held.wake.clear()
            self.check(mine.held)
            request = self._hub.wants(number)
            if request is not None:
                await self._catch_up(number, request)
            message = self._hub.take(number)
            mine.held.reads_all = mine.held.reads_all and not self._hub.is_live(number)
            if message is None and request is not None:  # a long way without a match moves the cursor too
                message = self._hub.heartbeat(number) if self._hub.wants(number) is not None else None
            elif message is None and not await woken(mine.held.wake, self.limits.heartbeat_seconds):
                await self._check_token(token, mine)
                message = self._hub.heartbeat(number)
            if message is not None:
                self._account(mine, message)
                mine.held.waits_since = asyncio.get_running_loop().time()
                yield message
                mine.held.waits_since = None

    def _account(self, mine: _Open, message: Message) -> None:
        mine.reached = message.cursor
        self.counts["rows"] += len(message.rows)
        self.counts["messages" if message.rows else "heartbeats"] += 1
        if self._recorder is not None and message.rows:
            self._recorder.delivered(mine.name, message)

    def _drop_unread(self, now: float) -> None:
        """Give up what is held for streams whose clients take nothing."""
        for number, each in self._open.items():
            since = each.held.waits_since
            if since is not None and now - since > self.limits.unread_seconds and not each.held.is_unread:
                each.held.is_unread, each.held.reads_all = True, False
                self._hub.close(number)
                each.dropped()

    async def _catch_up(self, number: int, request: Request) -> None:
        """Read the log for a stream that needs it."""
        try:
            page = await asyncio.to_thread(self.store.read, request.after, request.limit, request.where)
        except StoreUnavailable:
            await asyncio.sleep(_RETRY_SECONDS)
            return
        self.counts["catch_up_reads"] += 1
        if not self._hub.filled(number, request, page):
            await self._next_advance()  # a rewind that the hub is not told of yet

    async def _check_token(self, token: str, mine: _Open) -> None:
        """Another server may have cancelled the subscription."""
        try:
            await asyncio.to_thread(self.registry.get, token)
        except UnknownToken:
            mine.held.is_cancelled = True
            self.check(mine.held)
        except StoreUnavailable:
            return

    async def _position(self, after: str | None, bound: Cursor | None, *, known: bool = False) -> Cursor:
        """The position at which a stream starts, of the hub's present epoch. Raises `BadCursor`, `CursorAbandoned`.

        With `known`, the hub knows of all that the log has now, so that no stream says too early that it caught up.
        """
        given = None if after in {None, START} else decode_cursor(str(after), self.tag)
        while True:
            head = await asyncio.to_thread(self.store.head)
            at = Cursor(head.epoch, 0) if after == START else given or bound or Cursor(head.epoch, head.seq)
            is_old = at.epoch < head.epoch  # else nothing was taken back at the moment of `head`, whatever came since
            common = await asyncio.to_thread(self.store.common, at.epoch) if is_old else None
            if not check_cursor(head, at.epoch, at.seq, common):
                raise BadCursor("the cursor is beyond the end of the log")
            if head.epoch == self._hub.head.epoch and (not known or head.seq <= self._hub.head.seq):
                return Cursor(head.epoch, at.seq)
            await self._next_advance()

    # Following the log

    async def _follow(self) -> None:
        clock = asyncio.get_running_loop().time
        due = clock() + _USE_SECONDS
        while not self._is_stopping:
            try:
                self._drop_unread(clock())
                if clock() >= due:
                    due = clock() + _USE_SECONDS
                    names = {each.subscription.name for each in self._open.values()}
                    await asyncio.to_thread(self.registry.use, names)
                known = await asyncio.to_thread(self.store.head)
                await self._advance()
                self.available = True
                await self._wait(known)
            except StoreUnavailable as error:
                if self.available:
                    _LOG.warning("the log does not answer: %s", error)
                self.available = False
                await asyncio.sleep(_RETRY_SECONDS)

    async def _wait(self, known: Head) -> None:
        """Wait until there may be more than `known`."""
        await asyncio.to_thread(self.store.wait, known, _WAIT_SECONDS)

    async def _advance(self) -> None:
        """Tell the hub of everything that is new."""
        while not self._is_stopping:
            before = self._hub.head
            if not self._hub.has_live:
                head = await asyncio.to_thread(self.store.head)
                if head.epoch == before.epoch and not self._hub.has_live:
                    self._hub.skip(head.seq)
                    self._tell(())
                    return
            page = await asyncio.to_thread(self.store.read, before.seq, _PAGE)
            if page.head.epoch != before.epoch:
                common = await asyncio.to_thread(self.store.common, before.epoch)
                self._tell(self._hub.rewind(page.head.epoch, page.head.seq if common is None else common))
                continue
            self._tell(self._hub.extend(page.rows, page.through))
            if page.is_last:
                return
            await asyncio.sleep(0)

    def _tell(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if number in self._open:
                self._open[number].held.wake.set()
        self._advanced.set()
        self._advanced = asyncio.Event()

    async def _next_advance(self) -> None:
        await woken(self._advanced, _WAIT_SECONDS)

"""Log, hub and registry under asyncio: what every front serves (EV-20 to EV-26).

    async with EventService(store, registry) as service:
        token, after = await service.subscribe([Kind("Balances.*")], client="me")
        async with service.stream(token, client="me") as messages:
            async for message in messages: …

The databases block, so they are asked in worker threads; the hub is only touched by the event loop. While the database
does not answer, streams stay open and go on when it does.
"""

import asyncio
import contextlib
import logging
import secrets
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Protocol, Self

from pubsub_emulator.eventplane.errors import (
    BadCursor,
    CursorAbandoned,
    LimitReached,
    StoreUnavailable,
    UnknownToken,
)
from pubsub_emulator.eventplane.filters.algebra import Filter
from pubsub_emulator.eventplane.log.rules import check_cursor
from pubsub_emulator.eventplane.log.store import Store
from pubsub_emulator.eventplane.subscriptions.cursor import Cursor, decode_cursor, encode_cursor, log_tag
from pubsub_emulator.eventplane.subscriptions.hub import BOUND, Hub, Message, Request
from pubsub_emulator.eventplane.subscriptions.registry import Registry, Subscription

_LOG: Final = logging.getLogger("pubsub.events")

START: Final = "start"
"""As `after`: everything from the first row on."""

_PAGE: Final = 1_000
_RETRY_SECONDS: Final = 0.5
_WAIT_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What one client and all clients may hold open (EV-25), and how rows wait."""

    streams_per_client: int = 16
    streams: int = 1_000
    bound: int = BOUND
    heartbeat_seconds: float = 15.0


class Ended(Exception):
    """A stream ends though its client did nothing wrong; `resumable` with the same token and cursor (EV-26)."""

    def __init__(self, reason: str, *, resumable: bool) -> None:
        super().__init__(reason)
        self.resumable = resumable


class Recorder(Protocol):
    """Writes deliveries down (EV-40); `stream` is a name of its own for each stream."""

    def opened(self, subscription: Subscription, stream: str, after: Cursor) -> None:
        """A stream begins after a cursor."""

    def delivered(self, stream: str, message: Message) -> None:
        """Rows are handed to the client's connection."""

    def ended(self, stream: str, cursor: Cursor, how: str) -> None:
        """A stream ended; `cursor` is that of the last message handed over."""


@dataclass(slots=True)
class _Open:
    subscription: Subscription
    client: str
    name: str
    reached: Cursor
    """Of the last message handed over."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: bool = False


class EventService:
    """Subscriptions to one log; use it as an asynchronous context manager."""

    def __init__(
        self, store: Store, registry: Registry, limits: Limits | None = None, recorder: Recorder | None = None
    ) -> None:
        self.store = store
        self.registry = registry
        self.limits = limits or Limits()
        self.tag = log_tag(store.network, store.id)
        self.counts: Counter[str] = Counter()
        """Totals for metrics: messages, rows, heartbeats, catch-up reads, streams opened and abandoned."""
        self.available = True
        self._recorder = recorder
        self._hub = Hub(store.head(), bound=self.limits.bound)
        self._open: dict[int, _Open] = {}
        self._stopping = False
        self._advanced = asyncio.Event()
        self._pump: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._pump = asyncio.create_task(self._follow())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self._pump is not None:
            await self._pump

    def stop(self) -> None:
        """End all streams with a resumable status; no new ones open (EV-26)."""
        self._stopping = True
        self._wake(self._open)
        self._advanced.set()

    # What clients ask for

    async def subscribe(
        self, filters: Iterable[Filter], client: str, after: str | None = None, *, batches: bool = False
    ) -> tuple[str, str]:
        """A token, and the cursor of its lower bound: `after`, or the log's end. Raises `BadFilter`, `BadCursor`."""
        bound = await self._position(after, None)
        token = await asyncio.to_thread(self.registry.add, filters, bound, client, batches=batches)
        return token, encode_cursor(bound, self.tag)

    async def cancel(self, token: str) -> None:
        """End the streams of a token and forget it. Raises `UnknownToken`."""
        name = await asyncio.to_thread(self.registry.cancel, token)
        for number, each in self._open.items():
            if each.subscription.name == name:
                each.cancelled = True
                self._wake((number,))

    @asynccontextmanager
    async def stream(self, token: str, client: str, after: str | None = None) -> AsyncIterator[AsyncIterator[Message]]:
        """The messages after a cursor: absent `after` is the subscription's lower bound, `START` is everything.

        Raises `UnknownToken`, `BadCursor`, `CursorAbandoned`, `LimitReached`; while iterating also `Ended`.
        """
        subscription = await asyncio.to_thread(self.registry.get, token)
        position = await self._position(after, subscription.after)
        self._check_limits(client)
        number = self._hub.open(subscription.filters, position.seq, batches=subscription.batches)
        mine = self._open[number] = _Open(subscription, client, secrets.token_hex(8), position)
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

    @property
    def head_seq(self) -> int:
        """The last row that the service knows of."""
        return self._hub.head.seq

    @property
    def streams(self) -> int:
        """Streams that are open now."""
        return len(self._open)

    @property
    def waiting_rows(self) -> int:
        """Rows in all queues."""
        return sum(self._hub.waiting(number) for number in self._open)

    # One stream

    async def _messages(self, number: int, mine: _Open, token: str) -> AsyncGenerator[Message, None]:
        while True:
            mine.wake.clear()
            self._check_open(mine)
            request = self._hub.wants(number)
            if request is not None:
                await self._catch_up(number, request)
            message = self._hub.take(number)
            if message is None and request is not None:  # a long way without a match moves the cursor too
                message = self._hub.heartbeat(number) if self._hub.wants(number) is not None else None
            elif message is None and not await self._woken(mine):
                await self._check_token(token, mine)
                message = self._hub.heartbeat(number)
            if message is not None:
                self._account(mine, message)
                yield message

    def _account(self, mine: _Open, message: Message) -> None:
        mine.reached = message.cursor
        self.counts["rows"] += len(message.rows)
        self.counts["messages" if message.rows else "heartbeats"] += 1
        if self._recorder is not None and message.rows:
            self._recorder.delivered(mine.name, message)

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

    async def _woken(self, mine: _Open) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.limits.heartbeat_seconds):
                await mine.wake.wait()
                return True
        return False

    def _check_open(self, mine: _Open) -> None:
        if mine.cancelled:
            raise Ended("cancelled", resumable=False)
        if self._stopping:
            raise Ended("shutdown", resumable=True)

    async def _check_token(self, token: str, mine: _Open) -> None:
        """Another server may have cancelled the subscription."""
        try:
            await asyncio.to_thread(self.registry.get, token)
        except UnknownToken:
            mine.cancelled = True
            self._check_open(mine)
        except StoreUnavailable:
            return

    def _check_limits(self, client: str) -> None:
        if self._stopping:
            raise Ended("shutdown", resumable=True)
        if len(self._open) >= self.limits.streams:
            raise LimitReached(f"{self.limits.streams} streams are open in all")
        if sum(each.client == client for each in self._open.values()) >= self.limits.streams_per_client:
            raise LimitReached(f"a client may have {self.limits.streams_per_client} streams")

    async def _position(self, after: str | None, bound: Cursor | None) -> Cursor:
        """Where a stream starts, of the hub's present epoch. Raises `BadCursor`, `CursorAbandoned`."""
        given = None if after in {None, START} else decode_cursor(str(after), self.tag)
        while True:
            head = await asyncio.to_thread(self.store.head)
            at = Cursor(head.epoch, 0) if after == START else given or bound or Cursor(head.epoch, head.seq)
            common = await asyncio.to_thread(self.store.common, at.epoch)
            if not check_cursor(head, at.epoch, at.seq, common):
                raise BadCursor("the cursor is beyond the end of the log")
            if head.epoch == self._hub.head.epoch:
                return Cursor(head.epoch, at.seq)
            await self._next_advance()

    # Following the log

    async def _follow(self) -> None:
        while not self._stopping:
            try:
                known = await asyncio.to_thread(self.store.head)
                await self._advance()
                self.available = True
                await asyncio.to_thread(self.store.wait, known, _WAIT_SECONDS)
            except StoreUnavailable as error:
                if self.available:
                    _LOG.warning("the log does not answer: %s", error)
                self.available = False
                await asyncio.sleep(_RETRY_SECONDS)

    async def _advance(self) -> None:
        """Tell the hub of everything that is new."""
        while not self._stopping:
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
        self._wake(numbers)
        self._advanced.set()
        self._advanced = asyncio.Event()

    def _wake(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if number in self._open:
                self._open[number].wake.set()

    async def _next_advance(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._advanced.wait()

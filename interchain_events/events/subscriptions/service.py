"""The service: log, hub and registry together under asyncio, served by all fronts (EV-20 to EV-26).

    async with EventService(store, registry) as service:
        token, after = await service.subscribe([Kind("Balances.*")], client="me")
        async with service.stream(token, client="me") as messages:
            async for message in messages: …

Calls of the databases block, so they run in worker threads. Only the event loop uses the hub. While
the database does not answer, streams remain open. They continue when it answers again.
"""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Generic, Protocol, Self, TypeVar

from interchain_events.database.errors import StoreUnavailable
from interchain_events.events.errors import BadCursor, CursorAbandoned, UnknownToken
from interchain_events.events.log.store import Head, LogReader, check_cursor
from interchain_events.events.subscriptions.cursor import (
    Cursor,
    decode_cursor,
    encode_cursor,
    log_tag,
)
from interchain_events.events.subscriptions.hub import Hub, LogRead, Message
from interchain_events.events.subscriptions.registry import Subscription, SubscriptionRegistry
from interchain_events.events.subscriptions.streams import Ended, Held, Limits, Streams, woken

_LOG: Final = logging.getLogger("pubsub.events")

F = TypeVar("F")

START: Final = "start"
"""The value of `after` for all rows from the first one on."""

_PAGE: Final = 1_000
"""The number of rows in one read for the live streams."""
_RETRY_SECONDS: Final = 0.5
_WAIT_SECONDS: Final = 1.0
"""The interval at which the log is read even if it has not reported a change."""
_USE_SECONDS: Final = 3_600.0
"""The interval at which the registry is told which subscriptions have streams."""


class StreamRecorder(Protocol):
    """A record of deliveries (EV-40). `stream` is a unique name for each stream."""

    def opened(self, subscription: Subscription, stream: str, after: Cursor) -> None:
        """Record that a stream begins after a cursor."""

    def delivered(self, stream: str, message: Message) -> None:
        """Record that rows were handed to the client's connection."""

    def ended(self, stream: str, cursor: Cursor, how: str) -> None:
        """Record that a stream has ended. `cursor` is that of its last message.

        `how` is the reason, for example `disconnected`.
        """


@dataclass(eq=False, slots=True)
class _Open:
    """An open stream."""

    subscription: Subscription
    held: Held
    name: str
    """A random name, for records."""
    reached: Cursor
    """The cursor of the last message that was handed to the client."""
    dropped: Callable[[], None]
    """A function that is called when the stream is dropped because its client does not read."""


class EventService(Streams, Generic[F]):
    """Subscriptions to one log, with filters of type `F`.

    Use it as an asynchronous context manager.
    """

    def __init__(
        self,
        store: LogReader,
        registry: SubscriptionRegistry[F],
        limits: Limits | None = None,
        recorder: StreamRecorder | None = None,
    ) -> None:
        super().__init__(limits or Limits())
        self.store = store
        self.registry = registry
        self.tag = log_tag(store.network, store.id)
        """The log's tag in its cursors."""
        self.counts: Counter[str] = Counter()
        """Totals for metrics: messages, rows, heartbeats, catch-up reads, and streams opened and
        abandoned."""
        self.available = True
        """Whether the log answered when it was last asked."""
        self._recorder = recorder
        self._hub = Hub(store.head(), bound=self.limits.bound)
        self._open: dict[int, _Open] = {}
        """The open streams by their numbers in the hub."""
        self._advanced = asyncio.Event()
        """Set at the next change of the hub's head, and then replaced by a new one."""
        self._pump: asyncio.Task[None] | None = None
        """The task that follows the log."""

    async def __aenter__(self) -> Self:
        self._pump = asyncio.create_task(self._follow())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop()
        if self._pump is not None:
            await self._pump

    def stop(self) -> None:
        """End all streams with a resumable status, and refuse new ones (EV-26)."""
        super().stop()
        self._advanced.set()

    # What clients ask for

    async def subscribe(
        self, filters: Iterable[F], client: str, after: str | None = None, *, batches: bool = False
    ) -> tuple[str, str]:
        """Create a subscription. Returns its token, and its lower bound as a cursor.

        The bound is `after`, by default the log's end. Raises `BadFilter`, `BadCursor`,
        `CursorAbandoned` and `LimitReached`.
        """
        self.check_stopping()
        position = await self._position(after, None)
        token, bound = await asyncio.to_thread(
            self.registry.add, filters, position, client, batches=batches
        )
        return token, encode_cursor(bound, self.tag)

    async def cancel(self, token: str) -> None:
        """Delete a subscription and end its streams. Raises `UnknownToken`."""
        name = await asyncio.to_thread(self.registry.cancel, token)
        for stream in self._open.values():
            if stream.subscription.name == name:
                stream.held.is_cancelled = True
                stream.held.wake.set()

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
        """Open a stream inside of the context, and yield its messages after a cursor.

        If `after` is `None`, the stream begins at the subscription's lower bound, and if it is
        `START`, at the first row. `client` is the reading client, `None` for the one that created
        the subscription. If `seam` is true, a message without rows marks the end of the catch-up.
        `dropped` is called if the client does not read for too long. The next message then raises
        `Ended`.

        Raises `UnknownToken`, `BadCursor`, `CursorAbandoned` and `LimitReached`. Iterating raises
        `CursorAbandoned` and `Ended`.
        """
        subscription = await asyncio.to_thread(self.registry.get, token)
        position = await self._position(after, subscription.after, known=seam)
        with self.held(
            client or subscription.client, reads_all=subscription.reads_all and after == START
        ) as held:
            number = self._hub.open(
                subscription.filters, position.seq, batches=subscription.batches, seam=seam
            )
            stream = _Open(
                subscription,
                held,
                secrets.token_hex(8),
                reached=position,
                dropped=dropped,
            )
            self._open[number] = stream
            self.counts["streams_opened"] += 1
            if self._recorder is not None:
                self._recorder.opened(subscription, stream.name, position)
            messages = self._messages(number, stream, token)
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
                    self._recorder.ended(stream.name, stream.reached, how)

    def text(self, cursor: Cursor) -> str:
        """Return a cursor as text."""
        return encode_cursor(cursor, self.tag)

    def cursor(self, text: str) -> Cursor:
        """Return the cursor of a text. Raises `BadCursor`."""
        return decode_cursor(text, self.tag)

    @property
    def head_seq(self) -> int:
        """Return the last `seq` of the log that the service knows."""
        return self._hub.head.seq

    @property
    def waiting_rows(self) -> int:
        """Return the number of rows in all queues."""
        return sum(
            self._hub.waiting(number)
            for number, stream in self._open.items()
            if not stream.held.is_unread
        )

    # One stream

    async def _messages(
        self, number: int, stream: _Open, token: str
    ) -> AsyncGenerator[Message, None]:
        """Yield the messages of a stream, and heartbeats while there are no rows for it.

        Raises `CursorAbandoned` and `Ended`.
        """
        held = stream.held
        while True:
            # Cleared before looking for work, so that a wake during the work is not lost.
            held.wake.clear()
            self.check(held)
            request = self._hub.wants(number)
            if request is not None:
                await self._catch_up(number, request)
            message = self._hub.take(number)
            if self._hub.is_live(number):
                held.reads_all = False
            if message is None and request is not None:
                # A catch-up without a match moves the client's cursor, too.
                if self._hub.wants(number) is not None:
                    message = self._hub.heartbeat(number)
            elif message is None and not await woken(held.wake, self.limits.heartbeat_seconds):
                await self._check_token(token, stream)
                message = self._hub.heartbeat(number)
            if message is not None:
                self._count_delivery(stream, message)
                held.waits_since = asyncio.get_running_loop().time()
                yield message
                held.waits_since = None

    def _count_delivery(self, stream: _Open, message: Message) -> None:
        """Count a message and record its delivery."""
        stream.reached = message.cursor
        self.counts["rows"] += len(message.rows)
        self.counts["messages" if message.rows else "heartbeats"] += 1
        if self._recorder is not None and message.rows:
            self._recorder.delivered(stream.name, message)

    def _drop_unread(self, now: float) -> None:
        """Drop the streams whose clients have stopped reading, and release their rows."""
        for number, stream in self._open.items():
            held = stream.held
            if held.is_unread or held.waits_since is None:
                continue
            if now - held.waits_since > self.limits.unread_seconds:
                held.is_unread = True
                held.reads_all = False
                self._hub.close(number)
                stream.dropped()

    async def _catch_up(self, number: int, request: LogRead) -> None:
        """Read the log for a stream that catches up."""
        try:
            page = await asyncio.to_thread(
                self.store.read, request.after, request.limit, where=request.where
            )
        except StoreUnavailable:
            await asyncio.sleep(_RETRY_SECONDS)
            return
        self.counts["catch_up_reads"] += 1
        if not self._hub.filled(number, request, page):
            # The log has been rewound, and the hub does not know it yet.
            await self._next_advance()

    async def _check_token(self, token: str, stream: _Open) -> None:
        """Raise `Ended` if the stream's subscription was cancelled, maybe on another server."""
        try:
            await asyncio.to_thread(self.registry.get, token)
        except UnknownToken:
            stream.held.is_cancelled = True
            self.check(stream.held)
        except StoreUnavailable:
            return

    async def _position(
        self, after: str | None, bound: Cursor | None, *, known: bool = False
    ) -> Cursor:
        """Return the cursor after which a stream starts, in the hub's current epoch.

        `after` is the client's request, and `bound` the subscription's lower bound. If `known` is
        true, this waits until the hub knows everything that the log has now. Otherwise a stream
        could report the end of its catch-up too early. Raises `BadCursor` and `CursorAbandoned`.
        """
        given = None if after in {None, START} else decode_cursor(str(after), self.tag)
        while True:
            head = await asyncio.to_thread(self.store.head)
            if after == START:
                position = Cursor(head.epoch, 0)
            else:
                position = given or bound or Cursor(head.epoch, head.seq)
            common = None
            # A cursor of the head's epoch cannot have been taken back before `head` was read.
            if position.epoch < head.epoch:
                common = await asyncio.to_thread(self.store.common, position.epoch)
            if not check_cursor(head, position.epoch, position.seq, common=common):
                raise BadCursor("the cursor is beyond the end of the log")
            hub_head = self._hub.head
            if head.epoch == hub_head.epoch and (not known or head.seq <= hub_head.seq):
                return Cursor(head.epoch, position.seq)
            await self._next_advance()

    # Following the log

    async def _follow(self) -> None:
        """Pass new rows of the log to the streams until the service stops.

        Meanwhile, tell the registry at times which subscriptions are in use.
        """
        clock = asyncio.get_running_loop().time
        use_at = clock() + _USE_SECONDS
        while not self._is_stopping:
            try:
                self._drop_unread(clock())
                if clock() >= use_at:
                    use_at = clock() + _USE_SECONDS
                    names = {stream.subscription.name for stream in self._open.values()}
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
        """Wait until the log may have more than `known`."""
        await asyncio.to_thread(self.store.wait, known, _WAIT_SECONDS)

    async def _advance(self) -> None:
        """Pass everything that is new in the log to the hub."""
        while not self._is_stopping:
            before = self._hub.head
            if not self._hub.has_live:
                # Streams that catch up read the log themselves, so rows are read here only for live
                # streams.
                head = await asyncio.to_thread(self.store.head)
                if head.epoch == before.epoch and not self._hub.has_live:
                    self._hub.skip(head.seq)
                    self._wake(())
                    return
            page = await asyncio.to_thread(self.store.read, before.seq, _PAGE)
            if page.head.epoch != before.epoch:
                common = await asyncio.to_thread(self.store.common, before.epoch)
                if common is None:
                    common = page.head.seq
                self._wake(self._hub.rewind(page.head.epoch, common))
                continue
            self._wake(self._hub.extend(page.rows, page.through))
            if page.is_last:
                return
            await asyncio.sleep(0)

    def _wake(self, numbers: Iterable[int]) -> None:
        """Wake the streams with these numbers, and everyone who waits for a change of the head."""
        for number in numbers:
            if number in self._open:
                self._open[number].held.wake.set()
        self._advanced.set()
        self._advanced = asyncio.Event()

    async def _next_advance(self) -> None:
        """Wait until the hub's head has changed, at most `_WAIT_SECONDS`."""
        await woken(self._advanced, _WAIT_SECONDS)

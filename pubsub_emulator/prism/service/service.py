"""Subscriptions, schedules and statuses under asyncio: what the gRPC front serves (PR-50 to PR-63).

Databases block, so they are asked in worker threads. A stream reads pages of the tables; it is woken after each
transaction of the processor, and holds one page at most, however slow its client is (EV-23).
"""

import asyncio
import contextlib
import logging
import secrets
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pubsub_emulator.eventplane.errors import LimitReached, StoreUnavailable, UnknownToken
from pubsub_emulator.eventplane.prism.core.errors import UnknownOperation
from pubsub_emulator.eventplane.prism.core.filters import Filter, FilterType
from pubsub_emulator.eventplane.prism.core.status import FINAL, Branch, OperationStatus, Update
from pubsub_emulator.eventplane.prism.deliveries import log_subscription, row_of
from pubsub_emulator.eventplane.prism.service.watch import FINISHED, StatusRecorder, Watch, Watching
from pubsub_emulator.eventplane.prism.tables.events import (
    Abandoned,
    Bound,
    Event,
    FromStart,
    Start,
    Subscription,
    Subscriptions,
)
from pubsub_emulator.eventplane.prism.tables.processor import Processor
from pubsub_emulator.eventplane.prism.tables.scheduled import PENDING_BLOCKS, Scheduled
from pubsub_emulator.eventplane.subscriptions.cursor import Cursor, decode_cursor, encode_cursor, log_tag
from pubsub_emulator.eventplane.subscriptions.hub import Message as Delivered
from pubsub_emulator.eventplane.subscriptions.service import Recorder

_LOG: Final = logging.getLogger("pubsub.prism")
BATCH: Final = 100
"""Events of one message, at most, where the client takes batches."""
_RETRY_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Limits:
    """What clients may hold open (PR-54), and how rows are read."""

    subscriptions_per_client: int = 100
    streams_per_client: int = 8
    full_sync_ups: int = 4
    """AnonymousAny sync-ups from the start at once, in all."""
    page: int = 500
    heartbeat_seconds: float = 15.0
    pending_blocks: int = PENDING_BLOCKS


class Message(NamedTuple):
    """Events with the cursor after them; none in a heartbeat and at the seam."""

    events: tuple[Event, ...]
    cursor: Cursor
    live: bool


class Ended(Exception):
    """A stream ends though its client did nothing wrong; `is_resumable` with the same token and cursor."""

    def __init__(self, reason: str, *, is_resumable: bool) -> None:
        super().__init__(reason)
        self.is_resumable = is_resumable


class TakenBack(Exception):
    """A rewind below what a running stream has sent."""

    def __init__(self, cut: Abandoned) -> None:
        super().__init__(str(cut))
        self.cut = cut


@dataclass(eq=False, slots=True)
class _Open:
    client: str
    key: bytes
    """Of its subscription; empty for a status stream."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    is_cancelled: bool = False
    is_full_sync_up: bool = False


class PrismService:
    """One node's subscriptions and statuses. `branch` is the best branch as far as the node followed it."""

    def __init__(
        self,
        processor: Processor,
        limits: Limits | None = None,
        recorder: Recorder | None = None,
        status_recorder: StatusRecorder | None = None,
    ) -> None:
        self.processor = processor
        self.limits = limits or Limits()
        self._recorder = recorder
        self.tag = log_tag("prism", processor.id)
        self.branch = Branch()
        self.subscriptions = Subscriptions(processor.database)
        self.scheduled = Scheduled(processor.database)
        self._watch = Watch(self.scheduled, self.branch, status_recorder)
        self.handed_over: Callable[[], None] = lambda: None
        """Called when there is something new to anchor."""
        self._open: dict[_Open, None] = {}
        """In the order of opening, so that a run under one clock is always the same."""
        self._held: Counter[str] = Counter()
        self._holders: dict[bytes, str] = {}
        self._is_stopping = False
        self._epoch = processor.position().epoch

    def stop(self) -> None:
        """End all streams with a resumable status; nothing new begins."""
        self._is_stopping = True
        self.wake()

    def wake(self, *, statuses_only: bool = False) -> None:
        """Tables or branch changed: all streams look."""
        for each in self._open:
            if not each.key or not statuses_only:
                each.wake.set()

    async def notice(self) -> None:
        """The tables may have changed: learn their epoch, and wake everyone."""
        self._epoch = (await asyncio.to_thread(self.processor.position)).epoch
        await self._watch.look_at_all()
        self.wake()

    def text(self, cursor: Cursor) -> str:
        """A cursor as its text."""
        return encode_cursor(cursor, self.tag)

    def cursor(self, text: str) -> Cursor:
        """The cursor of a text. Raises `BadCursor`."""
        return decode_cursor(text, self.tag)

    @property
    def streams(self) -> int:
        """Streams that are open now."""
        return len(self._open)

    # Subscriptions

    async def subscribe(self, filters: Sequence[Filter], client: str, *, batches: bool) -> tuple[str, Bound]:
        """A token and its lower bound. Raises `LimitReached`."""
        self._check_stopping()
        most = self.limits.subscriptions_per_client
        if self._held[client] >= most:
            raise LimitReached(f"a client may have {most} subscriptions")
        self._held[client] += 1
        try:
            token, bound = await asyncio.to_thread(self.subscriptions.add, filters, batches=batches)
        except BaseException:
            self._held[client] -= 1
            raise
        self._holders[(await asyncio.to_thread(self.subscriptions.get, token)).key] = client
        return token, bound

    async def cancel(self, token: str) -> None:
        """End the streams of a token, and forget it. Raises `UnknownToken`."""
        key = await asyncio.to_thread(self.subscriptions.cancel, token)
        holder = self._holders.pop(key, None)
        if holder is not None:
            self._held[holder] -= 1
        for each in self._open:
            if each.key == key:
                each.is_cancelled = True
                each.wake.set()

    async def check_token(self, token: str) -> None:
        """Raises `UnknownToken`."""
        await asyncio.to_thread(self.subscriptions.get, token)

    async def stream(self, token: str, start: Start, client: str) -> AsyncGenerator[Message, None]:
        """Sync-up, then live. Raises `UnknownToken`, `BadCursor`, `Abandoned`, `LimitReached`, `Ended`, `TakenBack`."""
        self._check_stopping()
        subscription, at = await asyncio.to_thread(self.subscriptions.begin, token, start)
        mine = _Open(client, subscription.key)
        mine.is_full_sync_up = at.seq == 0 and isinstance(start, FromStart) and _is_everything(subscription)
        with self._opened(mine), self._recorded(subscription, at) as note:
            async for message in self._messages(subscription, at, mine):
                note(message)
                yield message

    @contextlib.contextmanager
    def _recorded(self, subscription: Subscription, at: Cursor) -> Iterator[Callable[[Message], None]]:
        """Write down what is handed over, where that is wanted (EV-40)."""
        if self._recorder is None:
            yield lambda _message: None
            return
        name, how, reached = secrets.token_hex(8), "disconnected", at
        recorder = self._recorder
        recorder.opened(log_subscription(subscription), name, at)

        def note(message: Message) -> None:
            nonlocal reached
            reached = message.cursor
            if message.events:
                recorder.delivered(name, Delivered(tuple(map(row_of, message.events)), message.cursor))

        try:
            yield note
        except (Ended, TakenBack) as error:
            how = "abandoned" if isinstance(error, TakenBack) else str(error)
            raise
        finally:
            recorder.ended(name, reached, how)

    async def _messages(self, subscription: Subscription, sent: Cursor, mine: _Open) -> AsyncIterator[Message]:
        through, is_live = sent.seq, False
        clock = asyncio.get_running_loop().time
        due = clock() + self.limits.heartbeat_seconds
        size = BATCH if subscription.batches else 1
        while True:
            mine.wake.clear()
            self._check(mine)
            try:
                read = asyncio.to_thread(self.subscriptions.page, subscription, sent, through, self.limits.page)
                page, sent = await read
            except Abandoned as cut:
                raise TakenBack(cut) from None
            except UnknownToken:
                mine.is_cancelled = True
                continue
            except StoreUnavailable:
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            is_whole = True
            for first in range(0, len(page.events), size):
                self._check(mine)
                if self._epoch > sent.epoch:  # a rewind: what was read beyond the cut must not be sent
                    is_whole = False
                    break
                events = tuple(page.events[first : first + size])
                sent = Cursor(sent.epoch, events[-1].seq_no)
                yield Message(events, sent, is_live)
                due = clock() + self.limits.heartbeat_seconds
            if not is_whole:
                through = sent.seq
                continue
            through = page.through
            if through < page.end:
                if not page.events:
                    sent = Cursor(sent.epoch, through)
                    yield Message((), sent, is_live)
                continue
            if not is_live:
                is_live, mine.is_full_sync_up = True, False
                sent = Cursor(sent.epoch, through)
                yield Message((), sent, is_live)
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(due - clock(), 0)):
                    await mine.wake.wait()
            if clock() >= due:
                due = clock() + self.limits.heartbeat_seconds
                if through > sent.seq:
                    sent = Cursor(sent.epoch, through)
                    yield Message((), sent, is_live)

    # Channel 7

    async def schedule(self, signed: Sequence[bytes]) -> tuple[list[bytes], str]:
        """Store operations that this node anchors. Raises `BadRequest`, `AlreadyThere`."""
        self._check_stopping()
        stored = await asyncio.to_thread(self.scheduled.add, signed, self.branch.number)
        self.handed_over()
        await self._watch.look_at_all()
        self.wake(statuses_only=True)
        return stored

    async def cancel_operation(self, operation_id: bytes, token: str) -> None:
        """Cancel an operation. Raises `UnknownOperation`, `NotCancellable`."""
        in_block = self.branch.place(operation_id) is not None
        await asyncio.to_thread(self.scheduled.cancel, operation_id, token, in_block)
        await self._watch.look_at_all()
        self.wake(statuses_only=True)

    async def statuses(self, operation_id: bytes, client: str) -> AsyncGenerator[Update, None]:
        """The status of an operation, then its changes, until a final one. Raises `UnknownOperation`, `Ended`."""
        self._check_stopping()
        mine = _Open(client, b"")
        with self._opened(mine), self._watch.stream(operation_id) as notes:
            try:
                async for update in self._statuses(operation_id, mine, notes):
                    notes.tell(update)
                    yield update
                notes.end(FINISHED)
            except Ended as error:
                notes.end(str(error))
                raise

    async def _statuses(self, operation_id: bytes, mine: _Open, notes: Watching) -> AsyncIterator[Update]:
        last: Update | None = None
        while True:
            mine.wake.clear()
            self._check(mine)
            try:
                found = await self._watch.look(operation_id)
            except StoreUnavailable:
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            if found is None and last is not None:  # out of blocks for too long, and not scheduled here
                found = Update(OperationStatus.CANCELLED)
            if found is None:
                raise UnknownOperation("no operation of this id is known here")
            notes.begin()
            if found == last:
                notes.wait()
            else:
                last = found
                yield found
            if found.status in FINAL:
                return
            await mine.wake.wait()

    # Limits

    @contextlib.contextmanager
    def _opened(self, mine: _Open) -> Iterator[None]:
        most = self.limits.streams_per_client
        if sum(each.client == mine.client for each in self._open) >= most:
            raise LimitReached(f"a client may have {most} streams")
        if mine.is_full_sync_up and sum(each.is_full_sync_up for each in self._open) >= self.limits.full_sync_ups:
            raise LimitReached(f"{self.limits.full_sync_ups} clients read everything from the start now")
        self._open[mine] = None
        try:
            yield
        finally:
            del self._open[mine]

    def _check(self, mine: _Open) -> None:
        if mine.is_cancelled:
            raise Ended("cancelled", is_resumable=False)
        self._check_stopping()

    def _check_stopping(self) -> None:
        if self._is_stopping:
            raise Ended("shutdown", is_resumable=True)


def _is_everything(subscription: Subscription) -> bool:
    return any(each.type is FilterType.ANONYMOUS_ANY_FILTER for each in subscription.filters)

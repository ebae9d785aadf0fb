"""The queues of upward messages, served in turn under a weight limit (PS-23).

    included block ──check──► enqueue ──► [ queue of a para: messages in order ]
    [ queue of a para ] ──on_initialize──► processor

Serving begins with the queue after the one served last and visits each queue once, until it is
empty. The first message that does not fit ends serving for this block. If no message of its queue
was served, that queue is the first of the next block, with the whole limit. So the first message of
a queue is served within as many blocks as there are queues. If smaller messages could overtake it,
two paras could prevent a third from being served.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeVar

from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import U64_MAX, Hash, ParaId
from pubsub_emulator.primitives.values import value_type
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight
from pubsub_emulator.runtime.framework.dispatch import ensure
from pubsub_emulator.runtime.framework.events import deposit
from pubsub_emulator.runtime.framework.hooks import Hooks, IntegrityError, StateError
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.relay.host_configuration import HostConfiguration, active_config
from pubsub_emulator.runtime.relay.message_queue import ring, types

_DEFAULT_SERVICE_WEIGHT: Final = Weight(400_000_000_000, U64_MAX)
_DEFAULT_OVERHEAD: Final = Weight(10_000_000, 3_000)


@dataclass(frozen=True, slots=True)
class Config:
    """The limits of the pallet."""

    service_weight: Weight = _DEFAULT_SERVICE_WEIGHT
    """The weight for the messages of a block."""
    overhead: Weight = _DEFAULT_OVERHEAD
    """The weight charged per message in addition to its own."""
    heap_size: int = 65_536
    """The size of a page's heap in bytes."""


@value_type
class MessageResult:
    """The result of a message."""

    weight_used: Weight
    success: bool = True
    """Whether the message ran to its end."""
    error: types.MessageError | None = None
    """The reason why the message did not run, or `None` if it ran."""


class Prepared(Protocol):
    """A message that its processor has decoded."""

    @property
    def weight(self) -> Weight:
        """Return the maximum weight of executing it.

        For bytes that are not a message, it is the cost of decoding.
        """


P = TypeVar("P", bound=Prepared)


class MessageProcessor(Protocol[P]):
    """An executor of messages.

    The relay runtime supplies one, since this package does not know XCM.
    """

    def prepare(self, message: bytes) -> P:
        """Decode and weigh a message.

        It never raises.
        """

    def process(
        self, storage: Storage, para: ParaId, prepared: P, message_id: Hash
    ) -> MessageResult:
        """Execute a message, whose blake2b-256 is `message_id`, within its weight.

        It never raises if the message fails.
        """


class MessageQueue(Hooks):
    """`pallet_message_queue`, and the part of the inclusion pallet about upward messages."""

    pallet = types.PALLET

    def __init__(self, processor: MessageProcessor[Any], config: Config | None = None) -> None:
        self.processor = processor
        self.config = Config() if config is None else config
        self._serving = False

    def check(self, storage: Storage, para: ParaId, messages: Sequence[bytes]) -> None:
        """Raise an error if the messages of a parachain block do not fit.

        The errors are `MoreMessagesThanPermitted`, `MessageSize`, `CapacityExceeded` and
        `TotalSizeExceeded`. The block is then refused, and its author keeps it.
        """
        if not messages:
            return
        config = active_config(storage)
        ensure(
            len(messages) <= config.max_upward_message_num_per_candidate,
            types.Error.MoreMessagesThanPermitted,
        )
        longest = self.longest_message(storage)
        ensure(not any(len(message) > longest for message in messages), types.Error.MessageSize)
        book = types.BOOKS.get(storage, para)
        ensure(
            book.message_count + len(messages) <= config.max_upward_queue_count,
            types.Error.CapacityExceeded,
        )
        ensure(
            book.size + sum(map(len, messages)) <= config.max_upward_queue_size,
            types.Error.TotalSizeExceeded,
        )

    def enqueue(self, storage: Storage, para: ParaId, messages: Sequence[bytes]) -> None:
        """Append all messages of a parachain block, or none.

        Raises as `check`.
        """
        if self._serving:
            raise DefensiveFailure("a message that is being processed cannot queue messages")
        self.check(storage, para, messages)
        if not messages:
            return
        book = types.BOOKS.get(storage, para)
        was_empty = book.begin == book.end
        if was_empty:
            ring.knit(storage, para)
            # `knit` has written the book's neighbours, so the book is read again.
            book = replace(types.BOOKS.get(storage, para), end=book.end + 1, count=book.count + 1)
        last = book.end - 1
        page = types.PAGES.get(storage, para, last) or types.Page()
        for message in messages:
            if not page.append(message, self.config.heap_size):
                types.PAGES.insert(storage, para, last, page)
                last = last + 1
                page = types.Page()
                if not page.append(message, self.config.heap_size):
                    raise DefensiveFailure(
                        f"a message of {len(message)} bytes does not fit into a page"
                    )
        types.PAGES.insert(storage, para, last, page)
        end = last + 1
        waiting = book.message_count + len(messages)
        size = book.size + sum(map(len, messages))
        book = replace(
            book, end=end, count=book.count + end - book.end, message_count=waiting, size=size
        )
        types.BOOKS.insert(storage, para, book)
        _note_capacity(storage, types.rows_of(para), book, active_config(storage))

    def service_queues(self, storage: Storage, limit: Weight) -> Weight:
        """Serve each queue at most once, in turn.

        Returns the weight used, at most `limit`.
        """
        turns = ring.books(storage)
        if not turns:
            return WEIGHT_ZERO
        remaining = limit
        config = active_config(storage)
        head: ParaId | None = None
        self._serving = True
        try:
            for para, book in list(turns.items()):
                remaining, updated = self._service_queue(storage, para, book, remaining, config)
                if updated.message_count:
                    turns[para] = updated
                    # This queue is the next to serve only if it had no message served now.
                    head = para if updated is book else list(turns)[1 % len(turns)]
                    break
                del turns[para]
        finally:
            self._serving = False
        ring.close(storage, turns, head)
        return limit - remaining

    def remaining(self, storage: Storage, para: ParaId) -> tuple[int, int]:
        """Return the messages and bytes that the queue of a para still accepts."""
        return _remaining(active_config(storage), types.BOOKS.get(storage, para))

    def longest_message(self, storage: Storage) -> int:
        """Return the maximum length of one message in bytes.

        It is the configured limit or the room of a page, whichever is less.
        """
        return min(
            active_config(storage).max_upward_message_size,
            self.config.heap_size - types.ITEM_HEADER,
        )

    def footprint(self, storage: Storage, para: ParaId) -> tuple[int, int]:
        """Return the number and the bytes of a para's waiting messages."""
        book = types.BOOKS.get(storage, para)
        return book.message_count, book.size

    def messages(self, storage: Storage, para: ParaId) -> list[bytes]:
        """Return the waiting messages of a para, in order."""
        book = types.BOOKS.get(storage, para)
        messages = []
        for index in range(book.begin, book.end):
            raw = storage.get(types.PAGES.key_for(para, index))
            messages += [] if raw is None else types.waiting(raw)
        return messages

    def sweep_queue(self, storage: Storage, para: ParaId) -> None:
        """Remove a para's queue, with its messages and its well-known key."""
        book = types.BOOKS.get(storage, para)
        if book.ready_neighbours is not None:
            ring.unknit(storage, para)
        for index in range(book.begin, book.end):
            types.PAGES.remove(storage, para, index)
        types.BOOKS.remove(storage, para)
        storage.kill(types.rows_of(para).capacity)

    def on_initialize(self, storage: Storage, now: int) -> Weight:  # noqa: ARG002  # every block is alike
        """Serve the queues.

        Emits `Processed`, `ProcessingFailed`, `OverweightDropped`.
        """
        return self.service_queues(storage, self.config.service_weight)

    def on_offboard(self, storage: Storage, outgoing: Iterable[ParaId]) -> None:
        """Remove the queues of paras that left.

        This must run before their published data is removed (PS-11).
        """
        for para in outgoing:
            self.sweep_queue(storage, para)

    def integrity_test(self) -> None:
        """Raise `IntegrityError` unless messages can be served and fit into a page."""
        if self.config.overhead.any_gt(self.config.service_weight):
            raise IntegrityError("the service weight does not allow for one message")
        ensure(
            self.config.heap_size > types.ITEM_HEADER,
            IntegrityError("a page has no room for a message"),
        )

    def try_state(self, storage: Storage) -> None:
        """Raise `StateError` if books do not match their pages, or the ring its queues.

        The ring must have exactly the queues with messages.
        """
        ready = []
        for para, book in types.BOOKS.items(storage):
            pages = dict(types.PAGES.items(storage, para))
            if sorted(pages) != list(range(book.begin, book.end)) or book.count != len(pages):
                raise StateError(f"MessageQueue: the pages of {para} are not those of its book")
            if sum(page.remaining for page in pages.values()) != book.message_count:
                raise StateError(f"MessageQueue: the book of {para} miscounts its messages")
            if sum(page.remaining_size for page in pages.values()) != book.size:
                raise StateError(f"MessageQueue: the book of {para} miscounts its bytes")
            if book.message_count:
                ready.append(para)
        if sorted(ring.members(storage)) != sorted(ready):
            raise StateError("MessageQueue: the ring is not that of the queues with messages")

    def _service_queue(
        self,
        storage: Storage,
        para: ParaId,
        book: types.BookState,
        remaining: Weight,
        config: HostConfiguration,
    ) -> tuple[Weight, types.BookState]:
        """Serve one queue, and return the weight left and the queue's new book.

        If no message was served, the book is the same object.
        """
        rows = types.rows_of(para)
        begin, messages, size = book.begin, book.message_count, book.size
        fits = True
        while begin < book.end and fits:
            row = rows.page(begin)
            raw = storage.get(row)
            if raw is None:
                raise DefensiveFailure(f"page {begin} of {para} is not there")
            lengths = []
            for message in types.waiting(raw):
                used = self._serve(storage, para, message, remaining)
                if used is None:
                    fits = False
                    break
                remaining -= used
                lengths.append(len(message))
            messages -= len(lengths)
            size -= sum(lengths)
            if fits:
                storage.kill(row)
                begin += 1
            elif lengths:
                page = types.PAGES.codec.decode(raw)
                for length in lengths:
                    page.pop(length)
                storage.put(row, types.PAGES.codec.encode(page))
        if messages == book.message_count:
            return remaining, book
        neighbours = None if fits else book.ready_neighbours
        book = types.BookState(begin, book.end, book.end - begin, neighbours, messages, size)
        storage.put(rows.book, types.book_state.encode(book))
        _note_capacity(storage, rows, book, config)
        return remaining, book

    def _serve(
        self, storage: Storage, para: ParaId, message: bytes, remaining: Weight
    ) -> Weight | None:
        """Process or discard one message, and return the weight used.

        Returns `None` if the message does not fit and has to wait.
        """
        prepared = self.processor.prepare(message)
        weight: Weight = prepared.weight
        charged = self.config.overhead + weight
        if charged.any_gt(remaining):
            # A message too heavy for any block is dropped. Only the cost of looking at it is
            # charged.
            if not charged.any_gt(self.config.service_weight) or self.config.overhead.any_gt(
                remaining
            ):
                return None
            deposit(storage, types.OverweightDropped(blake2_256(message), para, weight))
            return self.config.overhead
        digest = blake2_256(message)
        outcome = self.processor.process(storage, para, prepared, digest)
        used = outcome.weight_used
        if outcome.error is None:
            deposit(storage, types.Processed(digest, para, used, outcome.success))
        else:
            deposit(storage, types.ProcessingFailed(digest, para, outcome.error))
        # Without a refund, the executor returns the weigher's object, which needs no comparison.
        if used is weight:
            return charged
        if used.any_gt(weight):
            raise DefensiveFailure(f"a message of {para} used {used} of {weight}")
        return self.config.overhead + used


def _note_capacity(
    storage: Storage, rows: types.QueueRows, book: types.BookState, config: HostConfiguration
) -> None:
    """Store the number of messages and bytes that the queue still accepts.

    Parachains read them under a well-known key: (u32 messages, u32 bytes).
    """
    count, size = _remaining(config, book)
    storage.put(rows.capacity, (count | size << 32).to_bytes(8, "little"))


def _remaining(config: HostConfiguration, book: types.BookState) -> tuple[int, int]:
    count = config.max_upward_queue_count - book.message_count
    size = config.max_upward_queue_size - book.size
    return max(0, count), max(0, size)

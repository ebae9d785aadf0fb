"""Storage, events and errors of `pallet_message_queue`, with their encoding.

origin        00 Ump 00 Para u32
BookState     u32 begin, u32 end, u32 count, Option<(origin prev, origin next)>,
              u64 message_count, u64 size
Page          u32 remaining, u32 remaining_size, u32 first_index, u32 first, u32 last,
              Vec<u8> heap
heap          items one after the other: u32 payload length, bool processed, payload
"""

from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import lru_cache
from struct import Struct
from typing import Annotated, Final

from pubsub_emulator.primitives import scale, type_info
from pubsub_emulator.primitives.errors import DefensiveFailure, ScaleError
from pubsub_emulator.primitives.hashing import twox64_concat
from pubsub_emulator.primitives.scale import Codec, Reader
from pubsub_emulator.primitives.storage_keys import relay_dispatch_queue_remaining_capacity
from pubsub_emulator.primitives.structs import struct
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.primitives.values import value_type
from pubsub_emulator.primitives.weights import Weight, encode_weight, read_weight, weight_info
from pubsub_emulator.runtime.framework.events import event
from pubsub_emulator.runtime.framework.hashers import Twox64Concat
from pubsub_emulator.runtime.framework.items import StorageDoubleMap, StorageMap, StorageValue
from pubsub_emulator.runtime.framework.pallet import Event, Pallet, PalletError, pallet_errors

PALLET: Final = Pallet("MessageQueue", 100, "pallet_message_queue")
ITEM_HEADER: Final = 5
"""Bytes of an item before its payload."""


def _read_origin(reader: Reader) -> ParaId:
    start = reader.pos
    if reader.take(2) != b"\x00\x00":
        raise ScaleError(f"not the queue of a para, at offset {start}")
    return ParaId(reader.uint(4))


def _encode_origin(para: ParaId) -> bytes:
    return b"\x00\x00" + para.to_bytes(4, "little")


_INCLUSION: Final = "polkadot_runtime_parachains::inclusion"
_QUEUE: Final = type_info.variants(f"{_INCLUSION}::UmpQueueId", ("Para", 0, type_info.PARA_ID))
_ORIGIN: Final = type_info.variants(f"{_INCLUSION}::AggregateMessageOrigin", ("Ump", 0, _QUEUE))
origin: Final[Codec[ParaId]] = Codec(
    "AggregateMessageOrigin", _encode_origin, _read_origin, _ORIGIN
)
Origin = Annotated[ParaId, origin]
"""The queue of a para: `AggregateMessageOrigin::Ump(UmpQueueId::Para)`."""


@value_type
class Neighbours:
    """The queues before and after a queue in the ring of queues that have messages."""

    prev: ParaId
    next: ParaId


@value_type
class BookState:
    """The state of a queue."""

    begin: int = 0
    """The index of the first page with waiting messages."""
    end: int = 0
    """The index after the last page."""
    count: int = 0
    ready_neighbours: Neighbours | None = None
    message_count: int = 0
    size: int = 0
    """The number of bytes of payload that wait."""


@dataclass(slots=True)
class Page:
    """A part of a queue."""

    remaining: int = 0
    remaining_size: int = 0
    first_index: int = 0
    first: int = 0
    """The heap offset of the first waiting item."""
    last: int = 0
    """The heap offset of the last item."""
    heap: bytearray = field(default_factory=bytearray)

    def append(self, message: bytes, heap_size: int) -> bool:
        """Append a message, and return whether it fits."""
        start = len(self.heap)
        if start + ITEM_HEADER + len(message) > heap_size:
            return False
        self.heap += len(message).to_bytes(4, "little") + b"\x00" + message
        self.last = start
        self.remaining += 1
        self.remaining_size += len(message)
        return True

    def pop(self, length: int) -> None:
        """Mark the first waiting message as processed and go to the next.

        `length` is the length of that message.
        """
        self.heap[self.first + 4] = 1
        self.first += ITEM_HEADER + length
        self.first_index += 1
        self.remaining -= 1
        self.remaining_size -= length


_ALONE: Final = Struct("<IIIBQQ")
_IN_THE_RING: Final = Struct("<IIIBHIHIQQ")
_SHORT_PAGE: Final = Struct("<IIIIIH")


def waiting(page: bytes) -> list[bytes]:
    """Return the waiting messages of an encoded page.

    Raises `ScaleError`, or `DefensiveFailure` for a corrupt heap.
    """
    heap = page[_SHORT_PAGE.size :]
    length = first = remaining = 0
    if 0x40 <= len(heap) < 0x4000:
        remaining, _, _, first, _, length = _SHORT_PAGE.unpack_from(page)
    if length != len(heap) << 2 | 1:
        # This decodes pages of other lengths, and raises the error for invalid ones.
        whole = _page.decode(page)
        remaining = whole.remaining
        first = whole.first
        heap = bytes(whole.heap)
    messages = []
    for _ in range(remaining):
        start = first + ITEM_HEADER
        first = start + int.from_bytes(heap[first : first + 4], "little")
        if first > len(heap):
            raise DefensiveFailure("a page of the message queue is corrupt")
        messages.append(heap[start:first])
    return messages


def _encode_book(book: BookState) -> bytes:
    neighbours = book.ready_neighbours
    if neighbours is None:
        return _ALONE.pack(book.begin, book.end, book.count, 0, book.message_count, book.size)
    return _IN_THE_RING.pack(
        book.begin,
        book.end,
        book.count,
        1,
        0,
        neighbours.prev,
        0,
        neighbours.next,
        book.message_count,
        book.size,
    )


class _BookCodec(Codec[BookState]):
    """A codec that decodes books without a `Reader`, since a block may serve hundreds of queues."""

    def decode(self, data: bytes) -> BookState:
        if len(data) == _IN_THE_RING.size:
            begin, end, count, is_some, kind, prev, other, following, messages, size = (
                _IN_THE_RING.unpack(data)
            )
            if is_some == 1 and not kind and not other:
                return BookState(begin, end, count, Neighbours(prev, following), messages, size)
        elif len(data) == _ALONE.size:
            begin, end, count, is_some, messages, size = _ALONE.unpack(data)
            if not is_some:
                return BookState(begin, end, count, None, messages, size)
        # This raises the error that says what is wrong.
        return super().decode(data)


_OF_ORIGINS: Final = (type_info.Parameter("MessageOrigin", _ORIGIN),)
_ring: Final = struct(
    Neighbours, origin, origin, rust="pallet_message_queue::Neighbours", params=_OF_ORIGINS
)
_three: Final = (scale.u32, scale.u32, scale.u32)
_BOOK: Final = "pallet_message_queue::BookState"
_book: Final = struct(
    BookState, *_three, scale.option(_ring), scale.u64, scale.u64, rust=_BOOK, params=_OF_ORIGINS
)
book_state: Final[Codec[BookState]] = _BookCodec("BookState", _encode_book, _book.read, _book.info)
_heap: Final[Codec[bytearray]] = scale.bytes_.map("heap", bytearray, bytes).described(
    type_info.bounded(type_info.U8)
)
_SIZED: Final = (type_info.Parameter("Size", type_info.U32),)
_page: Final[Codec[Page]] = struct(
    Page, *_three, scale.u32, scale.u32, _heap, rust="pallet_message_queue::Page", params=_SIZED
)

_about: Final = "The index of the first and last (non-empty) pages."
BOOKS: Final = StorageMap(
    PALLET, "BookStateFor", _about, Twox64Concat, origin, book_state, BookState()
)
SERVICE_HEAD: Final = StorageValue(
    PALLET, "ServiceHead", "The origin at which we should begin servicing.", origin
)
PAGES: Final = StorageDoubleMap(
    PALLET,
    "Pages",
    "The map of page indices to pages.",
    Twox64Concat,
    origin,
    Twox64Concat,
    scale.u32,
    _page,
)


@value_type
class QueueRows:
    """The storage keys of one queue's rows, and the prefix of its pages."""

    book: bytes
    pages: bytes
    capacity: bytes

    def page(self, index: int) -> bytes:
        """Return the storage key of a page."""
        return self.pages + twox64_concat(index.to_bytes(4, "little"))


# Every block needs the keys of the same few queues.
@lru_cache(maxsize=4096)
def rows_of(para: ParaId) -> QueueRows:
    """Return the storage keys of a para's queue."""
    return QueueRows(
        BOOKS.key_for(para), PAGES.prefix_for(para), relay_dispatch_queue_remaining_capacity(para)
    )


class MessageErrorKind(IntEnum):
    """The reason why a message could not be processed.

    It is `frame_support::traits::ProcessMessageError` without data.
    """

    BadFormat = 0
    Corrupt = 1
    Unsupported = 2
    Overweight = 3
    Yield = 4
    StackLimitReached = 5


@value_type
class MessageError:
    """The reason why a message could not be processed."""

    kind: MessageErrorKind
    required: Weight | None = None
    """The required weight, for `Overweight` only."""

    def encode(self) -> bytes:
        """Return the SCALE bytes."""
        return bytes((self.kind,)) + (
            b"" if self.required is None else encode_weight(self.required)
        )


def _read_error(reader: Reader) -> MessageError:
    start = reader.pos
    try:
        error = MessageError(MessageErrorKind(reader.u8()))
    except ValueError:
        raise ScaleError(f"no ProcessMessageError at offset {start}") from None
    if error.kind is MessageErrorKind.Overweight:
        return replace(error, required=read_weight(reader))
    return error


_REQUIRED: Final = {MessageErrorKind.Overweight: (weight_info,)}
_ERROR: Final = type_info.variants(
    "frame_support::traits::messages::ProcessMessageError",
    *((kind.name, kind, *_REQUIRED.get(kind, ())) for kind in MessageErrorKind),
)
message_error: Final[Codec[MessageError]] = Codec(
    "ProcessMessageError", MessageError.encode, _read_error, _ERROR
)


@event(PALLET, 0)
class ProcessingFailed(Event):
    """A message was taken off the queue and could not be processed; `id` is its blake2b-256."""

    id: Hash
    origin: Origin
    error: Annotated[MessageError, message_error]


@event(PALLET, 1)
class Processed(Event):
    """A message was taken off the queue and processed; `success` is the processor's result."""

    id: Hash
    origin: Origin
    weight_used: Weight
    success: bool


@event(PALLET, 4)
class OverweightDropped(Event):
    """A message was discarded because it weighs more than a whole block allows.

    In Rust it waits for `execute_overweight`.
    """

    id: Hash
    origin: Origin
    weight: Weight


@pallet_errors(PALLET)
class Error(PalletError):
    """Why upward messages of a parachain block were refused (`UmpAcceptanceCheckErr`)."""

    MoreMessagesThanPermitted = 0, "A block sends more messages than the configuration allows."
    MessageSize = 1, "A message is longer than the configuration allows."
    CapacityExceeded = 2, "The queue has no room for another message."
    TotalSizeExceeded = 3, "The queue has no room for so many bytes."
    IsOffboarding = 4, "The para is about to leave."

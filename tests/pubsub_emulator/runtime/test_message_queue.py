"""Upward messages: bounded, served in turn under a weight limit, in order, and never lost (PS-23);
books and pages.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pubsub_emulator.primitives.errors import DefensiveFailure, ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.primitives.storage_keys import (
    item_prefix,
    relay_dispatch_queue_remaining_capacity,
)
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight
from pubsub_emulator.runtime.framework.hooks import IntegrityError, StateError
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.relay.host_configuration import HostConfiguration
from pubsub_emulator.runtime.relay.message_queue import (
    Config,
    MessageError,
    MessageErrorKind,
    MessageQueue,
    MessageResult,
    ring,
)
from pubsub_emulator.runtime.relay.message_queue.types import (
    BOOKS,
    PAGES,
    SERVICE_HEAD,
    BookState,
    Neighbours,
    Page,
    book_state,
    waiting,
)

A, B, C = ParaId(1000), ParaId(2000), ParaId(2001)
LIMIT = 100


@dataclass(frozen=True)
class Prepared:
    message: bytes
    weight: Weight


@dataclass
class Processor:
    """A message is its weight (first byte) and a text; 'bad' is no message.

    It uses what `uses` says of its weight.
    """

    seen: list[tuple[ParaId, bytes]] = field(default_factory=list)
    uses: Callable[[int], int] = lambda weight: weight
    also: Callable[[Storage], None] = lambda _storage: None

    def prepare(self, message: bytes) -> Prepared:
        return Prepared(message, Weight(message[0] if message else 0, 0))

    def process(
        self, storage: Storage, para: ParaId, prepared: Prepared, message_id: bytes
    ) -> MessageResult:
        message = prepared.message
        assert message_id == blake2_256(message)
        self.seen.append((para, message))
        self.also(storage)
        if message.endswith(b"bad"):
            return MessageResult(
                WEIGHT_ZERO, success=False, error=MessageError(MessageErrorKind.Corrupt)
            )
        return MessageResult(
            Weight(self.uses(prepared.weight.ref_time), 0), success=not message.endswith(b"half")
        )


def _world(heap_size: int = 65_536, overhead: int = 0) -> tuple[Storage, MessageQueue, Processor]:
    processor = Processor()
    config = Config(Weight(LIMIT, 0), Weight(overhead, 0), heap_size)
    return Storage(State()), MessageQueue(processor, config), processor


def _message(weight: int, text: bytes = b"") -> bytes:
    return bytes([weight]) + text


def test_using_more_than_was_weighed_or_queueing_while_serving_is_a_defect() -> None:
    storage, queue, processor = _world()
    queue.enqueue(storage, A, [_message(1)])
    processor.uses = lambda weight: weight + 1
    with pytest.raises(DefensiveFailure, match="used"):
        queue.on_initialize(storage, 1)
    storage, queue, processor = _world()
    queue.enqueue(storage, A, [_message(1)])
    processor.also = lambda store: queue.enqueue(store, A, [_message(1)])
    with pytest.raises(DefensiveFailure, match="being processed"):
        queue.on_initialize(storage, 1)


def test_the_well_known_key_says_what_the_queue_still_takes() -> None:
    storage, queue, _ = _world()
    key = relay_dispatch_queue_remaining_capacity(A)
    assert storage.get(key) is None
    queue.enqueue(storage, A, [_message(60, b"123"), _message(60)])
    config = HostConfiguration()

    def told() -> tuple[int, int]:
        raw = storage.get(key)
        assert raw is not None
        assert len(raw) == 8
        return int.from_bytes(raw[:4], "little"), int.from_bytes(raw[4:], "little")

    assert told() == (config.max_upward_queue_count - 2, config.max_upward_queue_size - 5)
    queue.on_initialize(storage, 1)
    assert told() == (config.max_upward_queue_count - 1, config.max_upward_queue_size - 1)
    assert told() == queue.remaining(storage, A)
    queue.on_initialize(storage, 2)
    assert told() == (config.max_upward_queue_count, config.max_upward_queue_size)


def test_a_queue_is_stored_as_in_pallet_message_queue() -> None:
    storage, queue, _ = _world()
    queue.enqueue(storage, A, [b"\x3cxy", b"\x3cz"])
    book = storage.get(BOOKS.key_for(A))
    assert book is not None
    origin = "0000e8030000"
    assert book.hex() == (
        "00000000010000000100000001" + origin + origin + "02000000000000000500000000000000"
    )  # fmt: skip
    page = storage.get(PAGES.key_for(A, 0))
    assert page is not None
    head = "0200000005000000000000000000000008000000"  # field by field
    assert page.hex() == head + "3c" + "03000000003c7879" + "02000000003c7a"
    assert (storage.get(item_prefix("MessageQueue", "ServiceHead")) or b"").hex() == origin
    queue.on_initialize(storage, 1)
    page = storage.get(PAGES.key_for(A, 0))
    assert page is not None
    head = "0100000002000000010000000800000008000000"  # field by field
    assert page.hex() == head + "3c" + "03000000013c7879" + "02000000003c7a"


def test_ps11_a_swept_queue_leaves_nothing_behind() -> None:
    storage, queue, processor = _world(heap_size=20)
    queue.enqueue(storage, A, [_message(1, b"123456789")] * 5)
    queue.enqueue(storage, B, [_message(1)])
    queue.on_offboard(storage, [A])
    queue.try_state(storage)
    assert ring.members(storage) == [B]
    queue.on_initialize(storage, 1)
    assert processor.seen == [(B, _message(1))]
    queue.on_offboard(storage, [B, C])
    assert storage.commit() == Storage(State()).commit()


def test_integrity_refuses_a_limit_that_serves_nothing() -> None:
    with pytest.raises(IntegrityError):
        MessageQueue(Processor(), Config(Weight(1, 1), Weight(2, 0))).integrity_test()
    with pytest.raises(IntegrityError):
        MessageQueue(Processor(), Config(heap_size=5)).integrity_test()
    MessageQueue(Processor()).integrity_test()


def test_try_state_finds_a_miscount_and_a_queue_outside_of_the_ring() -> None:
    storage, queue, _ = _world()
    queue.enqueue(storage, A, [_message(1)])
    BOOKS.insert(storage, A, replace(BOOKS.get(storage, A), size=9))
    with pytest.raises(StateError, match="bytes"):
        queue.try_state(storage)
    BOOKS.insert(storage, A, replace(BOOKS.get(storage, A), size=1))
    ring.unknit(storage, A)
    with pytest.raises(StateError, match="ring"):
        queue.try_state(storage)


@given(
    order=st.permutations([ParaId(number) for number in range(6)]),
    leaving=st.lists(st.integers(0, 5), unique=True, max_size=6),
    turns=st.integers(0, 5),
    kept=st.integers(1, 6),
)
def test_the_ring_keeps_its_order_when_queues_leave(
    order: list[ParaId], leaving: list[int], turns: int, kept: int
) -> None:
    storage = Storage(State())
    for para in order:
        ring.knit(storage, para)
    SERVICE_HEAD.put(storage, order[turns])
    model = [*order[turns:], *order[:turns]]
    assert ring.members(storage) == model
    left = dict(list(ring.books(storage).items())[-kept:])
    for para in model[:-kept]:
        BOOKS.remove(storage, para)
    ring.close(storage, left, next(iter(left)))
    model = model[-kept:]
    assert ring.members(storage) == model
    for number in leaving:
        if ParaId(number) in model:
            ring.unknit(storage, ParaId(number))
            model.remove(ParaId(number))
        assert ring.members(storage) == model


U32 = st.integers(0, (1 << 32) - 1)
U64 = st.integers(0, (1 << 64) - 1)
NEIGHBOURS = st.none() | st.builds(Neighbours, U32.map(ParaId), U32.map(ParaId))


@given(
    st.builds(BookState, U32, U32, U32, ready_neighbours=NEIGHBOURS, message_count=U64, size=U64)
)
def test_a_book_reads_both_ways(book: BookState) -> None:
    data = book_state.encode(book)
    assert book_state.decode(data) == book_state.read(Reader(data)) == book


@pytest.mark.parametrize("heap", [0, 1, 63, 64, 65, 16_383, 16_384, 65_536])
def test_a_page_reads_both_ways(heap: int) -> None:
    page = Page(1, 2, 3, 4, 5, bytearray(at % 251 for at in range(heap)))
    data = PAGES.codec.encode(page)
    assert PAGES.codec.decode(data) == PAGES.codec.read(Reader(data)) == page


@pytest.mark.parametrize("at", [12, 13, 14, 19, 20])
def test_a_book_that_is_none_is_refused(at: int) -> None:
    """Whether it is in the ring, and the kinds of its neighbours' queues."""
    data = bytearray(book_state.encode(BookState(0, 1, 1, Neighbours(ParaId(1), ParaId(2)), 3, 4)))
    data[at] ^= 2
    with pytest.raises(ScaleError):
        book_state.decode(bytes(data))


@pytest.mark.parametrize("cut", [-1, 1])
@pytest.mark.parametrize("heap", [40, 100])
def test_a_page_of_another_length_than_it_says_is_refused(heap: int, cut: int) -> None:
    data = PAGES.codec.encode(Page(heap=bytearray(heap)))
    with pytest.raises(ScaleError):
        PAGES.codec.decode(data[:-1] if cut < 0 else data + b"\x00")


@given(st.lists(st.sampled_from([0, 1, 30, 59, 60, 200, 16_000]), max_size=6), st.integers(0, 6))
def test_a_page_holds_the_appended_messages_that_are_not_yet_processed(
    lengths: list[int], served: int
) -> None:
    """Heaps whose length takes one, two and four bytes."""
    messages = [bytes((at,)) * length for at, length in enumerate(lengths)]
    page = Page()
    assert all(page.append(message, 1 << 20) for message in messages)
    for message in messages[:served]:
        page.pop(len(message))
    assert waiting(PAGES.codec.encode(page)) == messages[served:]


@pytest.mark.parametrize("length", [40, 100, 20_000])
def test_a_page_that_says_more_than_it_holds_is_refused(length: int) -> None:
    page = Page()
    page.append(bytes(length), 1 << 20)
    page.remaining = 2
    with pytest.raises(DefensiveFailure, match="corrupt"):
        waiting(PAGES.codec.encode(page))
    page.remaining = 1
    data = PAGES.codec.encode(page)
    for wrong in (data[:-1], data + b"\x00", data[:19]):
        with pytest.raises(ScaleError):
            waiting(wrong)

"""Upward messages: bounded, served in turn under a weight limit, in order, and never lost (PS-23)."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pubsub_emulator.emulator.runtimes import EVERY
from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.storage_keys import item_prefix, relay_dispatch_queue_remaining_capacity
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight
from pubsub_emulator.runtime.framework import events
from pubsub_emulator.runtime.framework.dispatch import DispatchError, ModuleError
from pubsub_emulator.runtime.framework.hooks import IntegrityError, StateError
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.relay.host_configuration import ACTIVE, HostConfiguration
from pubsub_emulator.runtime.relay.message_queue import (
    Config,
    MessageError,
    MessageErrorKind,
    MessageQueue,
    MessageResult,
    OverweightDropped,
    Processed,
    ProcessingFailed,
    ring,
)
from pubsub_emulator.runtime.relay.message_queue.types import BOOKS, PAGES, SERVICE_HEAD

A, B, C, D = (ParaId(number) for number in (1000, 2000, 2001, 2002))
LIMIT = 100


@dataclass(frozen=True)
class Prepared:
    message: bytes
    weight: Weight


@dataclass
class Processor:
    """A message is its weight (first byte) and a text; 'bad' is no message. It uses what `uses` says of its weight."""

    seen: list[tuple[ParaId, bytes]] = field(default_factory=list)
    uses: Callable[[int], int] = lambda weight: weight
    also: Callable[[Storage], None] = lambda _storage: None

    def prepare(self, message: bytes) -> Prepared:
        return Prepared(message, Weight(message[0] if message else 0, 0))

    def process(self, storage: Storage, para: ParaId, prepared: Prepared, message_id: bytes) -> MessageResult:
        message = prepared.message
        assert message_id == blake2_256(message)
        self.seen.append((para, message))
        self.also(storage)
        if message.endswith(b"bad"):
            return MessageResult(WEIGHT_ZERO, success=False, error=MessageError(MessageErrorKind.Corrupt))
        return MessageResult(Weight(self.uses(prepared.weight.ref_time), 0), success=not message.endswith(b"half"))


def _world(heap_size: int = 65_536, overhead: int = 0) -> tuple[Storage, MessageQueue, Processor]:
    processor = Processor()
    config = Config(Weight(LIMIT, 0), Weight(overhead, 0), heap_size)
    return Storage(State()), MessageQueue(processor, config), processor


def _message(weight: int, text: bytes = b"") -> bytes:
    return bytes([weight]) + text


def test_ps23_paras_are_served_in_turn_beginning_after_the_one_served_last() -> None:
    storage, queue, processor = _world()
    for para in (A, B, C):
        queue.enqueue(storage, para, [_message(40, bytes([i])) for i in range(3)])
    served = []
    for block in range(1, 7):
        processor.seen.clear()
        queue.on_initialize(storage, block)
        served.append([para for para, _ in processor.seen])
    # Two fit into a block: a queue is served until something does not fit, then the next one begins.
    assert served == [[A, A], [B, B], [C, C], [A, B], [C], []]


def test_ps23_what_does_not_fit_waits_in_order_and_comes_first_in_the_next_block() -> None:
    storage, queue, processor = _world()
    queue.enqueue(storage, A, [_message(60)])
    queue.enqueue(storage, B, [_message(90, b"1"), _message(1, b"2")])
    queue.enqueue(storage, C, [_message(10)])
    assert queue.on_initialize(storage, 1) == Weight(60, 0)
    assert queue.messages(storage, B) == [_message(90, b"1"), _message(1, b"2")]
    assert SERVICE_HEAD.get(storage) == B
    queue.on_initialize(storage, 2)
    assert [message for _, message in processor.seen[1:]] == [_message(90, b"1"), _message(1, b"2")]
    assert queue.on_initialize(storage, 3) == Weight(10, 0)
    assert queue.on_initialize(storage, 4) == WEIGHT_ZERO


def test_ps23_small_messages_of_others_never_starve_a_heavy_one() -> None:
    storage, queue, processor = _world()
    queue.enqueue(storage, A, [_message(100, b"heavy")])
    for block in range(1, 5):
        for para in (B, C, D):
            queue.enqueue(storage, para, [_message(30)])
        if block == 1:
            SERVICE_HEAD.put(storage, B)
        queue.on_initialize(storage, block)
        if (A, _message(100, b"heavy")) in processor.seen:
            break
    else:
        pytest.fail("four queues, and not served within four blocks")


def test_ps23_a_message_heavier_than_a_whole_block_is_dropped_and_the_next_is_served() -> None:
    storage, queue, processor = _world(overhead=10)
    heavy = _message(91, b"heavy")
    queue.enqueue(storage, A, [heavy, _message(90)])
    queue.on_initialize(storage, 1)
    queue.on_initialize(storage, 2)
    assert processor.seen == [(A, _message(90))]
    assert events.events(storage)[0] == OverweightDropped(blake2_256(heavy), A, Weight(91, 0))
    assert events.events(storage)[0].encode()[:2].hex() == "6404"


def test_messages_that_fail_are_taken_off_the_queue_and_events_say_how() -> None:
    storage, queue, processor = _world()
    sent = [_message(1, b"bad"), _message(2, b"half"), _message(3, b"good")]
    queue.enqueue(storage, A, sent)
    queue.on_initialize(storage, 1)
    assert [message for _, message in processor.seen] == sent
    assert events.events(storage) == [
        ProcessingFailed(blake2_256(sent[0]), A, MessageError(MessageErrorKind.Corrupt)),
        Processed(blake2_256(sent[1]), A, Weight(2, 0), success=False),
        Processed(blake2_256(sent[2]), A, Weight(3, 0), success=True),
    ]
    recorded = events.encode_records(events.records(storage))
    assert events.encode_records(EVERY.decode_records(recorded)) == recorded


def test_weight_that_a_message_did_not_use_serves_others() -> None:
    storage, queue, processor = _world()
    processor.uses = lambda _weight: 1
    queue.enqueue(storage, A, [_message(60)] * 3)
    assert queue.on_initialize(storage, 1) == Weight(3, 0)


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


@pytest.mark.parametrize(
    ("messages", "error"),
    [
        ([b""] * 4, "MoreMessagesThanPermitted"),
        ([bytes(11)], "MessageSize"),
        ([b"", b"", b""], "CapacityExceeded"),
        ([bytes(10), bytes(8)], "TotalSizeExceeded"),
    ],
    ids=["number", "size", "count", "bytes"],
)
def test_ps23_a_block_whose_messages_do_not_fit_is_refused_whole(messages: list[bytes], error: str) -> None:
    storage, queue, _ = _world()
    ACTIVE.put(
        storage,
        replace(
            HostConfiguration(),
            max_upward_message_num_per_candidate=3,
            max_upward_message_size=10,
            max_upward_queue_count=4,
            max_upward_queue_size=20,
        ),
    )
    queue.enqueue(storage, A, [b"\x01", b"\x02\x02"])
    before = dict(storage.iter_prefix())
    with pytest.raises(ModuleError) as caught:
        queue.enqueue(storage, A, messages)
    assert caught.value.name == error
    assert dict(storage.iter_prefix()) == before
    queue.enqueue(storage, B, messages[:1] if len(messages[0]) <= 10 else [])


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


class TheQueueNeverLosesOrReorders(RuleBasedStateMachine):
    """What was taken in is what was served or dropped, and what waits, para by para and in order."""

    def __init__(self) -> None:
        super().__init__()
        self.storage, self.queue, self.processor = _world(heap_size=40, overhead=1)
        ACTIVE.put(
            self.storage,
            replace(
                HostConfiguration(),
                max_upward_message_num_per_candidate=4,
                max_upward_message_size=30,
                max_upward_queue_count=8,
                max_upward_queue_size=120,
            ),
        )
        self.accepted: dict[ParaId, list[bytes]] = {para: [] for para in (A, B, C, D)}
        self.left_at: dict[ParaId, int] = dict.fromkeys(self.accepted, 0)
        self.block = 0
        self.waiting_since: dict[ParaId, tuple[bytes, int]] = {}

    def gone(self, para: ParaId) -> list[bytes]:
        """Served, and dropped for their weight, in the order of their events."""
        by_hash = {blake2_256(message): message for message in self.accepted[para]}
        return [
            by_hash[event.id]
            for event in events.events(self.storage)
            if isinstance(event, Processed | ProcessingFailed | OverweightDropped) and event.origin == para
        ]

    @rule(
        para=st.sampled_from([A, B, C, D]),
        messages=st.lists(st.tuples(st.integers(0, 120), st.binary(max_size=28)), max_size=5),
    )
    def send(self, para: ParaId, messages: list[tuple[int, bytes]]) -> None:
        data = [_message(weight, text) for weight, text in messages]
        before = self.queue.messages(self.storage, para)
        try:
            self.queue.enqueue(self.storage, para, data)
        except DispatchError:
            assert self.queue.messages(self.storage, para) == before
            return
        self.accepted[para] += data

    @rule()
    def serve(self) -> None:
        self.block += 1
        heads = {para: self.queue.messages(self.storage, para)[:1] for para in self.accepted}
        counts = {para: len(self.gone(para)) for para in self.accepted}
        used = self.queue.on_initialize(self.storage, self.block)
        assert used.all_lte(Weight(LIMIT, 0))
        for para, head in heads.items():
            if not head or len(self.gone(para)) > counts[para]:
                self.waiting_since.pop(para, None)
            else:
                _, since = self.waiting_since.setdefault(para, (head[0], self.block))
                assert self.block - since < len(self.accepted), "nobody waits longer than there are queues"

    @invariant()
    def nothing_is_lost_or_reordered(self) -> None:
        self.queue.try_state(self.storage)
        for para, accepted in self.accepted.items():
            assert self.gone(para) + self.queue.messages(self.storage, para) == accepted
        assert sorted(ring.members(self.storage)) == [p for p in (A, B, C, D) if self.queue.messages(self.storage, p)]


TestTheQueueNeverLosesOrReorders = TheQueueNeverLosesOrReorders.TestCase
TestTheQueueNeverLosesOrReorders.settings = settings(stateful_step_count=30)

from dataclasses import replace

import pytest

from pubsub_emulator.emulator.network import Network, NetworkConfig, ParachainConfig, Step
from pubsub_emulator.emulator.network.parachain import Pace, pack
from pubsub_emulator.emulator.network.records import (
    BlockRecord,
    CheckpointRecord,
    Observer,
    RelayRecord,
    SubscriptionRecord,
)
from pubsub_emulator.emulator.relay.runtime import RelayConfig
from pubsub_emulator.emulator.relay.xcm_messages import PUBLISHES_PER_MESSAGE
from pubsub_emulator.primitives.draws import MILLION
from pubsub_emulator.primitives.pubsub import ValidFor, derive_child_key, key_from_data
from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.runtime.framework.origin import Root
from pubsub_emulator.runtime.pallet_pubsub.events import DataPublished, PublisherDeregistered
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec
from pubsub_emulator.runtime.relay.host_configuration import HostConfiguration
from pubsub_emulator.runtime.relay.inclusion import CandidateRefused
from pubsub_emulator.xcm import Publish, decode

PUBLISHER = ParaId(2100)
SYSTEM = ParaId(1000)
SUBSCRIBER = ParaId(3000)
KEY = key_from_data(b"key")
OTHER = key_from_data(b"other")


def _network(seed: str = "test") -> Network:
    return Network.of(
        [PUBLISHER, SYSTEM], {SUBSCRIBER: {PUBLISHER: [KEY, OTHER], SYSTEM: [KEY]}}, seed
    )


def _cheating(*strategies: str, rate: int = MILLION, pace: Pace | None = None) -> Network:
    subscribed = {SYSTEM: tuple(sorted((KEY, OTHER)))}
    chain = ParachainConfig(
        RuntimeSpec(SUBSCRIBER, subscribed), ((strategies, rate), ((), 0)), pace or Pace()
    )
    publisher = ParachainConfig.publisher(RuntimeSpec(SYSTEM, {}))
    return Network(NetworkConfig((chain, publisher), seed=b"cheats"))


def _delivered(steps: list[Step]) -> list[tuple[int, bytes | None]]:
    return [
        (step.number, delivery.value) for step in steps for delivery in step.deliveries(SUBSCRIBER)
    ]


class Recorder(Observer):
    """Keeps every record."""

    def __init__(self) -> None:
        self.seen: list[object] = []
        for name in ("relay_block", "authorities", "subscriptions", "checkpoint", "candidate"):
            setattr(self, name, self.seen.append)


def test_ps31_a_value_of_relay_block_n_is_delivered_on_relay_parent_n() -> None:
    network = _network()
    network.publish(SYSTEM, KEY, b"value", ttl=9)
    steps = network.step(5)
    published = [
        step.number for step in steps for event in step.events if isinstance(event, DataPublished)
    ]
    assert published == [2]
    [(step, delivery)] = [
        (step, delivery) for step in steps for delivery in step.deliveries(SUBSCRIBER)
    ]
    [record] = [record for record in step.records if record.chain == SUBSCRIBER]
    assert step.number == 3
    assert record.candidate.inherent.relay_parent_number == 2
    assert delivery.value == b"value"
    assert delivery.ttl_state == ValidFor(9)


def test_ps11_an_offboarded_publisher_loses_its_data_and_sends_no_more() -> None:
    network = Network(
        replace(
            _network().config, relay=replace(RelayConfig(), session_length=4), segment_length=100
        )
    )
    network.publish(PUBLISHER, KEY, b"value")
    network.step(3)
    network.call(Root(), "Registrar", "deregister", PUBLISHER)
    steps = network.step(
        10
    )  # blocks 4 to 13; in block 4 session 1 begins, the para leaves with session 3
    gone = [
        step.number
        for step in steps
        for event in step.events
        if isinstance(event, PublisherDeregistered)
    ]
    assert gone == [12]
    assert derive_child_key(PUBLISHER) not in network.relay.state.children
    assert (13, None) in _delivered(steps)
    before = network.parachain(PUBLISHER).header
    network.publish(PUBLISHER, KEY, b"again")
    network.step(2)
    assert network.parachain(PUBLISHER).header == before
    assert not network.parachain(PUBLISHER).has_messages()


def test_ps23_what_does_not_fit_the_queue_waits_with_its_sender_in_order() -> None:
    host = replace(HostConfiguration(), max_upward_message_num_per_candidate=2)
    network = Network(replace(_network().config, relay=RelayConfig(host=host)))
    chain = network.parachain(SYSTEM)
    for index in range(3 * PUBLISHES_PER_MESSAGE):
        network.publish(SYSTEM, PubsubKey(index.to_bytes(32, "big")), b"v")
    steps = network.step(2)
    assert len(chain.upward) == 0
    assert [sum(isinstance(event, DataPublished) for event in step.events) for step in steps] == [
        0,
        2 * PUBLISHES_PER_MESSAGE,
    ]
    steps = network.step(1)
    keys = [
        event.key for step in steps for event in step.events if isinstance(event, DataPublished)
    ]
    assert keys == [
        index.to_bytes(32, "big")
        for index in range(2 * PUBLISHES_PER_MESSAGE, 3 * PUBLISHES_PER_MESSAGE)
    ]


def test_ps32_several_blocks_share_a_relay_parent_and_a_lagging_one_never_decreases() -> None:
    network = _cheating(pace=Pace(blocks=3, lag=2))
    network.publish(SYSTEM, KEY, b"value")
    steps = network.step(8)
    records = [record for step in steps for record in step.records if record.chain == SUBSCRIBER]
    parents = [record.candidate.inherent.relay_parent_number for record in records]
    assert parents == sorted(parents)
    assert len(records) == 24
    assert parents[-3:] == [5, 5, 5]
    assert _delivered(steps) == [(5, b"value")]


def test_ps80_collators_take_turns() -> None:
    network = _cheating()
    slots = [
        record.candidate.header.aura_slot() for step in network.step(6) for record in step.records
    ]
    assert [(slot or 0) % 2 for slot in slots] == [1, 0, 1, 0, 1, 0]


def test_ps79_an_equivocating_collator_shows_two_sealed_blocks_for_one_slot() -> None:
    network = _cheating("equivocation")
    network.step(4)
    records = [record for step in network.step(2) for record in step.records]
    twins = [record for record in records if record.strategy == "equivocation"]
    assert twins
    slots = [record.candidate.header.aura_slot() for record in records]
    assert all(slots.count(twin.candidate.header.aura_slot()) == 2 for twin in twins)


def test_observers_hear_everything_in_order_and_segments_start_with_checkpoints() -> None:
    network = Network(replace(_network().config, segment_length=2))
    recorder = Recorder()
    network.observe(recorder)
    network.step(4)
    network.finish()
    checkpoints = [
        (each.segment, each.chain) for each in recorder.seen if isinstance(each, CheckpointRecord)
    ]
    chains = [SYSTEM, PUBLISHER, SUBSCRIBER]
    assert checkpoints == [(segment, chain) for segment in (0, 1, 2) for chain in chains]
    assert [each.number for each in recorder.seen if isinstance(each, RelayRecord)] == [
        0,
        1,
        2,
        3,
        4,
    ]
    segments = [each.segment for each in recorder.seen if isinstance(each, BlockRecord)]
    assert segments == [0, 0, 1, 1]


def test_observers_are_told_of_a_segment_once_though_its_first_step_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = Network(replace(_network().config, segment_length=3))
    recorder = Recorder()
    network.observe(recorder)
    network.step(3)
    recorder.seen.clear()
    with monkeypatch.context() as patch:
        patch.setattr(
            network.relay.runtime.executive, "build_block", lambda *_args, **_kwargs: 1 // 0
        )
        with pytest.raises(ZeroDivisionError):
            network.step(1)
    height = network.parachain(SUBSCRIBER).header.number
    network.step(1)
    begun = [each for each in recorder.seen if isinstance(each, CheckpointRecord)]
    heads = [(SYSTEM, 1, 0), (PUBLISHER, 1, 0), (SUBSCRIBER, 1, height)]
    assert [(each.chain, each.segment, each.header.number) for each in begun] == heads
    assert [each.number for each in recorder.seen if isinstance(each, RelayRecord)] == [4]


def test_ps33_an_upgrade_by_a_downward_message_changes_the_subscriptions_and_is_told() -> None:
    network = _network()
    recorder = Recorder()
    network.observe(recorder)
    network.publish(SYSTEM, KEY, b"kept")
    network.publish(PUBLISHER, OTHER, b"dropped")
    network.step(3)
    network.upgrade(RuntimeSpec(SUBSCRIBER, {SYSTEM: (KEY,)}, spec_version=2))
    network.step(2)
    told = [
        each
        for each in recorder.seen
        if isinstance(each, SubscriptionRecord) and each.chain == SUBSCRIBER
    ]
    assert [each.items for each in told][-1] == ((SYSTEM, (KEY,)),)
    assert network.parachain(SUBSCRIBER).spec().subscriptions == {SYSTEM: (KEY,)}
    network.publish(PUBLISHER, OTHER, b"unheard")
    network.publish(SYSTEM, KEY, b"heard")
    assert _delivered(network.step(3)) == [(8, b"heard")]


def test_a_block_that_the_relay_chain_refuses_has_not_happened() -> None:
    network = Network(replace(_network().config, relay=replace(RelayConfig(), session_length=4)))
    network.call(Root(), "Registrar", "deregister", SUBSCRIBER)
    steps = network.step(8)
    refused = [
        step.number
        for step in steps
        for event in step.events
        if isinstance(event, CandidateRefused)
    ]
    assert refused == [8]
    assert network.parachain(SUBSCRIBER).header.number == 7
    assert all(record.chain != SUBSCRIBER for record in steps[-1].records)


def test_publishes_are_packed_by_count_and_by_size_and_keep_their_order() -> None:
    publishes = [
        Publish(PubsubKey(bytes([index]) * 32), bytes(2048 if index < 40 else 1), 0)
        for index in range(200)
    ]
    messages = pack(publishes)
    assert [instruction for message in messages for instruction in decode(message)] == publishes
    assert all(
        len(message) < 65_531 and len(decode(message)) <= PUBLISHES_PER_MESSAGE
        for message in messages
    )
    assert pack([]) == []

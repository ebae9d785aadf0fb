"""Forks of a network: what is done to one, by its methods or to its very states, no other sees."""

import tracemalloc
from collections.abc import Callable

import pytest

from pubsub_emulator.collator.author import Authored, author
from pubsub_emulator.emulator.network import Network, NetworkConfig, ParachainConfig, Snapshot, Step
from pubsub_emulator.emulator.network.records import RelayRecord
from pubsub_emulator.emulator.observers.summary import Summary
from pubsub_emulator.emulator.scenario.model import (
    PublisherGroup,
    Scenario,
    Subscriber,
    SubscriptionSettings,
)
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.primitives.draws import MILLION
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.primitives.types import ParaId, PubsubKey, RelayBlockNumber, Slot
from pubsub_emulator.runtime.framework.abridged import new_messages
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber.config import CachePolicy, RuntimeSpec
from pubsub_emulator.runtime.pallet_subscriber.storage import LAST_RELAY_PARENT
from pubsub_emulator.runtime.parachain.block import InvalidBlock, Verdict
from pubsub_emulator.runtime.parachain.storage import queue_progress
from pubsub_emulator.runtime.parachain.validate import RelayContext, validate_block

KEY = key_from_data(b"key")


def _network() -> Network:
    network = Network.of(publishers=[1000, 2000], subscribers={3000: {1000: [KEY], 2000: [KEY]}})
    network.publish(1000, KEY, b"before", ttl=9)
    network.step(3)
    return network


def _stands(network: Network) -> list[object]:
    """All that a later step could depend on."""
    return [
        [(kept.header.encode(), kept.state.root()) for kept in network.relay.blocks],
        [
            (chain.header.encode(), chain.state.root(), chain.has_messages())
            for chain in network.parachains.values()
        ],
        network.relay.downward,
        network.relay.lost_downward,
        network.snapshot().extrinsics,
    ]


def test_what_a_full_queue_did_not_take_is_told_block_by_block() -> None:
    network, summary = _network(), Summary()
    network.observe(summary, past=False)
    message = bytes(40_000)
    for _ in range(60):
        network.send_downward(3000, message)
    network.step()
    lost = network.relay.lost_downward
    assert 0 < lost < 60
    network.step()
    assert network.relay.lost_downward == 0
    assert summary.lost_downward == summary.json()["lost_downward"] == lost


def test_what_waits_goes_with_a_fork_and_is_done_in_each() -> None:
    network = _network()
    network.publish(1000, KEY, b"waiting")
    network.delete(2000, [KEY])
    network.send_downward(3000, b"message")
    forks = [network.fork(), network.fork().fork()]
    told = []
    for each in (network, *forks):
        each.step(3)
        told.append(_stands(each))
    assert told[0] == told[1] == told[2]


def test_even_a_write_to_a_state_stays_in_the_fork() -> None:
    network = _network()
    before = _stands(network)
    fork = network.fork()
    for kept in fork.relay.blocks:
        kept.state.apply({b"written": b"by hand"}, {b"child": {b"key": b"value"}})
    for chain in fork.parachains.values():
        chain.state.apply({b"written": b"by hand"}, {})
        chain.collators = ()
    del fork.relay.blocks[1:]
    del fork.parachains[ParaId(3000)]
    assert _stands(network) == before
    assert [kept.state.root() for kept in network.relay.blocks] == [
        kept.header.state_root for kept in network.relay.blocks
    ]
    network.step()


def test_an_observer_stays_with_its_network_and_may_be_spared_the_past() -> None:
    class Told(Summary):
        def relay_block(self, record: RelayRecord) -> None:
            numbers.append(record.number)

    for past, seen in ((True, [0, 1, 2, 3]), (False, [])):
        numbers: list[int] = []
        network = _network()
        network.observe(Told(), past=past)
        network.fork().step()
        assert numbers == seen
        network.step()
        assert numbers == [*seen, 4]


def test_a_simulation_forks_with_its_traffic() -> None:
    scenario = Scenario(
        name="forks",
        seed="forks",
        relay_blocks=8,
        publishers=(PublisherGroup(paras=(ParaId(1000),), keys=4, update_rate=0.5),),
        subscribers=(
            Subscriber(para=ParaId(3000), subscribe=(SubscriptionSettings(publishers="all"),)),
        ),
    )
    simulation = Simulation(scenario)
    simulation.step()
    fork = simulation.fork()
    simulation.run()
    assert fork.network.number == 1
    fork.run()
    assert _stands(fork.network) == _stands(simulation.network)


def test_the_author_s_situation_is_the_block_that_the_next_step_takes() -> None:
    network = _network()
    network.publish(1000, KEY, b"later")
    network.step(2)
    situation = network.situation(3000)
    [record] = [record for record in network.step()[0].records if record.chain == 3000]
    assert situation.honest.encode() == record.candidate.encode()


# A network at one moment: saved for a few references, restored exactly, branched, and its blocks
# authored again.

PUBLISHER = ParaId(1000)
SUBSCRIBER = ParaId(3000)
KEYS = tuple(sorted(key_from_data(b"%d" % at) for at in range(20)))


def _cheated(policy: CachePolicy = CachePolicy.SLOTS, cheats: tuple[str, ...] = ()) -> Network:
    subscriber = RuntimeSpec(SUBSCRIBER, {PUBLISHER: KEYS}, cache=policy)
    return Network(
        NetworkConfig(
            (
                ParachainConfig(subscriber, (((), 0), (cheats, MILLION // 2), ((), 0))),
                ParachainConfig.publisher(RuntimeSpec(PUBLISHER, {})),
            ),
            seed=b"snapshots",
        )
    )


def _go_on(network: Network, label: bytes, blocks: int = 4) -> list[Step]:
    steps = []
    for at in range(blocks):
        network.publish(PUBLISHER, KEYS[(7 * at) % len(KEYS)], label + b"%d" % at * 20)
        network.send_downward(SUBSCRIBER, label)
        steps += network.step()
    return steps


def _told(steps: list[Step]) -> list[object]:
    """Everything that two runs must have in common, as bytes."""
    return [
        (
            step.block.header.encode(),
            [
                (r.candidate.encode(), None if r.refusal is None else str(r.refusal))
                for r in step.records
            ],
            step.deliveries(SUBSCRIBER),
        )
        for step in steps
    ]


@pytest.mark.parametrize("policy", CachePolicy)
def test_ps_90_a_restored_network_repeats_the_same_bytes_every_time(
    policy: CachePolicy,
) -> None:
    network = _cheated(policy, ("omit-node", "wrong-state-root"))
    _go_on(network, b"before")
    network.publish(PUBLISHER, KEYS[3], b"waiting to be sent")
    snapshot = network.snapshot()
    first = _told(_go_on(network, b"after"))
    for elsewhere in (b"branch", b"another branch"):
        _go_on(network, elsewhere, 3)
        network.restore(snapshot)
        assert _told(_go_on(network, b"after")) == first


def test_another_network_of_the_same_configuration_can_take_a_snapshot_over() -> None:
    network, other = _cheated(), _cheated()
    _go_on(network, b"before")
    other.restore(network.snapshot())
    assert _told(_go_on(other, b"after")) == _told(_go_on(network, b"after"))


def _allocated(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        kept = work()
        size, _ = tracemalloc.get_traced_memory()
        del kept
    finally:
        tracemalloc.stop()
    return size


def test_a_snapshot_costs_some_references_and_not_a_copy_of_the_state() -> None:
    network = _cheated()
    for at in range(1000):
        network.publish(PUBLISHER, PubsubKey(at.to_bytes(32, "big")), bytes(1000))
    network.step(6)
    entries = sum(len(trie) for trie in network.relay.state.children.values())
    assert entries == 1000
    snapshots: list[Snapshot] = []
    size = _allocated(lambda: snapshots.extend(network.snapshot() for _ in range(50)))
    assert size < 50 * 20_000  # the state holds over a megabyte
    root = network.relay.state.root()
    _go_on(network, b"moved on")
    assert network.relay.state.root() != root
    network.restore(snapshots[0])
    assert network.relay.state.root() == root


def _author(network: Network, relay_parent: int, slot: int) -> Authored:
    chain = network.parachain(SUBSCRIBER)
    relay = network.relay.access(relay_parent)
    assert relay is not None
    last = LAST_RELAY_PARENT.get(Storage(chain.state))
    marks = queue_progress(Storage(chain.state), last).marks
    waiting = network.relay.inbound(RelayBlockNumber(relay_parent), SUBSCRIBER)
    messages = new_messages(waiting, marks)
    return author(chain.head, relay, messages, Slot(slot), chain.author_of(slot).seed)


@pytest.mark.parametrize("policy", CachePolicy)
def test_ps_79_a_candidate_is_authored_again_by_another_collator_on_the_same_parent(
    policy: CachePolicy,
) -> None:
    network = _cheated(policy)
    steps = _go_on(network, b"before")
    chain = network.parachain(SUBSCRIBER)
    number = network.number
    slot = (chain.header.aura_slot() or 0) + 1
    made = [_author(network, number, slot + turn) for turn in range(3)]
    assert steps
    keys = [chain.author_of(slot + turn).key for turn in range(3)]
    assert len(set(keys)) == 3
    # One set of nodes is accepted, whoever authors (PS-52); what differs is who signs, and in which
    # slot.
    assert len({each.candidate.inherent.encode() for each in made}) == 1
    assert len({each.candidate.hash() for each in made}) == 3
    relay = network.relay.block(number)
    assert relay is not None
    for turn, each in enumerate(made):
        context = RelayContext(RelayBlockNumber(number), relay.header.state_root, Slot(slot + 3))
        outcome = validate_block(chain.head, each.candidate, context)
        assert outcome.state_root == each.candidate.header.state_root
        assert outcome.deliveries == made[0].outcome.deliveries
        early = RelayContext(
            RelayBlockNumber(number), relay.header.state_root, Slot(slot + turn - 1)
        )
        with pytest.raises(InvalidBlock) as refused:
            validate_block(chain.head, each.candidate, early)
        assert refused.value.verdict is Verdict.BAD_SEAL

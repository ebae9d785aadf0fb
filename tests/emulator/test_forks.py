"""Forks of a network: what is done to one, by its methods or to its very states, no other sees."""

from pubsub_emulator.emulator.network import Network
from pubsub_emulator.emulator.network.records import RelayRecord
from pubsub_emulator.emulator.observers.summary import Summary
from pubsub_emulator.emulator.scenario import PublisherGroup, Scenario, Subscriber, SubscriptionSettings
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.primitives.types import ParaId

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
        [(chain.header.encode(), chain.state.root(), chain.has_messages()) for chain in network.parachains.values()],
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


def test_neither_sees_what_the_other_does() -> None:
    network = _network()
    before = _stands(network)
    fork = network.fork()
    fork.publish(1000, KEY, b"elsewhere")
    fork.send_downward(3000, b"message")
    fork.send(1000, 3000, b"message")
    fork.delete(1000, [KEY])
    fork.step(2)
    assert _stands(network) == before
    moved = _stands(fork)
    network.publish(1000, KEY, b"here")
    network.step(5)
    assert _stands(fork) == moved


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


def test_observers_stay_with_the_network_that_they_observe() -> None:
    network = _network()
    summary = Summary()
    network.observe(summary)
    seen = summary.relay_blocks
    network.fork().step()
    assert summary.relay_blocks == seen


def test_an_observer_may_be_spared_the_past() -> None:
    class Told(Summary):
        def relay_block(self, record: RelayRecord) -> None:
            numbers.append(record.number)

    for past, seen in ((True, [0, 1, 2, 3]), (False, [])):
        numbers: list[int] = []
        network = _network()
        network.observe(Told(), past=past)
        assert numbers == seen
        network.step()
        assert numbers == [*seen, 4]


def test_a_simulation_forks_with_its_traffic() -> None:
    scenario = Scenario(
        name="forks",
        seed="forks",
        relay_blocks=8,
        publishers=(PublisherGroup(paras=(ParaId(1000),), keys=4, update_rate=0.5),),
        subscribers=(Subscriber(para=ParaId(3000), subscribe=(SubscriptionSettings(publishers="all"),)),),
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

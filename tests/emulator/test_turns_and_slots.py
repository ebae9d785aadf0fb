"""What a node needs of a network beside steps: a turn on request, slots left out, observers that are told no more."""

import pytest

from pubsub_emulator.emulator.network import Network, NetworkConfig, UnknownParachain
from pubsub_emulator.emulator.network.arguments import BadRequest
from pubsub_emulator.emulator.observers.summary import Summary
from pubsub_emulator.emulator.relay.runtime import RelayConfig
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.runtime.relay.babe import current_slot


def _network() -> Network:
    return Network.of(publishers=[1000], subscribers={2000: {1000: [key_from_data(b"key")]}})


def test_a_parachain_that_builds_on_demand_builds_when_it_is_given_a_turn() -> None:
    network = _network()
    assert [record.chain for record in network.step()[0].records] == [2000]
    network.give_turn(1000)
    assert [record.chain for record in network.step()[0].records] == [1000, 2000]
    assert [record.chain for record in network.step()[0].records] == [2000]


def test_a_turn_is_given_to_known_parachains_only() -> None:
    with pytest.raises(UnknownParachain):
        _network().give_turn(7)


def test_slots_that_are_left_out_come_back_with_a_snapshot() -> None:
    network = _network()
    network.step()
    before = network.snapshot()
    first = current_slot(network.relay.storage())
    network.travel(10)
    network.step()
    assert current_slot(network.relay.storage()) == first + 11
    network.restore(before)
    network.step()
    assert current_slot(network.relay.storage()) == first + 1
    with pytest.raises(BadRequest):
        network.travel(-1)


def test_the_first_slot_is_a_matter_of_configuration() -> None:
    network = Network(NetworkConfig((), RelayConfig(genesis_slot=5)))
    network.step()
    assert current_slot(network.relay.storage()) == 6


def test_observers_that_are_dismissed_hear_nothing_more() -> None:
    network, summary = _network(), Summary()
    network.observe(summary)
    network.step()
    seen = summary.relay_blocks
    network.dismiss()
    network.step()
    assert summary.relay_blocks == seen

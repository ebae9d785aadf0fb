"""How networks, steps and records look in a terminal and in a failed test: one line each, not all their bytes."""

from pubsub_emulator.emulator.network import Network
from pubsub_emulator.primitives.pubsub import key_from_data


def test_networks_steps_and_records_are_one_line() -> None:
    key = key_from_data(b"DOT/USD")
    network = Network.of(publishers=[1000], subscribers={2000: {1000: [key]}})
    (step,) = network.step()
    assert repr(network) == "<Network at relay block 1, parachains 1000, 2000>"
    assert repr(step) == "<Step: relay block 1, 1 candidates>"
    assert repr(step.records[0]) == "<BlockRecord: chain 2000, block 1, valid, 6 nodes>"

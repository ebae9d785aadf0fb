"""`Network.of`: a small network in one call, with limits, policies and cheats."""

import pytest

from pubsub_emulator import Network, key_from_data
from pubsub_emulator.emulator.network.arguments import BadRequest

KEY = key_from_data(b"key")


def test_limits_and_policies_reach_every_chain() -> None:
    network = Network.of(
        publishers=[1000],
        subscribers={2000: {1000: [KEY]}},
        cache="nodes",
        max_pov_size=3_000_000,
        reserve_minimum=True,
        ttl_policy="expiry_index",
        max_value_length=64,
        max_stored_keys=3,
    )
    spec = network.parachain(2000).spec()
    assert (spec.cache.value, spec.max_pov_size, spec.reserve_minimum) == ("nodes", 3_000_000, True)
    pubsub = network.config.relay.pubsub
    assert (pubsub.ttl_policy.value, pubsub.max_value_length, pubsub.max_stored_keys) == ("expiry_index", 64, 3)
    network.publish(1000, KEY, b"7.42", ttl=2)
    assert [each.value for each in network.step(3)[-1].deliveries(2000)] == [b"7.42"]


def test_collators_cheat_as_they_are_told() -> None:
    network = Network.of([1000], {2000: {1000: [KEY]}}, collators={2000: [("stranger",)]})
    assert all(step.refused for step in network.step(2))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"cache": "node"}, "cache is one of nodes, none, slots, not 'node'"),
        ({"ttl_policy": 1}, "ttl_policy is one of scan, expiry_index, not 1"),
        ({"max_pov_size": 0}, "max_pov_size is a whole number from 1 on, not 0"),
        ({"max_stored_keys": True}, "max_stored_keys is a whole number"),
        ({"collators": {1000: [()]}}, "collators: 1000 is no subscriber"),
    ],
)
def test_what_no_network_can_have_is_refused_by_its_name(arguments: dict[str, object], complaint: str) -> None:
    with pytest.raises(BadRequest, match=complaint):
        Network.of([1000], {2000: {1000: [KEY]}}, **arguments)  # type: ignore[arg-type]  # nonsense is the point

"""Small networks: made in one call, one line each in a terminal, and what a node needs of them
beside steps.
"""

from dataclasses import replace

import pytest

from pubsub_emulator.emulator.network import Network, NetworkConfig, UnknownCall, UnknownParachain
from pubsub_emulator.emulator.network.arguments import BadRequest
from pubsub_emulator.emulator.network.parachain import Unsendable
from pubsub_emulator.emulator.network.round import Round, Schedule
from pubsub_emulator.emulator.observers.summary import Summary
from pubsub_emulator.emulator.relay.runtime import RelayConfig
from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.runtime.framework.origin import Root
from pubsub_emulator.runtime.pallet_pubsub.events import (
    DataPublished,
    KeysDeleted,
    KeysForcedDeleted,
)
from pubsub_emulator.runtime.relay.babe import current_slot

KEY = key_from_data(b"key")


def _network() -> Network:
    return Network.of(publishers=[1000], subscribers={2000: {1000: [KEY]}})


def test_an_on_demand_parachain_builds_when_it_is_given_a_turn() -> None:
    network = _network()
    assert [record.chain for record in network.step()[0].records] == [2000]
    network.give_turn(1000)
    assert [record.chain for record in network.step()[0].records] == [1000, 2000]
    assert [record.chain for record in network.step()[0].records] == [2000]
    with pytest.raises(UnknownParachain):
        network.give_turn(7)


def test_omitted_slots_return_with_a_snapshot_and_the_first_is_configured() -> None:
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


# In one call


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
    assert (pubsub.ttl_policy.value, pubsub.max_value_length, pubsub.max_stored_keys) == (
        "expiry_index",
        64,
        3,
    )
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
        ({"max_pov_size": 0}, "max_pov_size is a whole number of at least 1, not 0"),
        ({"max_stored_keys": True}, "max_stored_keys is a whole number"),
        ({"collators": {1000: [()]}}, "collators: 1000 is not a subscriber"),
    ],
)
def test_what_no_network_can_have_is_refused_by_its_name(
    arguments: dict[str, object], complaint: str
) -> None:
    with pytest.raises(BadRequest, match=complaint):
        Network.of([1000], {2000: {1000: [KEY]}}, **arguments)  # type: ignore[arg-type]  # nonsense is the point


def test_networks_steps_and_records_are_one_line() -> None:
    network = _network()
    (step,) = network.step()
    assert repr(network) == "<Network at relay block 1, parachains 1000, 2000>"
    assert repr(step) == "<Step: relay block 1, 1 candidate>"
    assert repr(step.records[0]) == "<BlockRecord: chain 2000, block 1, valid, 9 nodes>"


def test_ps53_judgements_on_top_of_an_orphaned_block_are_forgotten_with_it() -> None:
    network = _network()
    network.publish(1000, KEY, b"value")
    records = [record for step in network.step(3) for record in step.records]
    included = next(record for record in records if record.chain == 2000)
    refused = replace(included, outcome=None)
    other = next(record for record in records if record.chain == 1000)
    now = Round(network.relay, Schedule(1, 100), b"seed", unjudged=False)
    now.records = [refused, included, other, refused]

    now.drop(ParaId(2000))

    assert now.records == [refused, other]


# What no message and no extrinsic can carry is refused when it is asked for, and the network goes
# on (PS-4).

SYSTEM = ParaId(1000)


def _stepped() -> Network:
    network = Network.of([SYSTEM], {})
    network.step(2)
    return network


def _goes_on(network: Network) -> None:
    network.publish(SYSTEM, KEY, b"value")
    steps = network.step(3)
    assert [
        event for step in steps for event in step.events if isinstance(event, DataPublished)
    ] == [DataPublished(SYSTEM, KEY, 5)]


@pytest.mark.parametrize(
    ("key", "value", "ttl", "why"),
    [
        (KEY[:31], b"", 0, BadRequest),
        (KEY + b"\0", b"", 0, BadRequest),
        ("key", b"", 0, BadRequest),
        (KEY, "value", 0, BadRequest),
        (KEY, b"", 2**32, BadRequest),
        (KEY, b"", -1, BadRequest),
        (KEY, b"", 1.5, BadRequest),
        (KEY, bytes(70_000), 0, Unsendable),
    ],
    ids=[
        "short key",
        "long key",
        "text key",
        "text value",
        "ttl",
        "negative ttl",
        "half a ttl",
        "value",
    ],
)
def test_ps4_what_fits_no_message_is_refused(
    key: bytes, value: bytes, ttl: int, why: type[PubsubError]
) -> None:
    network = _stepped()
    with pytest.raises(why):
        network.publish(SYSTEM, PubsubKey(key), value, ttl)
    _goes_on(network)


def test_a_call_that_no_extrinsic_can_carry_is_refused_at_once() -> None:
    network = _stepped()
    with pytest.raises(ScaleError):
        network.call(Root(), "Broadcaster", "force_delete_keys", SYSTEM, [KEY[:31]])
    for pallet, name, args, why in (
        ("Nowhere", "force_delete_keys", (SYSTEM, [KEY]), "force_delete_keys"),
        ("Broadcaster", "nothing", (), "nothing"),
        (
            "Broadcaster",
            "force_delete_keys",
            (SYSTEM,),
            r"takes 2 \(ParaId, Vec<\[u8; 32\]>\), not 1",
        ),
        ("ParaInclusion", "enter", ([b"no candidate"],), "enter does not take these arguments"),
        (
            "Configuration",
            "set_config",
            ("no configuration", 1),
            "set_config does not take these arguments",
        ),
        ("Hrmp", "hrmp_close_channel", (3,), "hrmp_close_channel does not take these arguments"),
        (
            "Balances",
            "force_set_balance",
            (None, 1),
            "force_set_balance does not take these arguments",
        ),
    ):
        with pytest.raises(UnknownCall, match=why):
            network.call(Root(), pallet, name, *args)
    with pytest.raises(UnknownParachain):
        network.publish(4711, KEY, b"")
    _goes_on(network)


def test_root_deletes_keys_of_system_paras_and_managers_those_of_others() -> None:
    registered = ParaId(2100)
    network = Network.of([SYSTEM, registered], {})
    for para in (SYSTEM, registered):
        network.publish(para, KEY, b"value")
    network.step(3)
    for para in (SYSTEM, registered):
        network.delete(para, [KEY])
    events = network.step()[0].events
    deleted = [each for each in events if isinstance(each, KeysDeleted | KeysForcedDeleted)]
    assert deleted == [KeysForcedDeleted(SYSTEM, 1), KeysDeleted(registered, 1)]


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(
            [],
            id="no keys",
        ),
        pytest.param(
            KEY,
            id="not a list",
        ),
        pytest.param(
            [KEY[:5]],
            id="short key",
        ),
        pytest.param(
            ["name"],
            id="text",
        ),
    ],
)
def test_a_deletion_of_no_or_of_malformed_keys_is_refused_at_once(keys: list[PubsubKey]) -> None:
    network = _stepped()
    with pytest.raises(BadRequest, match="key"):
        network.delete(SYSTEM, keys)
    _goes_on(network)


@pytest.mark.parametrize("blocks", [-1, 1.0, True, "3"])
def test_a_network_steps_by_whole_blocks_and_none_backwards(blocks: int) -> None:
    network = _stepped()
    with pytest.raises(BadRequest, match="whole blocks"):
        network.step(blocks)
    assert network.step(0) == []
    assert network.number == 2


def test_a_missing_parachain_is_refused_with_a_list_of_existing_ones() -> None:
    network = _stepped()
    [step] = network.step()
    assert step.deliveries(SYSTEM) == ()
    with pytest.raises(UnknownParachain, match=r"there is no parachain 77\. Parachains: 1000"):
        step.deliveries(77)
    with pytest.raises(UnknownParachain):
        network.send_downward(77, b"message")
    with pytest.raises(BadRequest, match="a message is bytes"):
        network.send_downward(SYSTEM, "message")  # type: ignore[arg-type]  # what a typing error comes to

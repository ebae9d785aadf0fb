"""What no message and no extrinsic can carry is refused when it is asked for, and the network goes on (PS-4)."""

import pytest

from emulator.network import Network, UnknownCall, UnknownParachain
from emulator.parachain import Unsendable
from primitives.errors import PubsubError, ScaleError
from primitives.pubsub import key_from_data
from primitives.types import ParaId, PubsubKey
from runtime.origin import Root
from runtime.pallet_pubsub.events import DataPublished

SYSTEM = ParaId(1000)
KEY = key_from_data(b"key")


def _network() -> Network:
    network = Network.of([SYSTEM], {})
    network.step(2)
    return network


def _goes_on(network: Network) -> None:
    network.publish(SYSTEM, KEY, b"value")
    steps = network.step(3)
    assert [event for step in steps for event in step.events if isinstance(event, DataPublished)] == [
        DataPublished(SYSTEM, KEY, 5)
    ]


@pytest.mark.parametrize(
    ("key", "value", "ttl", "why"),
    [
        (KEY[:31], b"", 0, ScaleError),
        (KEY + b"\0", b"", 0, ScaleError),
        (KEY, b"", 2**32, ScaleError),
        (KEY, b"", -1, ScaleError),
        (KEY, bytes(70_000), 0, Unsendable),
    ],
    ids=["short key", "long key", "ttl", "negative ttl", "value"],
)
def test_ps4_a_publish_that_no_message_can_carry_is_refused_at_once(
    key: bytes, value: bytes, ttl: int, why: type[PubsubError]
) -> None:
    network = _network()
    with pytest.raises(why):
        network.publish(SYSTEM, PubsubKey(key), value, ttl)
    _goes_on(network)


def test_a_call_that_no_extrinsic_can_carry_is_refused_at_once() -> None:
    network = _network()
    with pytest.raises(ScaleError):
        network.call(Root(), "Broadcaster", "force_delete_keys", SYSTEM, [KEY[:31]])
    for pallet, name, args in (
        ("Nowhere", "force_delete_keys", (SYSTEM, [KEY])),
        ("Broadcaster", "nothing", ()),
        ("Broadcaster", "force_delete_keys", (SYSTEM,)),
    ):
        with pytest.raises(UnknownCall):
            network.call(Root(), pallet, name, *args)
    with pytest.raises(UnknownParachain):
        network.publish(4711, KEY, b"")
    _goes_on(network)


def test_ps21_a_value_that_the_pallet_refuses_costs_what_stands_behind_it_in_its_message_and_no_more() -> None:
    network = _network()
    network.publish(SYSTEM, KEY, bytes(2049))
    network.publish(SYSTEM, key_from_data(b"other"), b"behind it")
    told = [event for step in network.step(3) for event in step.events]
    assert not [event for event in told if isinstance(event, DataPublished)]
    network.publish(SYSTEM, key_from_data(b"other"), bytes(59_000))
    network.step()
    _goes_on(network)

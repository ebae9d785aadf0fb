"""What no message and no extrinsic can carry is refused when it is asked for, and the network goes on (PS-4)."""

import pytest

from pubsub_emulator.emulator.network import Network, UnknownCall, UnknownParachain
from pubsub_emulator.emulator.network.arguments import BadRequest
from pubsub_emulator.emulator.network.parachain import Unsendable
from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.runtime.framework.origin import Root
from pubsub_emulator.runtime.pallet_pubsub.events import DataPublished, KeysDeleted, KeysForcedDeleted

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
        (KEY[:31], b"", 0, BadRequest),
        (KEY + b"\0", b"", 0, BadRequest),
        ("key", b"", 0, BadRequest),
        (KEY, "value", 0, BadRequest),
        (KEY, b"", 2**32, BadRequest),
        (KEY, b"", -1, BadRequest),
        (KEY, b"", 1.5, BadRequest),
        (KEY, bytes(70_000), 0, Unsendable),
    ],
    ids=["short key", "long key", "text key", "text value", "ttl", "negative ttl", "half a ttl", "value"],
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
        with pytest.raises(UnknownCall, match=name):
            network.call(Root(), pallet, name, *args)
    with pytest.raises(UnknownCall, match=r"takes 2 \(ParaId, Vec<\[u8; 32\]>\), not 1"):
        network.call(Root(), "Broadcaster", "force_delete_keys", SYSTEM)
    with pytest.raises(UnknownParachain):
        network.publish(4711, KEY, b"")
    _goes_on(network)


def test_keys_are_deleted_by_root_for_a_system_para_and_by_its_manager_for_another() -> None:
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


@pytest.mark.parametrize("keys", [[], KEY, [KEY[:5]], ["name"]])
def test_a_deletion_of_no_or_of_malformed_keys_is_refused_at_once(keys: list[PubsubKey]) -> None:
    network = _network()
    with pytest.raises(BadRequest, match="key"):
        network.delete(SYSTEM, keys)
    _goes_on(network)


@pytest.mark.parametrize("blocks", [-1, 1.0, True, "3"])
def test_a_network_steps_by_whole_blocks_and_none_backwards(blocks: int) -> None:
    network = _network()
    with pytest.raises(BadRequest, match="whole blocks"):
        network.step(blocks)
    assert network.step(0) == []
    assert network.number == 2


def test_deliveries_and_messages_of_a_parachain_that_is_not_there_are_refused_with_those_that_are() -> None:
    network = _network()
    [step] = network.step()
    assert step.deliveries(SYSTEM) == ()
    with pytest.raises(UnknownParachain, match="there is no parachain 77; there are 1000"):
        step.deliveries(77)
    with pytest.raises(UnknownParachain):
        network.send_downward(77, b"message")
    with pytest.raises(BadRequest, match="a message is bytes"):
        network.send_downward(SYSTEM, "message")  # type: ignore[arg-type]  # what a typing error comes to

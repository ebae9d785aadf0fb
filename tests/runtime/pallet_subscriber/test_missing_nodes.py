"""PS-52: the evidence of an omission names the node, the key that leads to it and the nibble at which it starts."""

import pytest
from support.world import Relay, Subscriber, entry, filled, make_spec, numbered

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.storage_keys import ACTIVE_CONFIG
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.runtime.pallet_subscriber.meter import Cut, Meter, NeededNode

KEYS = numbered(3)
CONFIG = b"c" * 40
CONTENTS = filled(KEYS[1:], b"w" * 40) | {KEYS[0]: entry(b"v" * 40)}
RELAY = Relay(1, {1000: CONTENTS}, top={ACTIVE_CONFIG: CONFIG})
VALUE = entry(b"v" * 40).encode()


@pytest.mark.parametrize(
    ("name", "key", "depth"),
    [
        (blake2_256(CONFIG), ACTIVE_CONFIG, 2 * len(ACTIVE_CONFIG)),
        (RELAY.child_roots[1000], KEYS[0], 0),
        (blake2_256(VALUE), KEYS[0], 64),
    ],
    ids=["value of a static key", "child root", "value of an item"],
)
def test_a_missing_node_is_named_with_its_key_and_where_it_starts(name: Hash, key: bytes, depth: int) -> None:
    subscriber = Subscriber(make_spec({1000: KEYS}))
    nodes = {at: node for at, node in RELAY.nodes.items() if at != name}
    assert subscriber.plan(RELAY, nodes=nodes).missing == NeededNode(name, key, depth)


def test_a_publisher_that_cannot_be_read_is_not_called_unchanged() -> None:
    share = Subscriber(make_spec({1000: KEYS})).plan(Relay(1, raw_roots={1000: b"short"})).publishers[ParaId(1000)]
    assert share.disabled is not None
    assert not share.unchanged


def test_a_missing_root_starts_at_the_first_nibble() -> None:
    subscriber = Subscriber(make_spec({1000: KEYS}))
    walked = subscriber.plan(RELAY, nodes={})
    missing = walked.missing
    assert missing is not None
    assert (walked.used, walked.map_charges, walked.static_bytes) == (0, 0, 0)
    assert (missing.node_hash, missing.depth) == (RELAY.root, 0)


def test_ps_52_a_node_that_is_not_there_is_charged_nothing() -> None:
    meter = Meter(make_spec(), {}, 1_048_576)
    with pytest.raises(Cut) as cut:
        meter.read(blake2_256(b""), b"key", 3)
    assert (meter.used, cut.value.missing.depth) == (0, 3)

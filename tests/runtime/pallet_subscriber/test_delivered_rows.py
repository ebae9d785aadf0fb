"""PS-69: where the rows stand in which a subscriber remembers what was delivered."""

from dataclasses import replace

from support.world import PLENTY, each_policy, make_spec, numbered

from pubsub_emulator.primitives.types import Hash, ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber import delivered
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.config import ROW_COST, key_set_hash
from pubsub_emulator.runtime.pallet_subscriber.meter import Meter
from pubsub_emulator.runtime.pallet_subscriber.storage import LastDelivered
from pubsub_emulator.runtime.pallet_subscriber.view import SubscriberView

P, Q = ParaId(1000), ParaId(1001)
ROW = LastDelivered(Hash(b"h" * 32), 7, RelayBlockNumber(8))


def test_publishers_whose_keys_are_one_object_have_rows_of_their_own() -> None:
    keys = tuple(numbered(3))
    spec = replace(make_spec(), subscriptions={P: keys, Q: keys})
    storage = Storage(State())
    delivered.put(storage, spec, P, keys[1], ROW)
    assert delivered.get(storage, spec, Q, keys[1]) is None
    assert delivered.get(storage, spec, P, keys[1]) == ROW


def test_a_packed_row_stands_under_the_mark_of_its_key_set_and_its_number() -> None:
    keys = tuple(numbered(2 * delivered.PACK + 1))
    spec = replace(make_spec(), subscriptions={P: keys})
    storage = Storage(State())
    delivered.put(storage, spec, P, keys[delivered.PACK + 2], ROW)
    delivered.put(storage, spec, P, keys[-1], ROW)
    place = items.LAST_DELIVERED_PACKED.prefix_for(P) + key_set_hash(keys)[:8]
    cell = b"h" * 32 + bytes((7, 0, 0, 0)) + bytes((8, 0, 0, 0))
    assert dict(storage.iter_prefix(items.LAST_DELIVERED_PACKED.prefix)) == {
        place + bytes((1, 0, 0, 0)): bytes(80) + cell + bytes(13 * 40),
        place + bytes((2, 0, 0, 0)): cell,
    }


@each_policy
def test_nothing_is_known_of_keys_that_are_not_subscribed(policy: str) -> None:
    below, known, between, last, above = numbered(5)
    spec = make_spec({P: [known, last]}, cache=policy)
    storage = Storage(State())
    for key in (known, last):
        delivered.put(storage, spec, P, key, ROW)
    found = {key: delivered.get(storage, spec, P, key) for key in (below, known, between, last, above)}
    assert found == {below: None, known: ROW, between: None, last: ROW, above: None}


@each_policy
def test_rows_are_forgotten_by_their_keys_and_none_is_read(policy: str) -> None:
    """PS-45: to look for rows would be to read them."""
    keys = tuple(numbered(40))
    storage = Storage(State())
    for key in keys:
        delivered.put(storage, make_spec({P: keys}, cache=policy), P, key, ROW)
    storage.commit()
    storage.start_recording()
    delivered.clear(storage, P, keys)
    assert storage.recorded == {}
    assert not dict(storage.iter_prefix(b""))


@each_policy
def test_a_row_asked_for_twice_is_charged_once(policy: str) -> None:
    """PS-45: the hash of a leaf is looked up first, then the entry that it stands for."""
    keys = numbered(3)
    spec = make_spec({P: keys}, cache=policy)
    storage = Storage(State())
    delivered.put(storage, spec, P, keys[1], ROW)
    meter = Meter(spec, {}, PLENTY)
    reader = SubscriberView(storage, spec).delivered(meter, P, tuple(keys))
    assert (reader.read(1), reader.read(1)) == (ROW.entry_hash, ROW.entry_hash)
    assert reader.charges == meter.used == ROW_COST + (3 * 40 if policy == "slots" else 0)

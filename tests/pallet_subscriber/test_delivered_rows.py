"""PS-69: where the rows stand in which a subscriber remembers what was delivered."""

from dataclasses import replace

from support.world import make_spec, numbered

from primitives.types import Hash, ParaId, RelayBlockNumber
from runtime.pallet_subscriber import delivered
from runtime.pallet_subscriber.storage import LastDelivered
from runtime.storage import State, Storage

ROW = LastDelivered(Hash(b"h" * 32), 7, RelayBlockNumber(8))


def test_publishers_whose_keys_are_one_object_have_rows_of_their_own() -> None:
    keys = tuple(numbered(3))
    spec = replace(make_spec(), subscriptions={ParaId(1000): keys, ParaId(1001): keys})
    storage = Storage(State())
    delivered.put(storage, spec, ParaId(1000), keys[1], ROW)
    assert delivered.get(storage, spec, ParaId(1001), keys[1]) is None
    assert delivered.get(storage, spec, ParaId(1000), keys[1]) == ROW

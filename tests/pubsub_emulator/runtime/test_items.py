"""Typed items: FRAME's prefixes and hashers to the byte, and a map reads as the dictionary that was
put in.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.hexadecimal import unhex
from pubsub_emulator.primitives.pubsub import publisher_root_key
from pubsub_emulator.primitives.storage_keys import relay_dispatch_queue_remaining_capacity
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.hashers import (
    Blake2_128Concat,
    Blake2_256,
    Hasher,
    Identity,
    Twox64Concat,
)
from pubsub_emulator.runtime.framework.items import StorageDoubleMap, StorageMap, StorageValue
from pubsub_emulator.runtime.framework.pallet import Pallet
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.relay import dmp, hrmp, paras
from pubsub_emulator.runtime.relay.hrmp import HrmpChannelId

VECTORS: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "storage_keys" / "storage_keys.json").read_text()
)
HASHERS = {"Twox64Concat": Twox64Concat, "Blake2_128Concat": Blake2_128Concat, "Identity": Identity}


@pytest.mark.parametrize(
    "vector", VECTORS["storage_keys"], ids=lambda v: f"{v['pallet']}::{v['item']}"
)
def test_storage_keys_equal_those_of_polkadot_js(vector: dict[str, Any]) -> None:
    keys = [unhex(key) for key in vector["keys"]]
    codecs = [scale.fixed(len(key)) for key in keys]
    hashers = [HASHERS[name] for name in vector.get("hashers", [])]
    pallet, item = Pallet(vector["pallet"], 200, "crate"), vector["item"]
    if not keys:
        found = StorageValue(pallet, item, "A row.", scale.u32).key
    elif len(keys) == 1:
        found = StorageMap(pallet, item, "A row.", hashers[0], codecs[0], scale.u32).key_for(
            keys[0]
        )
    else:
        double = StorageDoubleMap(
            pallet,
            item,
            "A row.",
            hasher1=hashers[0],
            key1=codecs[0],
            hasher2=hashers[1],
            key2=codecs[1],
            codec=scale.u32,
        )
        found = double.key_for(keys[0], keys[1])
    assert found == unhex(vector["key"])


@pytest.mark.parametrize(
    "vector", VECTORS["relay_well_known_keys"], ids=lambda v: str(v["para_id"])
)
def test_the_relay_pallets_write_where_parachains_read(vector: dict[str, Any]) -> None:
    para, other = ParaId(vector["para_id"]), ParaId(vector["other_para"])
    found = {
        "para_head": paras.HEADS.key_for(para),
        "dmq_mqc_head": dmp.HEADS.key_for(para),
        "relay_dispatch_queue_remaining_capacity": relay_dispatch_queue_remaining_capacity(para),
        "hrmp_ingress_channel_index": hrmp.INGRESS.key_for(para),
        "hrmp_egress_channel_index": hrmp.EGRESS.key_for(para),
        "hrmp_channel_other_to_para": hrmp.CHANNELS.key_for(HrmpChannelId(other, para)),
        "upgrade_go_ahead_signal": paras.GO_AHEAD.key_for(para),
        "upgrade_restriction_signal": paras.RESTRICTION.key_for(para),
        "pubsub_child_root_key": publisher_root_key(para),
    }
    assert {name: key.hex() for name, key in found.items()} == {
        name: vector[name].removeprefix("0x") for name in found
    }


@pytest.mark.parametrize("hasher", [Twox64Concat, Blake2_128Concat, Identity], ids=repr)
@given(entries=st.dictionaries(st.integers(0, 2**32 - 1), st.binary(max_size=40)))
def test_a_map_is_a_dictionary_in_storage_key_order(
    hasher: Hasher, entries: dict[int, bytes]
) -> None:
    items = StorageMap(Pallet("P", 200, "crate"), "Map", "A row.", hasher, scale.u32, scale.bytes_)
    storage = Storage(State())
    storage.put(b"\xff" * 40, b"beside")
    for key, value in entries.items():
        items.insert(storage, key, value)
    storage.commit()
    found = list(items.items(storage))
    assert dict(found) == entries
    assert [key for key, _ in found] == sorted(entries, key=items.key_for)
    assert list(items.keys(storage)) == [key for key, _ in found]
    if found:
        after = items.key_for(found[0][0])
        assert list(items.items(storage, after)) == found[1:]
    assert items.clear(storage) == len(entries)
    assert list(items.items(storage)) == []
    assert storage.get(b"\xff" * 40) == b"beside"


@given(
    entries=st.dictionaries(
        st.tuples(st.integers(0, 3), st.binary(min_size=4, max_size=4)), st.integers(0, 9)
    )
)
def test_a_double_map_keeps_first_keys_apart(entries: dict[tuple[int, bytes], int]) -> None:
    items = StorageDoubleMap(
        Pallet("P", 200, "crate"),
        "Double",
        "A row.",
        hasher1=Twox64Concat,
        key1=scale.u32,
        hasher2=Identity,
        key2=scale.fixed(4),
        codec=scale.u8,
    )
    storage = Storage(State())
    for (key1, key2), value in entries.items():
        items.insert(storage, key1, key2, value)
    assert {(k1, k2): v for k1, k2, v in items.rows(storage)} == entries
    for first in range(4):
        row = dict(items.items(storage, first))
        assert row == {k2: v for (k1, k2), v in entries.items() if k1 == first}
        assert list(row) == sorted(row)
    ordered = list(items.rows(storage))
    if ordered:
        after = items.key_for(ordered[0][0], ordered[0][1])
        assert list(items.rows(storage, after)) == ordered[1:]
    removed = items.clear(storage, 0)
    assert {(k1, k2): v for k1, k2, v in items.rows(storage)} == {
        k: v for k, v in entries.items() if k[0] != 0
    }
    assert removed == sum(1 for k1, _ in entries if k1 == 0)


def test_a_default_is_read_and_never_shared() -> None:
    storage = Storage(State())
    queue = StorageMap(
        Pallet("P", 200, "crate"),
        "Queue",
        "A row.",
        hasher=Twox64Concat,
        key=scale.u32,
        codec=scale.vec(scale.u8),
        default=[1],
    )
    queue.get(storage, 0).append(2)
    assert queue.get(storage, 0) == [1]
    assert not queue.contains(storage, 0)
    assert (
        StorageMap(
            Pallet("P", 200, "crate"), "Other", "A row.", Twox64Concat, scale.u32, scale.u8
        ).get(storage, 0)
        is None
    )


def test_a_hasher_that_loses_its_keys_cannot_be_iterated() -> None:
    storage = Storage(State())
    items = StorageMap(Pallet("P", 200, "crate"), "M", "A row.", Blake2_256, scale.u8, scale.u8)
    items.insert(storage, 1, 2)
    assert items.get(storage, 1) == 2
    with pytest.raises(DefensiveFailure):
        list(items.items(storage))

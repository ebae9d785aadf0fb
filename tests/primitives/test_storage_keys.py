"""Storage keys: every golden one, and the two that publisher and subscriber must agree on."""

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pubsub_emulator.primitives import storage_keys as sk
from pubsub_emulator.primitives.hashing import blake2_128_concat, identity, twox64_concat, twox_128
from pubsub_emulator.primitives.pubsub import derive_child_key, publisher_root_key
from pubsub_emulator.primitives.types import ParaId

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parent.parent / "vectors" / "scale" / "hashing_scale.json").read_text(encoding="utf-8")
)
HASHERS = {"Twox64Concat": twox64_concat, "Blake2_128Concat": blake2_128_concat, "Identity": identity}


def unhex(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def test_values_maps_and_double_maps_stand_where_polkadot_js_finds_them() -> None:
    assert len(VECTORS["storage_keys"]) == 63
    for vector in VECTORS["storage_keys"]:
        key = sk.item_prefix(vector["pallet"], vector["item"])
        for hasher, part in zip(vector.get("hashers", []), vector["keys"], strict=True):
            key += HASHERS[hasher](unhex(part))
        assert key == unhex(vector["key"])


def test_relay_well_known_keys_are_those_of_the_relay_chain() -> None:
    assert len(VECTORS["relay_well_known_keys"]) == 8
    for vector in VECTORS["relay_well_known_keys"]:
        para, other = ParaId(vector["para_id"]), ParaId(vector["other_para"])
        assert sk.para_head(para) == unhex(vector["para_head"])
        assert sk.dmq_mqc_head(para) == unhex(vector["dmq_mqc_head"])
        assert sk.relay_dispatch_queue_remaining_capacity(para) == unhex(
            vector["relay_dispatch_queue_remaining_capacity"]
        )
        assert sk.hrmp_ingress_channel_index(para) == unhex(vector["hrmp_ingress_channel_index"])
        assert sk.hrmp_egress_channel_index(para) == unhex(vector["hrmp_egress_channel_index"])
        assert sk.hrmp_channel(other, para) == unhex(vector["hrmp_channel_other_to_para"])
        assert sk.upgrade_go_ahead_signal(para) == unhex(vector["upgrade_go_ahead_signal"])
        assert sk.upgrade_restriction_signal(para) == unhex(vector["upgrade_restriction_signal"])
        assert publisher_root_key(para) == unhex(vector["pubsub_child_root_key"])


def test_the_child_key_of_para_1000_is_the_one_in_the_rules() -> None:
    """PS-1."""
    assert derive_child_key(ParaId(1000)).hex() == "707562737562e8030000"


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_child_keys_are_injective_and_stand_under_the_child_prefix(one: int, other: int) -> None:
    """PS-2, PS-3."""
    assert (derive_child_key(ParaId(one)) == derive_child_key(ParaId(other))) == (one == other)
    assert publisher_root_key(ParaId(one)) == b":child_storage:default:" + derive_child_key(ParaId(one))


@given(st.text(max_size=20), st.text(max_size=20))
def test_a_prefix_is_two_hashes_side_by_side(pallet: str, item: str) -> None:
    assert sk.item_prefix(pallet, item) == twox_128(pallet.encode()) + twox_128(item.encode())

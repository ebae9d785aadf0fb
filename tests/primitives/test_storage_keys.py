"""Storage keys: the two that publisher and subscriber must agree on."""

from hypothesis import given
from hypothesis import strategies as st

from pubsub_emulator.primitives import storage_keys as sk
from pubsub_emulator.primitives.hashing import twox_128
from pubsub_emulator.primitives.pubsub import derive_child_key, publisher_root_key
from pubsub_emulator.primitives.types import ParaId


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

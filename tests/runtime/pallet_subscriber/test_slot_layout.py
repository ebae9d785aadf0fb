"""PS-69: which slots a set of keys has, and what the leaf of a key that stands alone hashes to."""

import random

import pytest

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import Hash, PubsubKey
from pubsub_emulator.runtime.pallet_subscriber.cache.slots import layout_of, leaf_reference
from pubsub_emulator.trie.codec import HASHED_LEAF, node_head, pack


def keys_of(count: int, free: int, seed: int = 0) -> tuple[PubsubKey, ...]:
    """So many keys that differ in their last `free` bytes, among a few byte values."""
    draw = random.Random(seed)
    return tuple(
        sorted(
            {PubsubKey(bytes(32 - free) + bytes(draw.choices(b"\x00\x01\x10\x11\xf0", k=free))) for _ in range(count)}
        )
    )


SETS = [
    (),
    keys_of(1, 32),
    keys_of(5, 1),
    keys_of(40, 2),
    keys_of(60, 3),
    keys_of(60, 32),
    keys_of(90, 4),
    keys_of(7, 6),
    keys_of(6, 9),
]


def below(keys: tuple[PubsubKey, ...], prefix: str) -> list[int]:
    return [at for at, key in enumerate(keys) if key.hex().startswith(prefix)]


@pytest.mark.parametrize("keys", SETS, ids=len)
def test_a_row_stands_where_six_keys_part_with_a_slot_for_each_nibble_that_follows(keys: tuple[PubsubKey, ...]) -> None:
    wanted = {}
    for prefix in {key.hex()[:depth] for key in keys for depth in range(64)}:
        nibbles = sorted({keys[at].hex()[len(prefix)] for at in below(keys, prefix)})
        if len(below(keys, prefix)) >= 6 and len(nibbles) > 1:
            suffix = bytes((len(prefix),)) + bytes.fromhex(prefix + "0" * (len(prefix) % 2))
            for place, nibble in enumerate(nibbles):
                wanted[prefix + nibble] = (suffix, len(nibbles), place, below(keys, prefix + nibble))
    layout = layout_of(keys)
    found = {}
    for slot in layout.slots:
        at = list(range(slot.low, slot.high))
        found[keys[slot.low].hex()[: slot.depth]] = (*layout.rows[slot.row], slot.place, at)
    assert found == wanted
    assert len(layout.slots) == len(wanted)
    for key, path in zip(keys, layout.paths, strict=True):
        assert {depth: keys[layout.slots[index].low].hex()[:depth] for depth, index in path.items()} == {
            depth: key.hex()[:depth] for depth in range(1, 65) if key.hex()[:depth] in wanted
        }
        assert list(path) == sorted(path), "shallowest first"


@pytest.mark.parametrize("keys", SETS, ids=len)
def test_a_key_is_alone_from_the_nibble_after_the_last_that_it_shares(keys: tuple[PubsubKey, ...]) -> None:
    alone = tuple(next(d for d in range(65) if below(keys, key.hex()[:d]) == [at]) for at, key in enumerate(keys))
    assert layout_of(keys).alone == alone


@pytest.mark.parametrize("depth", range(65))
def test_a_leaf_is_known_by_the_hash_of_its_entry_wherever_it_starts(depth: int) -> None:
    key, entry_hash = bytes(range(0x71, 0x91)), Hash(b"e" * 32)
    leaf = node_head(HASHED_LEAF, 64 - depth) + pack(key.hex()[depth:]) + entry_hash
    assert leaf_reference(key, depth, entry_hash) == blake2_256(leaf)

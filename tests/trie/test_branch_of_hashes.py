"""The quick look at a branch must know exactly the branches that the careful one would open the same way."""

import pytest

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.trie import read_proof
from pubsub_emulator.trie.step import branch_of_hashes

BRANCH = b"\x80\x05\x80" + 3 * (b"\x80" + bytes(range(32)))


def test_a_branch_of_hashes_gives_its_bitmap() -> None:
    assert branch_of_hashes(BRANCH) == 0x8005


@pytest.mark.parametrize(
    "node",
    [
        b"",
        b"\x80",
        BRANCH[:-1],  # the last hash is cut short
        BRANCH + b"\x00",
        BRANCH + b"\x80" + bytes(32),  # a child more than the bitmap has
        b"\x81" + BRANCH[1:],  # a partial key
        b"\xc0" + BRANCH[1:],  # a value
        BRANCH[:3] + b"\x7c" + BRANCH[4:],  # an inline child
        BRANCH[:36] + b"\x81" + BRANCH[37:],
    ],
)
def test_any_other_node_is_left_to_the_careful_reader(node: bytes) -> None:
    assert branch_of_hashes(node) == 0


def test_a_branch_as_long_as_one_of_hashes_is_read_as_what_it_is() -> None:
    """No honest trie has an inline child longer than a hash, and the codec accepts it."""
    key = b"\x01" + b"k" * 31
    leaf = bytes((0x40 | 62,)) + key[1:] + b"\x08v!"
    other = bytes(64 - len(leaf))
    below = b"\x80\x06\x00" + b"".join(bytes((len(child) << 2,)) + child for child in (leaf, other))
    assert len(below) == 3 + 2 * 33
    root = b"\x80\x01\x00\x80" + blake2_256(below)
    assert read_proof(blake2_256(root), [root, below], [key]) == {key: b"v!"}

"""The quick look at a branch must know exactly the branches that the careful one would open the same way."""

import pytest

from trie.walk import branch_of_hashes

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

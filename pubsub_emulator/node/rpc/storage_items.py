"""Storage queries of `archive_v1_storage` and `chainHead_v1_storage`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from pubsub_emulator.node.chain.block import StoredBlock
from pubsub_emulator.node.rpc.params import Param, fields, hexadecimal, list_of, one_of, text
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.trie import StateTrie

TYPES: Final = (
    "value",
    "hash",
    "closestDescendantMerkleValue",
    "descendantsValues",
    "descendantsHashes",
)
"""The kinds of queries."""
DESCENDANTS: Final = ("descendantsValues", "descendantsHashes")
"""The queries that find all entries below a key."""


@dataclass(frozen=True, slots=True)
class Query:
    """One item of a storage query.

    Raises `ValueError` if it has a pagination key although its type does not list entries.
    """

    key: bytes
    type: str
    """One of `TYPES`."""
    pagination_start_key: bytes | None = None
    """The key after which a listing continues."""

    def __post_init__(self) -> None:
        if self.pagination_start_key is not None and not self.lists:
            raise ValueError(f"paginationStartKey goes with {' and '.join(DESCENDANTS)} only")

    @property
    def lists(self) -> bool:
        """Return whether the query can find more than one entry."""
        return self.type in DESCENDANTS


_FIELDS: Final = {"key": hexadecimal, "type": one_of(TYPES), "paginationStartKey": hexadecimal}
query: Final = fields(Query, _FIELDS, ("key", "type"))
"""Reads a query from JSON."""
ITEMS: Final = Param("items", list_of(query))
"""The queries of `archive_v1_storage`."""


def _from_the_start(**given: Any) -> Query:
    """Return a query without its pagination key."""
    given.pop("pagination_start_key", None)
    return Query(**given)


_UNPAGED: Final = {**_FIELDS, "paginationStartKey": text}
UNPAGED_ITEMS: Final = Param("items", list_of(fields(_from_the_start, _UNPAGED, ("key", "type"))))
"""The queries of `chainHead_v1_storage`. It sends whole listings and ignores pagination keys."""
CHILD_TRIE: Final = Param("childTrie", hexadecimal, optional=True)


def trie_of(block: StoredBlock, child: bytes | None) -> StateTrie | None:
    """Return the top trie, or a child trie by its storage key without the prefix.

    Returns `None` if there is no such child trie. As on a real node, a key with the prefix is the
    key of another trie.
    """
    if child is None:
        return block.state.top
    return block.state.children.get(child)


def find(trie: StateTrie | None, query: Query) -> Iterator[dict[str, str]]:
    """Yield the results of a query in the order of keys."""
    if trie is None:
        return
    if query.lists:
        for key, value in trie.items(query.key, query.pagination_start_key):
            yield _item(key, value, "value" if query.type == "descendantsValues" else "hash")
        return
    if query.type == "closestDescendantMerkleValue":
        merkle = trie.merkle_value(query.key)
        if merkle is not None:
            yield {"key": hexed(query.key), query.type: hexed(merkle)}
        return
    stored = trie.get(query.key)
    if stored is not None:
        yield _item(query.key, stored, query.type)


def _item(key: bytes, value: bytes, shown: str) -> dict[str, str]:
    return {"key": hexed(key), shown: hexed(value if shown == "value" else blake2_256(value))}

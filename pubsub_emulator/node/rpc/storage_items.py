"""Storage queries of the new methods, `archive_v1_storage` and `chainHead_v1_storage`, and what they find."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pubsub_emulator.node.chain.block import Block
from pubsub_emulator.node.rpc.params import hexadecimal
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX
from pubsub_emulator.trie import StateTrie

TYPES: Final = ("value", "hash", "closestDescendantMerkleValue", "descendantsValues", "descendantsHashes")
DESCENDANTS: Final = ("descendantsValues", "descendantsHashes")


@dataclass(frozen=True, slots=True)
class Query:
    """One item asked for; `after` is where a listing goes on."""

    key: bytes
    type: str
    after: bytes | None = None

    @property
    def lists(self) -> bool:
        """Whether it may find many entries."""
        return self.type in DESCENDANTS


def query(value: object) -> Query:
    """A query of its JSON. Raises `ValueError`."""
    if not isinstance(value, dict):
        raise ValueError("an object with key and type is wanted")
    unknown = [name for name in value if name not in {"key", "type", "paginationStartKey"}]
    if unknown:
        raise ValueError(f"an item has no {unknown[0]!r}")
    kind, after = value.get("type"), value.get("paginationStartKey")
    if kind not in TYPES:
        raise ValueError(f"type is one of {', '.join(TYPES)}")
    if after is not None and kind not in DESCENDANTS:
        raise ValueError(f"paginationStartKey goes with {' and '.join(DESCENDANTS)} only")
    return Query(hexadecimal(value.get("key")), kind, None if after is None else hexadecimal(after))


def trie_of(block: Block, child: bytes | None) -> StateTrie | None:
    """The top trie, or a child trie by its storage key with or without the prefix; `None` for an empty one."""
    if child is None:
        return block.state.top
    return block.state.children.get(child.removeprefix(CHILD_STORAGE_PREFIX))


def find(trie: StateTrie | None, asked: Query) -> Iterator[dict[str, str]]:
    """The items that a query finds, in key order."""
    if trie is None:
        return
    if asked.lists:
        for key, value in trie.items(asked.key, asked.after):
            yield _item(key, value, "value" if asked.type == "descendantsValues" else "hash")
        return
    if asked.type == "closestDescendantMerkleValue":
        merkle = trie.merkle_value(asked.key)
        if merkle is not None:
            yield {"key": hexed(asked.key), asked.type: hexed(merkle)}
        return
    held = trie.get(asked.key)
    if held is not None:
        yield _item(asked.key, held, asked.type)


def _item(key: bytes, value: bytes, shown: str) -> dict[str, str]:
    return {"key": hexed(key), shown: hexed(value if shown == "value" else blake2_256(value))}

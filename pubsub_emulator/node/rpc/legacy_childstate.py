"""`childstate_*` and read proofs of child tries.

Publishers write to child tries. Callers name a trie by its storage key with the prefix for default
child tries.
"""

from collections.abc import Callable
from typing import Final

from pubsub_emulator.node.chain.block import StoredBlock
from pubsub_emulator.node.rpc.call import RpcCall
from pubsub_emulator.node.rpc.encode import fitting, maybe_hexed, proof_text
from pubsub_emulator.node.rpc.errors import CLIENT, RpcError
from pubsub_emulator.node.rpc.legacy_state import COUNT, KEY, KEYS, PREFIX, START, page
from pubsub_emulator.node.rpc.method import Json, method
from pubsub_emulator.node.rpc.params import AT, Param, hexadecimal
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX
from pubsub_emulator.trie import StateTrie

CHILD: Final = Param("childKey", hexadecimal, aliases=("child", "childStorageKey"))


def child_key(prefixed: bytes) -> bytes:
    """Return the storage key of a default child trie without the prefix.

    Raises `RpcError` 4003 if the key has another prefix.
    """
    if not prefixed.startswith(CHILD_STORAGE_PREFIX):
        raise RpcError(CLIENT, "Client error: Invalid child storage key")
    return prefixed[len(CHILD_STORAGE_PREFIX) :]


def _trie(block: StoredBlock, prefixed: bytes) -> StateTrie | None:
    return block.state.children.get(child_key(prefixed))


def _declare(ending: str, shown: Callable[[bytes], Json]) -> None:
    """Declare `childstate_getStorage…`, which returns a value as `shown` converts it."""

    @method(f"childstate_getStorage{ending}", CHILD, KEY, AT)
    def get(call: RpcCall, child: bytes, key: bytes, at: bytes | None) -> Json:
        trie = _trie(call.block(at), child)
        value = None if trie is None else trie.get(key)
        return None if value is None else shown(value)


_declare("", hexed)
_declare("Hash", lambda value: hexed(blake2_256(value)))
_declare("Size", len)


@method("childstate_getStorageEntries", CHILD, KEYS, AT, heavy=True)
def get_storage_entries(call: RpcCall, child: bytes, keys: list[bytes], at: bytes | None) -> Json:
    """Return the values of several keys."""
    trie = _trie(call.block(at), child)
    values = (None if trie is None else maybe_hexed(trie.get(key)) for key in keys)
    return list(fitting(values, lambda value: len(value or "null")))


@method("childstate_getKeys", CHILD, PREFIX, AT, heavy=True)
def get_keys(call: RpcCall, child: bytes, prefix: bytes | None, at: bytes | None) -> Json:
    """Return all keys that begin with `prefix`."""
    trie = _trie(call.block(at), child)
    return list(fitting(map(hexed, () if trie is None else trie.keys(prefix or b"")), len))


@method(
    "childstate_getKeysPaged",
    CHILD,
    PREFIX,
    COUNT,
    START,
    AT,
    aliases=("childstate_getKeysPagedAt",),
    heavy=True,
)
def get_keys_paged(
    call: RpcCall,
    child: bytes,
    prefix: bytes | None,
    count: int,
    start: bytes | None,
    at: bytes | None,
) -> Json:
    """Return at most `count` keys after `start`."""
    trie = _trie(call.block(at), child)
    return page(() if trie is None else trie.keys(prefix or b"", start or None), count)


@method("state_getChildReadProof", CHILD, KEYS, AT, heavy=True, few_keys=64)
def get_child_read_proof(call: RpcCall, child: bytes, keys: list[bytes], at: bytes | None) -> Json:
    """Return the trie nodes that prove keys of a child trie.

    They include the path to the child trie's root in the top trie.
    """
    return proof_text(call.block(at), (), {child_key(child): keys})

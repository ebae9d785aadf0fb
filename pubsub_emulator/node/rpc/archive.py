"""`archive_v1_*`: kept blocks by hash and height, their storage, and differences between two of them."""

from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from typing import Final

from pubsub_emulator.node.chain.block import Block
from pubsub_emulator.node.rpc.call import Call
from pubsub_emulator.node.rpc.errors import RpcError
from pubsub_emulator.node.rpc.legacy_state import run
from pubsub_emulator.node.rpc.method import Json, Methods
from pubsub_emulator.node.rpc.params import Param, block_hash, fields, hexadecimal, list_of, one_of, text, u64
from pubsub_emulator.node.rpc.session import RpcSubscription, compact
from pubsub_emulator.node.rpc.storage_items import Query, find, query, trie_of
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.trie import Trie

methods: Final = Methods()
method = methods.method

HASH: Final = Param("hash", block_hash)


@method("archive_v1_genesisHash")
def genesis_hash(call: Call) -> Json:
    """The hash of block 0."""
    return hexed(call.view.genesis.hash)


@method("archive_v1_finalizedHeight")
def finalized_height(call: Call) -> Json:
    """The final block's height."""
    return call.view.final.number


@method("archive_v1_hashByHeight", Param("height", u64))
def hash_by_height(call: Call, height: int) -> Json:
    """The hash of the best chain's block of that height, in a list; an empty one where there is none."""
    block = call.view.at_height(height)
    return [] if block is None else [hexed(block.hash)]


@method("archive_v1_header", HASH)
def header(call: Call, name: bytes) -> Json:
    """The SCALE bytes of a header."""
    block = call.find(name)
    return None if block is None else hexed(block.header.encode())


@method("archive_v1_body", HASH)
def body(call: Call, name: bytes) -> Json:
    """A block's extrinsics."""
    block = call.find(name)
    return None if block is None else [hexed(extrinsic) for extrinsic in block.body]


@method(
    "archive_v1_call",
    HASH,
    Param("function", text),
    Param("callParameters", hexadecimal, aliases=("call_parameters",)),
    executing=True,
)
def archive_call(call: Call, name: bytes, function: str, data: bytes) -> Json:
    """Call a runtime function: its result, or why it fails."""
    block = call.find(name)
    if block is None:
        return None
    try:
        return {"success": True, "value": hexed(run(call, block, function, data))}
    except RpcError as error:
        return {"success": False, "error": error.message}


class StorageQuery(RpcSubscription):
    """The answer to `archive_v1_storage`, event by event."""

    method = "archive_v1_storageEvent"
    group = "archiveStorage"


class StorageDiff(RpcSubscription):
    """The answer to `archive_v1_storageDiff`, event by event."""

    method = "archive_v1_storageDiffEvent"
    group = "archiveStorageDiff"


def _start(call: Call, subscription: RpcSubscription, work: Coroutine[object, None, None]) -> Json:
    try:
        opened = call.open(subscription)
    except RpcError:
        work.close()
        raise
    if call.session is not None:
        call.session.outlet.spawn(work)
    return opened


@method(
    "archive_v1_storage",
    HASH,
    Param("items", list_of(query)),
    Param("childTrie", hexadecimal, optional=True, aliases=("child_trie",)),
    live=True,
)
def storage(call: Call, name: bytes, items: list[Query], child: bytes | None) -> Json:
    """Storage entries of a block."""
    subscription = StorageQuery(call.chain)
    return _start(call, subscription, _answer(subscription, call.find(name), items, child))


async def _answer(subscription: StorageQuery, block: Block | None, items: list[Query], child: bytes | None) -> None:
    if block is None:
        subscription.notify(compact({"event": "storageError", "error": "the block is not kept"}))
    else:
        label = {} if child is None else {"childTrieKey": hexed(child)}
        for item in items:
            await subscription.room()  # also where nothing is found
            for found in find(trie_of(block, child), item):
                if subscription.session is None:
                    return
                subscription.notify(compact({"event": "storage", **found, **label}))
                await subscription.room()
        subscription.notify('{"event":"storageDone"}')
    subscription.end()


@dataclass(frozen=True, slots=True)
class DiffItem:
    """One trie, or the keys below a prefix in it."""

    return_type: str = "value"
    key: bytes = b""
    child_trie_key: bytes | None = None


_DIFF_ITEM: Final = fields(
    DiffItem,
    {"returnType": one_of(("value", "hash")), "key": hexadecimal, "childTrieKey": hexadecimal},
    ("returnType",),
)


@method(
    "archive_v1_storageDiff",
    HASH,
    Param("items", list_of(_DIFF_ITEM), optional=True),
    Param("previousHash", block_hash, optional=True, aliases=("previous_hash",)),
    live=True,
)
def storage_diff(call: Call, name: bytes, items: list[DiffItem] | None, previous: bytes | None) -> Json:
    """The differences of storage between two blocks; the second one is the parent unless given."""
    subscription = StorageDiff(call.chain)
    wanted = [DiffItem()] if items is None else items
    return _start(call, subscription, _difference(call, subscription, name, wanted, previous))


async def _difference(
    call: Call, subscription: StorageDiff, name: bytes, items: list[DiffItem], previous: bytes | None
) -> None:
    block = call.find(name)
    before = None if block is None else call.find(block.header.parent_hash if previous is None else previous)
    if block is None or before is None:
        why = "the block is not kept" if block is None else "the block to compare with is not kept"
        subscription.notify(compact({"event": "storageDiffError", "error": why}))
    elif previous is not None and not _descends(call, block, before):
        why = "the block to compare with is no ancestor of the block"
        subscription.notify(compact({"event": "storageDiffError", "error": why}))
    else:
        for item in items:
            await subscription.room()  # also where nothing differs
            for event in _changes(before, block, item):
                if subscription.session is None:
                    return
                subscription.notify(compact(event))
                await subscription.room()
        subscription.notify('{"event":"storageDiffDone"}')
    subscription.end()


def _descends(call: Call, block: Block, ancestor: Block) -> bool:
    current: Block | None = block
    while current is not None and current.number > ancestor.number:
        current = call.find(current.header.parent_hash)
    return current is ancestor


def _changes(before: Block, block: Block, item: DiffItem) -> Iterator[dict[str, object]]:
    old, new = (trie_of(each, item.child_trie_key) or Trie() for each in (before, block))
    for key, was, now in old.differences(new):
        if not key.startswith(item.key):
            continue
        kind = "added" if was is None else "deleted" if now is None else "modified"
        event: dict[str, object] = {"event": "storageDiff", "key": hexed(key), "type": kind}
        if now is not None:
            event[item.return_type] = hexed(now if item.return_type == "value" else blake2_256(now))
        if item.child_trie_key is not None:
            event["childTrieKey"] = hexed(item.child_trie_key)
        yield event


def _declare_stop(name: str, kind: type[RpcSubscription]) -> None:
    @method(name, Param("subscription", text), live=True)
    def stop(call: Call, subscription: str) -> None:
        if call.session is not None:
            call.session.remove(subscription, kind.group)


_declare_stop("archive_v1_stopStorage", StorageQuery)
_declare_stop("archive_v1_stopStorageDiff", StorageDiff)

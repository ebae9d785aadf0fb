"""`archive_v1_*`: stored blocks by hash and height, their storage, and storage differences."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pubsub_emulator.node.chain.block import StoredBlock
from pubsub_emulator.node.rpc.call import RpcCall, Stream
from pubsub_emulator.node.rpc.errors import RpcError
from pubsub_emulator.node.rpc.legacy_state import run
from pubsub_emulator.node.rpc.method import Json, method
from pubsub_emulator.node.rpc.params import (
    Param,
    block_hash,
    fields,
    hexadecimal,
    list_of,
    one_of,
    text,
    u64,
)
from pubsub_emulator.node.rpc.session import RpcSubscription, compact
from pubsub_emulator.node.rpc.storage_items import CHILD_TRIE, ITEMS, Query, find, trie_of
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.trie import Trie

HASH: Final = Param("hash", block_hash)


@method("archive_v1_finalizedHeight")
def finalized_height(call: RpcCall) -> Json:
    """Return the height of the final block."""
    return call.view.final.number


@method("archive_v1_hashByHeight", Param("height", u64))
def hash_by_height(call: RpcCall, height: int) -> Json:
    """Return a list with the hash of the best chain's block at a height.

    The list is empty if there is no such block.
    """
    block = call.view.at_height(height)
    return [] if block is None else [hexed(block.hash)]


@method("archive_v1_header", HASH)
def header(call: RpcCall, name: bytes) -> Json:
    """Return the SCALE bytes of a header."""
    block = call.find(name)
    return None if block is None else hexed(block.header.encode())


@method("archive_v1_body", HASH)
def body(call: RpcCall, name: bytes) -> Json:
    """Return the extrinsics of a block."""
    block = call.find(name)
    return None if block is None else [hexed(extrinsic) for extrinsic in block.body]


@method(
    "archive_v1_call",
    HASH,
    Param("function", text),
    Param("callParameters", hexadecimal),
    executing=True,
)
def archive_call(call: RpcCall, name: bytes, function: str, data: bytes) -> Json:
    """Call a runtime function and return its result or its error."""
    block = call.find(name)
    if block is None:
        return None
    try:
        return {"success": True, "value": hexed(run(call, block, function, data))}
    except RpcError as error:
        return {"success": False, "error": error.message}


Events = Iterator[dict[str, object] | None]
"""The events of one answer. `None` is not sent: it only lets other tasks run."""


def _start(call: RpcCall, event: str, events: Events) -> Json:
    """Open a subscription and return its id.

    The events are sent in the background, at the client's pace.
    """
    subscription = Stream(call.chain, event)
    opened = call.open(subscription)
    if call.session is not None:
        call.session.outlet.spawn(_send(subscription, events))
    return opened


async def _send(subscription: RpcSubscription, events: Events) -> None:
    """Send events until the last one, or until the client ends the subscription."""
    for event in events:
        if subscription.session is None:
            return
        if event is not None:
            subscription.notify(compact(event))
        await subscription.room()
    subscription.end()


@method("archive_v1_storage", HASH, ITEMS, CHILD_TRIE, live=True)
def storage(call: RpcCall, name: bytes, items: list[Query], child: bytes | None) -> Json:
    """Send the storage entries of a block as events."""
    return _start(call, "archive_v1_storageEvent", _storage_events(call.find(name), items, child))


def _storage_events(block: StoredBlock | None, items: list[Query], child: bytes | None) -> Events:
    """Yield the events of a storage query. The last one is an error if the block is not stored."""
    if block is None:
        yield {"event": "storageError", "error": "the block is not kept"}
        return
    label = {} if child is None else {"childTrieKey": hexed(child)}
    for item in items:
        yield None  # other tasks can run
        for entry in find(trie_of(block, child), item):
            yield {"event": "storage", **entry, **label}
    yield {"event": "storageDone"}


@dataclass(frozen=True, slots=True)
class DiffItem:
    """The part of a storage difference that a caller wants: one trie, and a prefix of its keys."""

    return_type: str = "value"
    """Whether the events contain values or their hashes."""
    key: bytes = b""
    """The prefix."""
    child_trie_key: bytes | None = None
    """The storage key of a child trie, or `None` for the top trie."""


_DIFF_FIELDS: Final = {
    "returnType": one_of(("value", "hash")),
    "key": hexadecimal,
    "childTrieKey": hexadecimal,
}
_DIFF_ITEMS: Final = Param(
    "items", list_of(fields(DiffItem, _DIFF_FIELDS, ("returnType",))), optional=True
)


@method(
    "archive_v1_storageDiff",
    HASH,
    _DIFF_ITEMS,
    Param("previousHash", block_hash, optional=True),
    live=True,
)
def storage_diff(
    call: RpcCall, name: bytes, items: list[DiffItem] | None, previous: bytes | None
) -> Json:
    """Send the differences of storage between two blocks as events.

    The previous block is the parent by default. It must be an ancestor of the block.
    """
    wanted = [DiffItem()] if items is None else items
    events = _difference_events(call, name, wanted, previous)
    return _start(call, "archive_v1_storageDiffEvent", events)


def _difference_events(
    call: RpcCall, name: bytes, items: list[DiffItem], previous: bytes | None
) -> Events:
    """Yield the events of a storage difference.

    The only event is an error if a block is not stored, or the previous one is not an ancestor.
    """
    block = call.find(name)
    if block is None:
        yield {"event": "storageDiffError", "error": "the block is not kept"}
        return
    before = call.find(block.header.parent_hash if previous is None else previous)
    if before is None:
        yield {"event": "storageDiffError", "error": "the block to compare with is not kept"}
        return
    ancestor: StoredBlock | None = block
    while ancestor is not None and ancestor.number > before.number:
        ancestor = call.find(ancestor.header.parent_hash)
    if ancestor is not before:
        yield {
            "event": "storageDiffError",
            "error": "the block to compare with is not an ancestor of the block",
        }
        return
    for item in items:
        yield None
        yield from _changes(before, block, item)
    yield {"event": "storageDiffDone"}


def _changes(
    before: StoredBlock, block: StoredBlock, item: DiffItem
) -> Iterator[dict[str, object]]:
    """Yield the differences of one trie between two blocks as events."""
    old = trie_of(before, item.child_trie_key) or Trie()
    new = trie_of(block, item.child_trie_key) or Trie()
    for key, old_value, value in old.differences(new):
        if not key.startswith(item.key):
            continue
        if old_value is None:
            kind = "added"
        elif value is None:
            kind = "deleted"
        else:
            kind = "modified"
        event: dict[str, object] = {"event": "storageDiff", "key": hexed(key), "type": kind}
        if value is not None:
            returned = value if item.return_type == "value" else blake2_256(value)
            event[item.return_type] = hexed(returned)
        if item.child_trie_key is not None:
            event["childTrieKey"] = hexed(item.child_trie_key)
        yield event


def _declare_stop(name: str, event: str) -> None:
    """Declare a method that ends a subscription. `event` is the name of its events."""

    @method(name, Param("subscription", text), live=True)
    def stop(call: RpcCall, subscription: str) -> None:
        if call.session is not None:
            call.session.remove(subscription, event)


_declare_stop("archive_v1_stopStorage", "archive_v1_storageEvent")
_declare_stop("archive_v1_stopStorageDiff", "archive_v1_storageDiffEvent")

"""`state_*`: storage, proofs, runtime calls and versions, at any stored block."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain as chained
from itertools import islice
from typing import Any, Final

from pubsub_emulator.node import api
from pubsub_emulator.node.at import metadata, runtime_version
from pubsub_emulator.node.chain.block import Chain, StoredBlock
from pubsub_emulator.node.chain.timeline import Advance, ChainView, Timeline
from pubsub_emulator.node.pool import MOST_EXTRINSIC
from pubsub_emulator.node.rpc.call import RpcCall, unsubscribes
from pubsub_emulator.node.rpc.encode import fitting, maybe_hexed, proof_text
from pubsub_emulator.node.rpc.errors import RpcError, execution_failed
from pubsub_emulator.node.rpc.method import Json, method
from pubsub_emulator.node.rpc.params import (
    AT,
    Param,
    block_hash,
    hexadecimal,
    hexadecimals,
    text,
    u64,
)
from pubsub_emulator.node.rpc.session import Overflow, RpcSubscription, compact
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.runtime.framework.definitions import RuntimeVersion

MOST_KEYS: Final = 1000
"""The maximum number of keys of a page."""
MOST_ARGUMENTS: Final = MOST_EXTRINSIC + 1024
"""The maximum size of a runtime function's arguments in bytes."""
CODE: Final = b":code"
"""The storage key of the runtime."""
KEY: Final = Param("key", hexadecimal)
KEYS: Final = Param("keys", hexadecimals)
PREFIX: Final = Param("prefix", hexadecimal, optional=True)
COUNT: Final = Param("count", u64)
START: Final = Param("startKey", hexadecimal, optional=True, aliases=("start",))

# Storage


@method("state_getStorage", KEY, AT, aliases=("state_getStorageAt",))
def get_storage(call: RpcCall, key: bytes, at: bytes | None) -> Json:
    """Return the value of a key."""
    return maybe_hexed(call.block(at).state.top.get(key))


@method("state_getStorageHash", KEY, AT, aliases=("state_getStorageHashAt",))
def get_storage_hash(call: RpcCall, key: bytes, at: bytes | None) -> Json:
    """Return the BLAKE2-256 hash of a value."""
    value = call.block(at).state.top.get(key)
    return None if value is None else hexed(blake2_256(value))


@method("state_getStorageSize", KEY, AT, aliases=("state_getStorageSizeAt",), heavy=True)
def get_storage_size(call: RpcCall, key: bytes, at: bytes | None) -> Json:
    """Return the size of a value, or of all values whose keys begin with `key`, in bytes."""
    top = call.block(at).state.top
    value = top.get(key)
    if value is not None:
        return len(value)
    return sum(len(inner) for _, inner in top.items(key)) or None


@method(
    "state_getKeysPaged", PREFIX, COUNT, START, AT, aliases=("state_getKeysPagedAt",), heavy=True
)
def get_keys_paged(
    call: RpcCall, prefix: bytes | None, count: int, start: bytes | None, at: bytes | None
) -> Json:
    """Return at most `count` keys after `start`."""
    return page(call.block(at).state.top.keys(prefix or b"", start or None), count)


def page(keys: Iterable[bytes], count: int) -> Json:
    """Return the first `count` keys as hexadecimal digits.

    Raises `RpcError` 4002 if `count` is above the limit.
    """
    if count > MOST_KEYS:
        raise RpcError(4002, f"count exceeds maximum value. value: {count}, max: {MOST_KEYS}")
    return list(map(hexed, islice(keys, count)))


@method("state_getKeys", PREFIX, AT, heavy=True)
def get_keys(call: RpcCall, prefix: bytes | None, at: bytes | None) -> Json:
    """Return all keys that begin with `prefix`."""
    return list(fitting(map(hexed, call.block(at).state.top.keys(prefix or b"")), len))


@method("state_queryStorageAt", KEYS, AT, heavy=True)
def query_storage_at(call: RpcCall, keys: list[bytes], at: bytes | None) -> Json:
    """Return the values of several keys."""
    return [_changes(call.block(at), keys)]


def _changes(block: StoredBlock, keys: Iterable[bytes]) -> dict[str, Any]:
    """Return a storage change set with the values of these keys.

    Raises `RpcError` if it is too long for an answer.
    """
    get = block.state.top.get
    changes = ([hexed(key), maybe_hexed(get(key))] for key in keys)
    return {"block": hexed(block.hash), "changes": list(fitting(changes, _size))}


def _size(change: list[str | None]) -> int:
    return sum(len(part) for part in change if part is not None)


_FROM: Final = Param("fromBlock", block_hash, aliases=("from",))
_TO: Final = Param("toBlock", block_hash, optional=True, aliases=("to",))


@method("state_queryStorage", KEYS, _FROM, _TO, heavy=True)
def query_storage(call: RpcCall, keys: list[bytes], first: bytes, last: bytes | None) -> Json:
    """Return the values of keys at the first block of a range, and later changes by block.

    Raises `RpcError` 4001 unless both blocks are on the best chain and in order.
    """
    start = call.block(first)
    end = call.block(last)
    view = call.view
    details = ""
    if start.number > end.number:
        details = "from number > to number"
    elif any(view.at_height(block.number) is not block for block in (start, end)):
        details = "from and to should be on one chain"
    if details:
        raise RpcError(
            4001,
            f"Cannot resolve a block range ['{hexed(first)}' ... '{hexed(end.hash)}]. {details}",
        )
    order = {key: index for index, key in enumerate(dict.fromkeys(keys))}
    blocks = chained(((start, keys),), _changed_in(view, start, end.number, order))
    change_sets = (_changes(block, changed) for block, changed in blocks)
    return list(fitting(change_sets, lambda change_set: sum(map(_size, change_set["changes"]))))


def _changed_in(
    view: ChainView, before: StoredBlock, last: int, order: Mapping[bytes, int]
) -> Iterator[tuple[StoredBlock, list[bytes]]]:
    """Yield each block after `before` that changes some keys, up to height `last`.

    `order` contains the keys with their indices. Each block comes with its changed keys in order.
    """
    for number in range(before.number + 1, last + 1):
        block = view.at_height(number)
        if block is None:
            break
        differing = (key for key, _, _ in before.state.top.differences(block.state.top))
        changed = sorted((key for key in differing if key in order), key=order.__getitem__)
        if changed:
            yield block, changed
        before = block


@method("state_getReadProof", KEYS, AT, heavy=True)
def get_read_proof(call: RpcCall, keys: list[bytes], at: bytes | None) -> Json:
    """Return the trie nodes that are visited when keys are read."""
    return proof_text(call.block(at), keys, {})


# The runtime


def run(call: RpcCall, block: StoredBlock, name: str, data: bytes) -> bytes:
    """Call a runtime function at a block. Raises `RpcError` 4003."""
    if len(data) > MOST_ARGUMENTS:
        raise execution_failed(
            f"Other: the arguments have {len(data)} bytes, and at most {MOST_ARGUMENTS}"
        )
    try:
        return api.call(call.node.at(block), name, data)
    except api.UnknownFunction:
        raise execution_failed(f"Other: Exported method {name} is not found") from None
    except RpcError:
        raise
    except PubsubError as error:
        raise execution_failed(str(error)) from error


_FUNCTION: Final = Param("name", text, aliases=("method",))
_DATA: Final = Param("bytes", hexadecimal, aliases=("data",))


@method("state_call", _FUNCTION, _DATA, AT, aliases=("state_callAt",), executing=True)
def state_call(call: RpcCall, name: str, data: bytes, at: bytes | None) -> Json:
    """Call a runtime function."""
    return hexed(run(call, call.block(at), name, data))


@method("state_getMetadata", AT)
def get_metadata(call: RpcCall, at: bytes | None) -> Json:
    """Return the metadata of version 14."""
    return hexed(metadata(call.node.at(call.block(at)), 14))


def version_json(version: RuntimeVersion) -> dict[str, object]:
    """Return a runtime version in the form of the legacy methods."""
    return {
        "specName": version.spec_name,
        "implName": version.impl_name,
        "authoringVersion": version.authoring_version,
        "specVersion": version.spec_version,
        "implVersion": version.impl_version,
        "apis": [[hexed(name), number] for name, number in version.apis],
        "transactionVersion": version.transaction_version,
        "systemVersion": version.system_version,
        "stateVersion": version.system_version,
    }


@method("state_getRuntimeVersion", AT, aliases=("chain_getRuntimeVersion",))
def get_runtime_version(call: RpcCall, at: bytes | None) -> Json:
    """Return the runtime's version."""
    return version_json(runtime_version(call.node.at(call.block(at))))


# Subscriptions


def changed_entries(
    timeline: Timeline, advance: Advance, block: StoredBlock
) -> Mapping[bytes, bytes | None]:
    """Return the keys of the top trie that a block changed, with their new values.

    The result is computed once for all subscribers of a step.
    """
    known = advance.changes.get(block.hash)
    if known is None:
        parent = timeline.block(block.chain, block.header.parent_hash)
        known = {}
        if parent is not None:
            differences = parent.state.top.differences(block.state.top)
            known = {key: new for key, _, new in differences}
        advance.changes[block.hash] = known
    return known


class StorageChanges(RpcSubscription):
    """A subscription to storage keys. The first event has all values, and later ones changes."""

    method = "state_storage"
    group = "storage"
    overflow = Overflow.NEWEST

    def __init__(self, chain: Chain, keys: list[bytes], timeline: Timeline) -> None:
        super().__init__(chain)
        self.keys = {key: index for index, key in enumerate(dict.fromkeys(keys))}
        """The indices of the keys, by which events are ordered."""
        self.weight = len(self.keys)
        self._timeline = timeline

    def newest(self, timeline: Timeline) -> None:
        """Send the values of all keys at the best block."""
        self.notify(compact(_changes(timeline.views[self.chain].best, list(self.keys))))

    def advanced(self, advance: Advance) -> None:
        """Send the changes of each new block.

        After a rewind, send the differences from the previous best block.
        """
        change = advance.chains[self.chain]
        if advance.rewound:
            best = change.view.best
            before = change.before.state.top
            after = best.state.top
            self._send(best, [key for key in self.keys if before.get(key) != after.get(key)])
            return
        for block in change.new:
            changed = changed_entries(self._timeline, advance, block)
            self._send(block, sorted(changed.keys() & self.keys.keys(), key=self.keys.__getitem__))

    def _send(self, block: StoredBlock, keys: list[bytes]) -> None:
        """Send the values of changed keys, if there are any."""
        if keys:
            self.notify(compact(_changes(block, keys)))


@method("state_subscribeStorage", KEYS, live=True)
def subscribe_storage(call: RpcCall, keys: list[bytes]) -> Json:
    """Subscribe to the values of keys and their changes."""
    return call.begin(StorageChanges(call.chain, keys, call.node.timeline))


unsubscribes("state_unsubscribeStorage", StorageChanges.group)


class RuntimeVersions(RpcSubscription):
    """A subscription to the runtime's version: the present one, then each new one."""

    method = "state_runtimeVersion"
    group = "runtimeVersion"
    overflow = Overflow.NEWEST

    def __init__(self, call: RpcCall) -> None:
        super().__init__(call.chain)
        self._node = call.node
        self._known: RuntimeVersion | None = None

    def newest(self, timeline: Timeline) -> None:
        """Send the version at the best block, unless it was the last one sent."""
        self._report(timeline.views[self.chain].best)

    def advanced(self, advance: Advance) -> None:
        """Send the version of the best block if its code is new."""
        change = advance.chains[self.chain]
        if change.view.best.state.top.get(CODE) != change.before.state.top.get(CODE):
            self._report(change.view.best)

    def _report(self, block: StoredBlock) -> None:
        """Send the version at a block, unless it was sent last."""
        version = runtime_version(self._node.at(block))
        if version != self._known:
            self._known = version
            self.notify(compact(version_json(version)))


@method("state_subscribeRuntimeVersion", aliases=("chain_subscribeRuntimeVersion",), live=True)
def subscribe_runtime_version(call: RpcCall) -> Json:
    """Subscribe to the runtime's version and its changes."""
    return call.begin(RuntimeVersions(call))


unsubscribes(
    "state_unsubscribeRuntimeVersion", RuntimeVersions.group, "chain_unsubscribeRuntimeVersion"
)

"""The storage items of the pallet `Subscriber` (section 4 of the rules)."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from pubsub_emulator.primitives import scale, type_info
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.scale import Codec, Reader
from pubsub_emulator.primitives.structs import struct
from pubsub_emulator.primitives.types import U32_MAX, Hash, ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.runtime.framework.codecs import hash_by_para, hash_codec, para_id, pubsub_key
from pubsub_emulator.runtime.framework.hashers import Blake2_128Concat, Identity, Twox64Concat
from pubsub_emulator.runtime.framework.items import StorageDoubleMap, StorageValue, para_map
from pubsub_emulator.runtime.framework.pallet import Pallet
from pubsub_emulator.runtime.pallet_subscriber.meter import DisableReason

PALLET: Final = Pallet("Subscriber", 102, "pallet_subscriber")


class LastDelivered(NamedTuple):
    """The last delivery of an item: the hash of the entry, and its lifetime."""

    entry_hash: Hash
    ttl: int
    when_inserted: RelayBlockNumber


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """The current cache of a publisher."""

    generation: int = 0
    nodes: int = 0
    """The number of nodes."""
    bytes: int = 0
    """The sum of the costs of the nodes in bytes."""


def _encode_last(row: LastDelivered) -> bytes:
    return row.entry_hash + (row.ttl | row.when_inserted << 32).to_bytes(8, "little")


def decode_last_delivered(row: bytes) -> LastDelivered:
    """Return the value of a stored row, which is 40 bytes long."""
    lifetime = int.from_bytes(row[32:], "little")
    return LastDelivered(Hash(row[:32]), lifetime & U32_MAX, RelayBlockNumber(lifetime >> 32))


def _read_last(reader: Reader) -> LastDelivered:
    return LastDelivered(Hash(reader.take(32)), reader.uint(4), RelayBlockNumber(reader.uint(4)))


def _read_reason(index: int) -> DisableReason:
    if index >= len(_REASONS):
        raise ScaleError(f"no DisableReason {index}")
    return _REASONS[index]


_REASONS: Final = tuple(DisableReason)

relay_block: Final[Codec[RelayBlockNumber]] = scale.u32.named("RelayBlockNumber", RelayBlockNumber)
item: Final[Codec[tuple[ParaId, PubsubKey]]] = scale.pair(para_id, pubsub_key)
generation: Final[Codec[tuple[ParaId, int]]] = scale.pair(para_id, scale.u32)
packed_row: Final[Codec[tuple[bytes, int]]] = scale.pair(scale.fixed(8), scale.u32)
_LAST: Final = type_info.struct(
    "pallet_subscriber::LastDelivered",
    entry_hash=type_info.H256,
    ttl=type_info.U32,
    when_inserted=type_info.U32,
)
last_delivered: Final = Codec("LastDelivered", _encode_last, _read_last, _LAST)
cache_info: Final = struct(
    CacheInfo, scale.u32, scale.u32, scale.u32, rust="pallet_subscriber::CacheInfo"
)
disable_reason: Final[Codec[DisableReason]] = scale.u8.map(
    "DisableReason", _read_reason, _REASONS.index
).described(
    type_info.enum("pallet_subscriber::DisableReason", *(reason.value for reason in _REASONS))
)
raw: Final[Codec[bytes]] = Codec("raw", bytes, lambda reader: reader.take(reader.remaining()))
"""Bytes without a length prefix: trie nodes and rows of slots."""

PROCESSED_ROOTS: Final = StorageValue(
    PALLET,
    "ProcessedRoots",
    "The roots under which every item of a publisher is resolved.",
    hash_by_para,
    {},
)
PROCESSING_CURSOR: Final = StorageValue(
    PALLET, "ProcessingCursor", "The item at which the next walk goes on.", item
)
_about: Final = "What was last delivered of an item: entry hash, ttl, when inserted."
LAST_DELIVERED: Final = StorageDoubleMap(
    PALLET, "LastDelivered", _about, Twox64Concat, para_id, Identity, pubsub_key, last_delivered
)
LAST_DELIVERED_PACKED: Final = StorageDoubleMap(
    PALLET,
    "LastDeliveredPacked",
    "The same, sixteen items in a row.",
    Twox64Concat,
    para_id,
    Identity,
    packed_row,
    raw,
)
SUBSCRIPTION_HASH: Final = StorageValue(
    PALLET,
    "SubscriptionHash",
    "The hash of the keys subscribed to, by publisher.",
    hash_by_para,
    {},
)
DISABLED_PUBLISHERS: Final = para_map(
    PALLET, "DisabledPublishers", "Publishers that are no longer read, and why.", disable_reason
)
LAST_RELAY_PARENT: Final = StorageValue(
    PALLET, "LastRelayParent", "The relay parent of the last block.", relay_block
)
_nodes: Final = "Cached nodes of a publisher's trie, by hash."
CACHED_TRIE_NODES: Final = StorageDoubleMap(
    PALLET, "CachedTrieNodes", _nodes, Blake2_128Concat, generation, Identity, hash_codec, raw
)
CACHE_INFO: Final = para_map(
    PALLET,
    "CacheInfo",
    "The live cache of a publisher: generation, nodes, bytes.",
    cache_info,
    CacheInfo(),
)
STALE_CACHES: Final = StorageValue(
    PALLET,
    "StaleCaches",
    "Caches that were dropped and wait to be removed.",
    scale.vec(generation),
    [],
)
_slots: Final = "Cached node hashes of a publisher's trie, by prefix of the key."
CACHE_SLOTS: Final = StorageDoubleMap(
    PALLET, "CacheSlots", _slots, Twox64Concat, para_id, Identity, raw, raw
)

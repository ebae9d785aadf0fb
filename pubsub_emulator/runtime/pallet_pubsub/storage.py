"""The pallet's storage items, and the full storage keys of one publisher's rows for hot paths.

Entries are in the publisher's child trie (PS-1). Zero counters are not stored: a publisher without
entries has no rows.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import twox64_concat
from pubsub_emulator.primitives.pubsub import derive_child_key
from pubsub_emulator.primitives.scale import Codec
from pubsub_emulator.primitives.structs import struct
from pubsub_emulator.primitives.types import U32_MAX, AccountId, Balance, ParaId, PubsubKey
from pubsub_emulator.runtime.framework.codecs import (
    account_id,
    balance,
    para_id,
    pubsub_key,
    relay_number,
)
from pubsub_emulator.runtime.framework.hashers import Identity, Twox64Concat
from pubsub_emulator.runtime.framework.items import StorageDoubleMap, StorageValue, para_map
from pubsub_emulator.runtime.pallet_pubsub.config import PALLET


@dataclass(frozen=True, slots=True)
class PublisherInfo:
    """A registration: the manager, and the deposit held of that account's balance."""

    manager: AccountId
    deposit: Balance


@dataclass(frozen=True, slots=True)
class ScanCursor:
    """The row that a sweep examined last."""

    para: ParaId
    key: PubsubKey
    visited: int
    """The number of its publisher's rows that this lap has visited, including it."""


class TtlRow(NamedTuple):
    """A finite entry in a sweep; expired from block `expiry` on, which may exceed u32 (PS-13)."""

    para: ParaId
    key: PubsubKey
    expiry: int


_expiry_block: Final[Codec[int]] = scale.fixed(8).map(
    "u64 big endian", lambda raw: int.from_bytes(raw, "big"), lambda block: block.to_bytes(8, "big")
)

_info: Final = struct(PublisherInfo, account_id, balance, rust="pallet_broadcaster::PublisherInfo")
RegisteredPublishers: Final = para_map(
    PALLET, "RegisteredPublishers", "Who manages a publisher, and what is held for it.", _info
)
CounterForRegisteredPublishers: Final = StorageValue(
    PALLET, "CounterForRegisteredPublishers", "How many publishers are registered.", scale.u32, 0
)
PublishedKeys: Final = para_map(
    PALLET, "PublishedKeys", "How many keys a publisher stores.", scale.u32, 0
)
TotalStorageSize: Final = para_map(
    PALLET,
    "TotalStorageSize",
    "Bytes that a publisher stores: 32 for each key, and its value.",
    scale.u32,
    0,
)
_about: Final = "The lifetime of an entry and the block in which it was inserted."
_lifetime: Final = scale.pair(scale.u32, relay_number)
TtlData: Final = StorageDoubleMap(
    PALLET, "TtlData", _about, Twox64Concat, para_id, Twox64Concat, pubsub_key, _lifetime
)
_cursor: Final = struct(
    ScanCursor, para_id, pubsub_key, scale.u32, rust="pallet_broadcaster::ScanCursor"
)
TtlScanCursor: Final = StorageValue(
    PALLET, "TtlScanCursor", "The row that the sweep for expired entries examined last.", _cursor
)
TtlLapMark: Final = para_map(
    PALLET, "TtlLapMark", "Where the sweep of a publisher's rows began.", pubsub_key
)
_entry: Final = scale.pair(para_id, pubsub_key)
_due: Final = "Entries by the block in which they expire."
ExpiryIndex: Final = StorageDoubleMap(
    PALLET, "ExpiryIndex", _due, Identity, _expiry_block, Identity, _entry, scale.unit
)


@dataclass(frozen=True, slots=True)
class PublisherRows:
    """The storage keys of one publisher's rows.

    Its child storage key and the prefix of its TTL rows are here too.
    """

    para: ParaId
    encoded_para: bytes
    child: bytes
    registration: bytes
    published_keys: bytes
    total_storage_size: bytes
    ttl_prefix: bytes

    def ttl_row(self, key: bytes) -> bytes:
        """Return the storage key of the `TtlData` row of `key`."""
        return self.ttl_prefix + twox64_concat(key)

    def index_row(self, lifetime: bytes, key: bytes) -> bytes:
        """Return the storage key of an entry's `ExpiryIndex` row.

        `lifetime` is the last 8 bytes of the entry.
        """
        encoded = int.from_bytes(lifetime, "little")
        expiry = (encoded & U32_MAX) + (encoded >> 32)
        return ExpiryIndex.prefix + expiry.to_bytes(8, "big") + self.encoded_para + key


@lru_cache(maxsize=4096)
def rows_of(para: ParaId) -> PublisherRows:
    """Return the storage keys of a publisher's rows.

    Raises `ScaleError` if `para` is not a u32.
    """
    encoded = para_id.encode(para)
    return PublisherRows(
        para,
        encoded,
        derive_child_key(para),
        RegisteredPublishers.key_for(para),
        PublishedKeys.key_for(para),
        TotalStorageSize.key_for(para),
        TtlData.prefix_for(para),
    )


def ensure_para(para: ParaId) -> None:
    """Raise `ScaleError` unless `para` is a u32."""
    rows_of(para)


def ensure_key(key: bytes) -> None:
    """Raise `ScaleError` unless `key` has 32 bytes (PS-4)."""
    if len(key) != 32:
        raise ScaleError(f"a published key has 32 bytes, not {len(key)}")

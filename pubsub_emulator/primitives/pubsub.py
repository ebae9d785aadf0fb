"""Values that publisher, relay chain and subscriber share.

They are the key of a publisher's child trie, the stored entry, and its time to live.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import Reader, compact_len, encode_compact
from pubsub_emulator.primitives.storage_keys import child_root_key
from pubsub_emulator.primitives.types import U32_MAX, ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.primitives.values import value_type

KEY_LENGTH: Final = 32


def derive_child_key(para: ParaId) -> bytes:
    """Return the storage key of a publisher's child trie, 10 bytes (PS-1, PS-3).

    It is the SCALE encoding of `([u8; 6] "pubsub", u32 para)`.
    """
    return b"pubsub" + para.to_bytes(4, "little")


@lru_cache(maxsize=4096)
def publisher_root_key(para: ParaId) -> bytes:
    """Return the top-trie key at which a publisher's child root is stored (PS-2)."""
    return child_root_key(derive_child_key(para))


def key_from_hash(key: bytes) -> PubsubKey:
    """Return a subscribed key that is given as a hash, unchanged (PS-30).

    Raises `ScaleError` unless it has 32 bytes.
    """
    if len(key) != KEY_LENGTH:
        raise ScaleError(f"a published key has {KEY_LENGTH} bytes, not {len(key)}")
    return PubsubKey(key)


def key_from_data(name: bytes) -> PubsubKey:
    """Return a subscribed key that is given by name: the name's blake2b-256 (PS-30)."""
    return PubsubKey(blake2_256(name))


def key_from_name(name: str) -> PubsubKey:
    """Return the key of a name that a user wrote.

    Raises `ValueError` for an empty name: it is a field that was left empty, and not a key that
    anybody means.
    """
    if not name:
        raise ValueError("a key's name has at least one character")
    return key_from_data(name.encode())


class PublishedEntry(NamedTuple):
    """The entry that a child trie stores under a key.

    Vec<u8>  value
    u32      ttl            blocks, 0 = never expires
    u32      when_inserted  relay block number of the publish
    """

    value: bytes
    ttl: int
    when_inserted: RelayBlockNumber

    def encode(self) -> bytes:
        """Return the SCALE bytes: compact length, value, ttl, when_inserted."""
        lifetime = self.ttl | self.when_inserted << 32
        return encode_compact(len(self.value)) + self.value + lifetime.to_bytes(8, "little")

    @staticmethod
    def decode(data: bytes) -> "PublishedEntry":
        """Return the entry that all of `data` encodes.

        Raises `ScaleError`.
        """
        end = len(data) - 8
        if 1 <= end <= 0x40:
            start = 1
            whole = data[0] == end - 1 << 2
        elif 0x42 <= end <= 0x4001:
            start = 2
            whole = data[0] | data[1] << 8 == end - 2 << 2 | 1
        else:
            start = 0
            whole = False
        if whole:
            lifetime = int.from_bytes(data[end:], "little")
            inserted: RelayBlockNumber = lifetime >> 32  # type: ignore[assignment]  # calling the NewType would take a tenth of the time
            return PublishedEntry(data[start:end], lifetime & U32_MAX, inserted)
        # Longer values take the general way. It also raises the error for invalid ones.
        reader = Reader(data)
        entry = PublishedEntry(reader.bytes_(), reader.uint(4), RelayBlockNumber(reader.uint(4)))
        reader.end()
        return entry


def entry_length(value_length: int) -> int:
    """Return the length of an encoded entry whose value has `value_length` bytes."""
    return compact_len(value_length) + value_length + 8


@dataclass(frozen=True, slots=True)
class Infinite:
    """The entry never expires."""


@value_type
class ValidFor:
    """The entry expires in `blocks` relay blocks, at least one."""

    blocks: int


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The entry is expired and not yet deleted."""


TtlState = Infinite | ValidFor | TimedOut

_INFINITE: Final = Infinite()
_TIMED_OUT: Final = TimedOut()


def ttl_state(ttl: int, when_inserted: int, relay_parent: RelayBlockNumber) -> TtlState:
    """Return how long an entry is still fresh at the relay parent's height (PS-65).

    The sum does not wrap at u32::MAX (PS-13).
    """
    if ttl == 0:
        return _INFINITE
    remaining = when_inserted + ttl - relay_parent
    return ValidFor(remaining) if remaining > 0 else _TIMED_OUT


def encode_ttl_state(state: TtlState) -> bytes:
    """Encode a state as Rust's `TtlState { Infinite, ValidFor(u32), TimedOut }`.

    The count of `ValidFor` saturates at u32.
    """
    match state:
        case Infinite():
            return b"\x00"
        case ValidFor(blocks):
            return b"\x01" + min(blocks, U32_MAX).to_bytes(4, "little")
        case TimedOut():
            return b"\x02"


def nodes_cost(nodes: Iterable[bytes]) -> int:
    """Return the sum of the `node_cost` of all `nodes`.

    Nearly all lengths have a prefix of two bytes, and sorting finds the others.
    """
    lengths = sorted(map(len, nodes))
    longer = lengths[bisect_left(lengths, 0x4000) :]
    prefixes = 2 * len(lengths) - bisect_left(lengths, 0x40)
    for length in longer:
        prefixes += compact_len(length) - 2
    return sum(lengths) + prefixes


def node_cost(length: int) -> int:
    """Return the bytes that a proof node of `length` bytes is charged.

    They are the node itself and the SCALE prefix of its length.
    """
    if length < 0x4000:
        return length + (1 if length < 0x40 else 2)
    return length + compact_len(length)

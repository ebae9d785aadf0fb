"""Substrate block headers and digests, the same bytes for relay chain and parachains.

[u8; 32]         parent_hash
Compact<u32>     number
[u8; 32]         state_root
[u8; 32]         extrinsics_root
Vec<DigestItem>  digest

A digest item is one of:

04 Consensus     [u8; 4] engine, Vec<u8>
05 Seal          [u8; 4] engine, Vec<u8>
06 PreRuntime    [u8; 4] engine, Vec<u8>
00 Other         Vec<u8>
08 RuntimeEnvironmentUpdated, in a block that applied new code
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, TypeVar

from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import Reader, encode_bytes, encode_compact
from pubsub_emulator.primitives.types import Hash, Slot

T = TypeVar("T")

AURA_ENGINE: Final = b"aura"
BABE_ENGINE: Final = b"BABE"


class DigestKind(IntEnum):
    """Discriminants of `sp_runtime::generic::DigestItem` that headers of this program have."""

    OTHER = 0
    CONSENSUS = 4
    SEAL = 5
    PRE_RUNTIME = 6
    RUNTIME_ENVIRONMENT_UPDATED = 8


_KINDS: Final = {kind.value: kind for kind in DigestKind}


@dataclass(frozen=True, slots=True)
class DigestItem:
    """One digest log.

    `engine` is 4 bytes, or empty for `OTHER`. `RUNTIME_ENVIRONMENT_UPDATED` has neither engine nor
    data.
    """

    kind: DigestKind
    engine: bytes
    data: bytes

    def encode(self) -> bytes:
        """Return the SCALE bytes."""
        if self.kind is DigestKind.RUNTIME_ENVIRONMENT_UPDATED:
            return bytes((self.kind,))
        return bytes((self.kind,)) + self.engine + encode_bytes(self.data)


ENVIRONMENT_UPDATED: Final = DigestItem(DigestKind.RUNTIME_ENVIRONMENT_UPDATED, b"", b"")
"""The item in the header of a block that applied new code."""
MAX_DIGEST_ITEMS: Final = 256
"""The maximum number of digest items that `Header.read` accepts.

Headers of real chains have fewer than ten.
"""


@dataclass(frozen=True, slots=True)
class Header:
    """A block header; `number` is u32, each root 32 bytes."""

    parent_hash: Hash
    number: int
    state_root: Hash
    extrinsics_root: Hash
    digest: tuple[DigestItem, ...] = ()
    _hash: Hash = field(default=Hash(b""), init=False, repr=False, compare=False)
    """The hash after the first call of `hash`, empty before."""

    def encode(self) -> bytes:
        """Return the SCALE bytes, as hashed and as stored in `Paras::Heads`."""
        fixed = (
            self.parent_hash + encode_compact(self.number) + self.state_root + self.extrinsics_root
        )
        return b"".join(
            [fixed, encode_compact(len(self.digest)), *[item.encode() for item in self.digest]]
        )

    @staticmethod
    def decode(data: bytes) -> "Header":
        """Return the header that all of `data` encodes.

        Raises `ScaleError`.
        """
        reader = Reader(data)
        header = Header.read(reader)
        reader.end()
        return header

    @staticmethod
    def read(reader: Reader) -> "Header":
        """Return the next header in `reader`.

        Raises `ScaleError`.
        """
        parent = Hash(reader.take(32))
        number = reader.compact(32)
        state_root = Hash(reader.take(32))
        extrinsics_root = Hash(reader.take(32))
        items = reader.length()
        if items > MAX_DIGEST_ITEMS:
            raise ScaleError(f"{items} digest items; a header has at most {MAX_DIGEST_ITEMS}")
        digest = tuple(read_digest_item(reader) for _ in range(items))
        return Header(parent, number, state_root, extrinsics_root, digest)

    def hash(self) -> Hash:
        """Return the blake2b-256 of the encoded header, seal included."""
        if not self._hash:
            # The class is frozen, but the cached hash is not a part of its value.
            object.__setattr__(self, "_hash", blake2_256(self.encode()))
        return self._hash

    def pre_hash(self) -> Hash:
        """Return the hash of the header without its seals, which the author signs."""
        unsealed = self.unsealed()
        return Header(
            self.parent_hash, self.number, self.state_root, self.extrinsics_root, unsealed
        ).hash()

    def unsealed(self) -> tuple[DigestItem, ...]:
        """Return the digest items without seals, which the author adds after executing."""
        return tuple([item for item in self.digest if item.kind is not DigestKind.SEAL])

    def initial_digest(self) -> tuple[DigestItem, ...]:
        """Return the digest items that a block begins with: all that executing does not add."""
        return tuple([item for item in self.unsealed() if item != ENVIRONMENT_UPDATED])

    def aura_slot(self) -> Slot | None:
        """Return the slot that the Aura pre-runtime digest claims.

        Return `None` if the digest is absent, repeated or not 8 bytes long.
        """
        slots = [
            log.data
            for log in self.digest
            if log.kind is DigestKind.PRE_RUNTIME and log.engine == AURA_ENGINE
        ]
        return (
            Slot(int.from_bytes(slots[0], "little"))
            if len(slots) == 1 and len(slots[0]) == 8
            else None
        )

    def aura_seal(self) -> bytes | None:
        """Return the author's signature, or `None`.

        It must be the only seal, the last digest item, and of the Aura engine.
        """
        seals = [item for item in self.digest if item.kind is DigestKind.SEAL]
        if len(seals) != 1 or self.digest[-1] is not seals[0] or seals[0].engine != AURA_ENGINE:
            return None
        return seals[0].data


def aura_pre_digest(slot: Slot) -> DigestItem:
    """Return the pre-runtime digest that names a block's slot."""
    return DigestItem(DigestKind.PRE_RUNTIME, AURA_ENGINE, slot.to_bytes(8, "little"))


def turn_of(slot: int, collators: Sequence[T]) -> T:
    """Return the collator whose turn `slot` is (PS-80).

    `collators` take turns in their order and must not be empty.
    """
    return collators[slot % len(collators)]


def aura_seal(signature: bytes) -> DigestItem:
    """Return the Aura seal, the last digest item of a header."""
    return DigestItem(DigestKind.SEAL, AURA_ENGINE, signature)


def read_digest_item(reader: Reader) -> DigestItem:
    """Return the next digest item.

    Raises `ScaleError` for kinds that no header here carries.
    """
    start = reader.pos
    tag = reader.u8()
    kind = _KINDS.get(tag)
    if kind is None:
        raise ScaleError(f"unknown digest item {tag} at offset {start}")
    if kind is DigestKind.RUNTIME_ENVIRONMENT_UPDATED:
        return ENVIRONMENT_UPDATED
    engine = b"" if kind is DigestKind.OTHER else reader.take(4)
    return DigestItem(kind, engine, reader.bytes_())

"""The part of the `Babe` pallet that parachains read.

Every relay chain has the slot of its block, which comes from the pre-runtime digest. A relay chain
that seals its headers (UP-12) also has epochs with authorities and randomness: `SealedBabe`. An
epoch is a session.

CurrentSlot      u64
Authorities      Vec<([u8; 32], u64)>, those of this epoch
NextAuthorities  Vec<([u8; 32], u64)>, those of the next epoch
Randomness       [u8; 32], from which the secondary authors of this epoch follow
NextRandomness   [u8; 32], that of the next epoch
digest           PreRuntime "BABE", and Consensus "BABE" in the first block of an epoch
"""

from dataclasses import dataclass
from typing import Final

from pubsub_emulator.primitives import babe, scale
from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import BABE_ENGINE, DigestKind
from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.primitives.types import Slot
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.items import StorageValue
from pubsub_emulator.runtime.framework.pallet import Constant, Pallet, constant
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.framework.system import SLOT_MILLISECONDS

PALLET: Final = Pallet("Babe", 2, "pallet_babe")
EPOCH_INDEX: Final = StorageValue(
    PALLET, "EpochIndex", "Current epoch index: the session.", scale.u64, 0
)
GENESIS_SLOT: Final = StorageValue(PALLET, "GenesisSlot", "The slot of block 0.", scale.u64, 0)
CURRENT_SLOT: Final = StorageValue(PALLET, "CurrentSlot", "Current slot number.", scale.u64, 0)
SEALED_PALLET: Final = Pallet("Babe", 2, "pallet_babe")
"""The same pallet with the items of a relay chain that seals its headers.

It is a separate declaration, because metadata lists all items of a pallet, and a relay chain
without seals does not have these.
"""
SEALED_PALLET.items.update(PALLET.items)
AUTHORITIES: Final = StorageValue(
    SEALED_PALLET, "Authorities", "Current epoch authorities.", babe.authorities, []
)
NEXT_AUTHORITIES: Final = StorageValue(
    SEALED_PALLET, "NextAuthorities", "Next epoch authorities.", babe.authorities, []
)
RANDOMNESS: Final = StorageValue(
    SEALED_PALLET, "Randomness", "The epoch randomness.", scale.fixed(32), bytes(32)
)
NEXT_RANDOMNESS: Final = StorageValue(
    SEALED_PALLET, "NextRandomness", "Next epoch randomness.", scale.fixed(32), bytes(32)
)

_SLOT_OFFSET: Final = 5
"""The offset of the slot in a pre-runtime digest, after the variant and the u32 authority index."""
EPOCH_AUTHORITIES: Final = 3
"""The maximum number of authorities of an epoch.

With more validators, each epoch leaves out others, so that two epochs never have the same
authorities, and a signature must be checked against those of its own epoch.
"""


@dataclass(frozen=True, slots=True)
class BlockAuthor:
    """The authority that makes a block."""

    index: int
    """Its index among the authorities of the block's epoch."""
    key: bytes | None
    """Its Sr25519 public key; `None` on a relay chain that does not seal its headers."""


def current_slot(storage: Storage) -> Slot:
    """Return the slot of the current block."""
    return Slot(CURRENT_SLOT.get(storage))


class Babe(Hooks):
    """The pallet that takes the slot from the digest.

    A block without such a digest has the slot of its parent.
    """

    pallet = PALLET

    def __init__(self, session_length: int) -> None:
        self._session_length = session_length

    def genesis(self, storage: Storage, slot: Slot) -> None:
        """Write the slot of block 0 and the index of its epoch.

        Clients derive time from them.
        """
        GENESIS_SLOT.put(storage, slot)
        CURRENT_SLOT.put(storage, slot)
        EPOCH_INDEX.put(storage, 0)

    def author(self, parent: Storage, number: int, slot: Slot) -> BlockAuthor:  # noqa: ARG002  # for chains with authorities
        """Return the author of block `number` in a slot, on the state `parent`."""
        return BlockAuthor(0, None)

    def on_new_session(self, storage: Storage, session: int) -> None:
        """Begin the epoch of a session."""
        EPOCH_INDEX.put(storage, session)

    def on_initialize(self, storage: Storage, now: int) -> Weight:
        """Set `CurrentSlot`.

        Raises `DefensiveFailure` if slots do not increase.
        """
        for item in system.DIGEST.get(storage):
            if item.kind is DigestKind.PRE_RUNTIME and item.engine == BABE_ENGINE:
                slot = Reader(item.data, _SLOT_OFFSET).uint(8)
                if now > 1 and slot <= CURRENT_SLOT.get(storage):
                    raise DefensiveFailure(f"slot {slot} is not after {CURRENT_SLOT.get(storage)}")
                CURRENT_SLOT.put(storage, slot)
        return WEIGHT_ZERO

    def constants(self) -> tuple[Constant, ...]:
        """Return the times by which clients count epochs."""
        epoch = "The amount of time, in slots, of an epoch."
        return (
            constant("EpochDuration", scale.u64, self._session_length, epoch),
            constant(
                "ExpectedBlockTime",
                scale.u64,
                SLOT_MILLISECONDS,
                "Milliseconds between two blocks.",
            ),
        )


class SealedBabe(Babe):
    """The pallet of a relay chain whose authorities seal its headers (UP-12).

    All slots are claimed by their secondary authors, so that the randomness of an epoch follows
    from that of the epoch before alone, by the pallet's formula without outputs of primary blocks.
    """

    pallet = SEALED_PALLET

    def __init__(self, session_length: int, validators: tuple[bytes, ...]) -> None:
        """Set the length of epochs in blocks, and the Sr25519 keys of all validators."""
        super().__init__(session_length)
        self._epoch_length = session_length
        self._validators = validators

    def genesis(self, storage: Storage, slot: Slot) -> None:
        """Write the slot of block 0, and the first two epochs."""
        super().genesis(storage, slot)
        AUTHORITIES.put(storage, self.epoch_authorities(0))
        NEXT_AUTHORITIES.put(storage, self.epoch_authorities(1))
        RANDOMNESS.put(storage, bytes(32))
        NEXT_RANDOMNESS.put(storage, _randomness(bytes(32), 1))

    def epoch_authorities(self, epoch: int) -> list[babe.Authority]:
        """Return the authorities of an epoch, each with the weight 1."""
        count = len(self._validators)
        indices = [(epoch + index) % count for index in range(min(count, EPOCH_AUTHORITIES))]
        return [(self._validators[index], 1) for index in indices]

    def author(self, parent: Storage, number: int, slot: Slot) -> BlockAuthor:
        """Return the author of block `number` in a slot, on the state `parent`.

        The first block of an epoch already belongs to an authority of this epoch.
        """
        if number % self._epoch_length:
            authorities = AUTHORITIES.get(parent)
            randomness = RANDOMNESS.get(parent)
        else:
            authorities = NEXT_AUTHORITIES.get(parent)
            randomness = NEXT_RANDOMNESS.get(parent)
        index = babe.secondary_author(slot, len(authorities), randomness)
        return BlockAuthor(index, authorities[index][0])

    def on_new_session(self, storage: Storage, session: int) -> None:
        """Begin the epoch of a session, and announce the next one in the block's digest."""
        super().on_new_session(storage, session)
        AUTHORITIES.put(storage, NEXT_AUTHORITIES.get(storage))
        current = NEXT_RANDOMNESS.get(storage)
        RANDOMNESS.put(storage, current)
        announced = babe.NextEpoch(
            tuple(self.epoch_authorities(session + 1)), _randomness(current, session + 1)
        )
        NEXT_AUTHORITIES.put(storage, list(announced.authorities))
        NEXT_RANDOMNESS.put(storage, announced.randomness)
        system.deposit_log(storage, babe.next_epoch_digest(announced))


def _randomness(before: bytes, epoch: int) -> bytes:
    """Return the randomness of an epoch after that of the epoch before."""
    return blake2_256(before + epoch.to_bytes(8, "little"))

"""The part of the `Babe` pallet that parachains read: the slot of the relay block.

The slot comes from the block's pre-runtime digest.

CurrentSlot  u64
digest       PreRuntime "BABE": 02 SecondaryPlain, u32 authority index, u64 slot
"""

from typing import Final

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.header import BABE_ENGINE, DigestItem, DigestKind
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
_SECONDARY_PLAIN: Final = 2


def babe_pre_digest(slot: Slot) -> DigestItem:
    """Return the pre-runtime digest by which the first authority claims a slot."""
    data = bytes((_SECONDARY_PLAIN,)) + bytes(4) + slot.to_bytes(8, "little")
    return DigestItem(DigestKind.PRE_RUNTIME, BABE_ENGINE, data)


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

    def on_new_session(self, storage: Storage, session: int) -> None:
        """Begin the epoch of a session."""
        EPOCH_INDEX.put(storage, session)

    def on_initialize(self, storage: Storage, now: int) -> Weight:
        """Set `CurrentSlot`.

        Raises `DefensiveFailure` if slots do not increase.
        """
        for item in system.DIGEST.get(storage):
            if item.kind is DigestKind.PRE_RUNTIME and item.engine == BABE_ENGINE:
                reader = Reader(item.data, 5)
                slot = reader.uint(8)
                if now > 1 and slot <= CURRENT_SLOT.get(storage):
                    raise DefensiveFailure(
                        f"slot {slot} does not follow {CURRENT_SLOT.get(storage)}"
                    )
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

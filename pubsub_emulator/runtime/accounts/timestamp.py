"""The `Timestamp` pallet: the time of a block, which follows from the relay chain's slot.

Now  u64, milliseconds: the slot x 6,000
"""

from collections.abc import Callable
from typing import Final

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.types import Slot
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.items import StorageValue
from pubsub_emulator.runtime.framework.storage import Storage

PALLET: Final = "Timestamp"
NOW: Final = StorageValue(PALLET, "Now", scale.u64, 0)
SLOT_MILLISECONDS: Final = 6_000
MINIMUM_PERIOD: Final = 3_000


def set_now(storage: Storage, slot: Slot) -> None:
    """Set the time of a block to that of the relay chain's slot."""
    NOW.put(storage, slot * SLOT_MILLISECONDS)


class Timestamp(Hooks):
    """The relay chain's pallet; `current_slot` reads the slot of the block."""

    NAME = PALLET

    def __init__(self, current_slot: Callable[[Storage], Slot]) -> None:
        self._current_slot = current_slot

    def on_initialize(self, storage: Storage, now: int) -> Weight:
        """Set `Now`."""
        del now
        set_now(storage, self._current_slot(storage))
        return WEIGHT_ZERO

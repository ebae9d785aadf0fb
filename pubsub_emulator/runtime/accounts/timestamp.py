"""The `Timestamp` pallet, which stores a block's time in `Now`.

The time is u64 milliseconds: the relay chain's slot x 6,000.
"""

from collections.abc import Callable
from typing import Final

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.types import Slot
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.items import StorageValue
from pubsub_emulator.runtime.framework.pallet import Constant, Pallet, constant
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.framework.system import SLOT_MILLISECONDS

PALLET: Final = Pallet("Timestamp", 3, "pallet_timestamp")
NOW: Final = StorageValue(PALLET, "Now", "The current time for the current block.", scale.u64, 0)
MINIMUM_PERIOD: Final = 3_000


def set_now(storage: Storage, slot: Slot) -> None:
    """Set the time of a block to that of the relay chain's slot."""
    NOW.put(storage, slot * SLOT_MILLISECONDS)


class Timestamp(Hooks):
    """The pallet that sets the time.

    On the relay chain it takes the slot from `current_slot`. A parachain has no `current_slot` and
    calls `set_now` itself.
    """

    pallet = PALLET

    def __init__(self, current_slot: Callable[[Storage], Slot] | None = None) -> None:
        self._current_slot = current_slot

    def on_initialize(self, storage: Storage, now: int) -> Weight:  # noqa: ARG002  # the slot says it
        """Set `Now`."""
        if self._current_slot is not None:
            set_now(storage, self._current_slot(storage))
        return WEIGHT_ZERO

    def constants(self) -> tuple[Constant, ...]:
        """Return the time between blocks."""
        half = "Half of the time between blocks, in milliseconds."
        return (constant("MinimumPeriod", scale.u64, MINIMUM_PERIOD, half),)

"""Why a root call of the pallet fails."""

from enum import IntEnum

from pubsub_emulator.runtime.framework.dispatch import pallet_errors
from pubsub_emulator.runtime.pallet_subscriber.storage import PALLET


@pallet_errors(PALLET)
class Error(IntEnum):
    """`Subscriber` errors."""

    PublisherNotDisabled = 0
    NothingToClear = 1

"""The errors of the pallet's calls."""

from pubsub_emulator.runtime.framework.pallet import PalletError, pallet_errors
from pubsub_emulator.runtime.pallet_subscriber.storage import PALLET


@pallet_errors(PALLET)
class Error(PalletError):
    """`Subscriber` errors."""

    PublisherNotDisabled = 0, "The publisher is not disabled."
    NothingToClear = 1, "Nothing is remembered of the publisher."

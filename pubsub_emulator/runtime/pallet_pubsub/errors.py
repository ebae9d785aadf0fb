"""The errors of the pallet's calls and of publishing, in the order of their SCALE indices."""

from pubsub_emulator.runtime.framework.pallet import PalletError, pallet_errors
from pubsub_emulator.runtime.pallet_pubsub.config import PALLET


@pallet_errors(PALLET)
class Error(PalletError):
    """The pallet's errors; encoded as `DispatchError::Module { index, [value, 0, 0, 0] }`."""

    ValueTooLong = 0, "The value is longer than `MaxValueLength`."
    TooManyStoredKeys = 1, "A new key, and the publisher stores `MaxStoredKeys` already."
    TotalStorageSizeExceeded = 2, "The publisher would store more than `MaxTotalStorageSize` bytes."
    TooManyPublishers = 3, "`MaxPublishers` paras are registered already."
    NotRegistered = 4, "There is no such publisher."
    AlreadyRegistered = 5, "The para is registered already."
    PublishNotAuthorized = 6, "Neither a registered publisher nor a system para."
    NotAuthorized = 7, "The origin has no say over this publisher."
    NoKeysToDelete = 8, "None of the keys was stored."

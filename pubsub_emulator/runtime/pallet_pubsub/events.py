"""The events of the pallet, and the errors of its calls and of publishing.

They are in the order of their SCALE indices.
"""

from pubsub_emulator.primitives.types import AccountId, ParaId, PubsubKey
from pubsub_emulator.runtime.framework.codecs import U32
from pubsub_emulator.runtime.framework.events import event
from pubsub_emulator.runtime.framework.pallet import Event, PalletError, pallet_errors
from pubsub_emulator.runtime.pallet_pubsub.config import PALLET


@event(PALLET, 0)
class DataPublished(Event):
    """One key was written, with a new value or with the same value again (PS-9).

    `value_size` is the length of the raw value.
    """

    publisher: ParaId
    key: PubsubKey
    value_size: U32


@event(PALLET, 1)
class PublisherRegistered(Event):
    """A para may publish; `manager` holds the deposit for it."""

    para_id: ParaId
    manager: AccountId


@event(PALLET, 2)
class PublisherDeregistered(Event):
    """A publisher's data, rows and registration are gone."""

    para_id: ParaId


@event(PALLET, 3)
class KeyExpired(Event):
    """An entry was removed because its time had come (PS-16)."""

    publisher: ParaId
    key: PubsubKey


@event(PALLET, 4)
class KeysDeleted(Event):
    """The publisher or its manager removed `count` entries."""

    publisher: ParaId
    count: U32


@event(PALLET, 5)
class KeysForcedDeleted(Event):
    """Root removed `count` entries."""

    publisher: ParaId
    count: U32


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

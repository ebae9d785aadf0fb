"""The events of the pallet, in the order of their SCALE indices."""

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.types import AccountId, ParaId, PubsubKey
from pubsub_emulator.runtime.framework.events import Event, event
from pubsub_emulator.runtime.framework.message_chains import para_id
from pubsub_emulator.runtime.framework.system import account_id
from pubsub_emulator.runtime.pallet_pubsub.config import PALLET
from pubsub_emulator.runtime.pallet_pubsub.storage import pubsub_key


@event(PALLET, 0, para_id, pubsub_key, scale.u32)
class DataPublished(Event):
    """One key was written, by a new value or the same one again (PS-9); `value_size` is the raw value's length."""

    publisher: ParaId
    key: PubsubKey
    value_size: int


@event(PALLET, 1, para_id, account_id)
class PublisherRegistered(Event):
    """A para may publish; `manager` holds the deposit for it."""

    para_id: ParaId
    manager: AccountId


@event(PALLET, 2, para_id)
class PublisherDeregistered(Event):
    """A publisher's data, rows and registration are gone."""

    para_id: ParaId


@event(PALLET, 3, para_id, pubsub_key)
class KeyExpired(Event):
    """An entry was removed because its time had come (PS-16)."""

    publisher: ParaId
    key: PubsubKey


@event(PALLET, 4, para_id, scale.u32)
class KeysDeleted(Event):
    """The publisher or its manager removed `count` entries."""

    publisher: ParaId
    count: int


@event(PALLET, 5, para_id, scale.u32)
class KeysForcedDeleted(Event):
    """Root removed `count` entries."""

    publisher: ParaId
    count: int

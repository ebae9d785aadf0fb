"""The events of the pallet, and the errors of its calls."""

from typing import Annotated

from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.runtime.framework.codecs import U32
from pubsub_emulator.runtime.framework.events import event
from pubsub_emulator.runtime.framework.pallet import Event, PalletError, pallet_errors
from pubsub_emulator.runtime.pallet_subscriber.meter import DisableReason
from pubsub_emulator.runtime.pallet_subscriber.storage import PALLET, disable_reason


@event(PALLET, 0)
class DataProcessed(Event):
    """A new or changed entry was handed to the handler; `value_size` in bytes."""

    publisher: ParaId
    key: PubsubKey
    value_size: U32

    def encode(self) -> bytes:
        """Encode as `Event.encode`, but without a codec for each field.

        A block has as many of these events as deliveries.
        """
        return (
            self.HEAD
            + self.publisher.to_bytes(4, "little")
            + self.key
            + self.value_size.to_bytes(4, "little")
        )


@event(PALLET, 1)
class DataRemoved(Event):
    """An entry that was delivered before is gone."""

    publisher: ParaId
    key: PubsubKey


@event(PALLET, 2)
class HandlerFailed(Event):
    """The handler raised or exceeded its weight (PS-66).

    Its writes are undone, and the entry counts as delivered.
    """

    publisher: ParaId
    key: PubsubKey


@event(PALLET, 3)
class PublisherDisabled(Event):
    """The publisher is no longer read, until it is enabled again (PS-68)."""

    publisher: ParaId
    reason: Annotated[DisableReason, disable_reason]


@event(PALLET, 4)
class PublisherEnabled(Event):
    """The publisher is read again."""

    publisher: ParaId


@event(PALLET, 5)
class PublisherCacheCleared(Event):
    """What was remembered of the publisher's trie is dropped, its processed root too."""

    publisher: ParaId


@event(PALLET, 6)
class RedeliveryRequested(Event):
    """All of the publisher's entries will be delivered anew."""

    publisher: ParaId


@event(PALLET, 7)
class RelayStateHandlerFailed(Event):
    """The handler failed on the requested relay keys; its writes are undone (UP-14)."""


@pallet_errors(PALLET)
class Error(PalletError):
    """`Subscriber` errors."""

    PublisherNotDisabled = 0, "The publisher is not disabled."
    NothingToClear = 1, "Nothing is remembered of the publisher."

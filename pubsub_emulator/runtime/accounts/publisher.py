"""The `Publisher` pallet: entries of signed calls, to be sent upward.

The block reports them in its log.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.pubsub import KEY_LENGTH
from pubsub_emulator.primitives.types import PubsubKey
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.dispatch import dispatchable, ensure
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.origin import Origin, ensure_signed_or_root
from pubsub_emulator.runtime.framework.pallet import (
    Constant,
    Pallet,
    PalletError,
    constant,
    pallet_errors,
)
from pubsub_emulator.runtime.framework.storage import Storage

PALLET: Final = Pallet("Publisher", 103, "pallet_publisher")
MAX_ENTRIES: Final = 64
"""The maximum number of entries of one call; one upward message can have as many."""
Entry = Annotated[
    tuple[bytes, bytes, int], scale.triple(scale.fixed(KEY_LENGTH), scale.bytes_, scale.u32)
]
"""Key, value, lifetime in relay blocks."""
_BASE: Final = Weight(20_000_000, 0)
_PER_ENTRY: Final = Weight(5_000_000, 0)


@dataclass(frozen=True, slots=True)
class Published:
    """One published key, in a block's log."""

    key: PubsubKey
    value: bytes
    ttl: int


@dataclass(frozen=True, slots=True)
class Sent:
    """One whole upward message, in a block's log."""

    message: bytes


@pallet_errors(PALLET)
class Error(PalletError):
    """Errors of `Publisher`."""

    WrongCount = 0, "Not 1 to 64 entries."
    ValueTooLong = 1, "A value is longer than the relay chain takes."


class Publisher(Hooks):
    """The pallet; `max_value_length` is in bytes, as on the relay chain."""

    pallet = PALLET

    def __init__(self, max_value_length: int) -> None:
        self.max_value_length = max_value_length

    @dispatchable(0, weight=lambda _pallet, entries: _BASE + _PER_ENTRY * len(entries))
    def publish(self, storage: Storage, origin: Origin, entries: Sequence[Entry], /) -> None:
        """Publish 1 to 64 entries: key, value, lifetime in relay blocks (0: for ever).

        Errors: `BadOrigin`, `WrongCount`, `ValueTooLong`.
        """
        ensure_signed_or_root(origin)
        ensure(1 <= len(entries) <= MAX_ENTRIES, Error.WrongCount)
        ensure(
            not any(len(value) > self.max_value_length for _, value, _ in entries),
            Error.ValueTooLong,
        )
        storage.log.extend(Published(PubsubKey(key), value, ttl) for key, value, ttl in entries)

    def constants(self) -> tuple[Constant, ...]:
        """Return the maximum number of entries of a call."""
        return (constant("MaxEntries", scale.u32, MAX_ENTRIES, "Entries of one call."),)


def sent_upward(storage: Storage) -> tuple[Published | Sent, ...]:
    """Return the entries and messages that the block sends to the relay chain, in order.

    `storage` is the block's, before its log is cleared.
    """
    return tuple(entry for entry in storage.log if isinstance(entry, Published | Sent))

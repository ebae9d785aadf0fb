"""The `Publisher` pallet of a parachain: whoever signs has the parachain publish.

What a call publishes is not state: the block reports it in its log, and whoever runs the parachain sends it upward.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.pubsub import KEY_LENGTH
from pubsub_emulator.primitives.types import PubsubKey
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.dispatch import ModuleError, PalletError, dispatchable, pallet_errors
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.origin import Origin, ensure_signed_or_root
from pubsub_emulator.runtime.framework.storage import Storage

PALLET: Final = "Publisher"
MAX_ENTRIES: Final = 64
"""Entries of one call: as many as one upward message may carry."""
_BASE: Final = Weight(20_000_000, 0)
_PER_ENTRY: Final = Weight(5_000_000, 0)


@dataclass(frozen=True, slots=True)
class Published:
    """An entry of a block's log: one key that it publishes."""

    key: PubsubKey
    value: bytes
    ttl: int


@pallet_errors(PALLET)
class Error(PalletError):
    """Why nothing was published."""

    WrongCount = 0, "Not 1 to 64 entries."
    ValueTooLong = 1, "A value is longer than the relay chain takes."


def _weight(_pallet: object, entries: Sequence[object]) -> Weight:
    return _BASE + _PER_ENTRY * len(entries)


class Publisher(Hooks):
    """The pallet; `max_value_length` in bytes, as on the relay chain."""

    NAME = PALLET

    def __init__(self, max_value_length: int) -> None:
        self.max_value_length = max_value_length

    @dispatchable(0, scale.vec(scale.triple(scale.fixed(KEY_LENGTH), scale.bytes_, scale.u32)), weight=_weight)
    def publish(self, storage: Storage, origin: Origin, entries: Sequence[tuple[bytes, bytes, int]], /) -> None:
        """Publish 1 to 64 entries: key, value, lifetime in relay blocks (0: for ever).

        Errors: `BadOrigin`, `WrongCount`, `ValueTooLong`.
        """
        ensure_signed_or_root(origin)
        if not 1 <= len(entries) <= MAX_ENTRIES:
            raise ModuleError(PALLET, Error.WrongCount)
        if any(len(value) > self.max_value_length for _, value, _ in entries):
            raise ModuleError(PALLET, Error.ValueTooLong)
        storage.log.extend(Published(PubsubKey(key), value, ttl) for key, value, ttl in entries)


def published(storage: Storage) -> tuple[Published, ...]:
    """What the block in `storage` publishes, in order."""
    return tuple(entry for entry in storage.log if isinstance(entry, Published))

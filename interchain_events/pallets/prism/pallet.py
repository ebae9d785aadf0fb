"""Pallet `Prism` (PR-1): a call that anchors an object, and an event with its bytes.

Only readers interpret objects.
"""

from dataclasses import dataclass
from typing import Final

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.types import AccountId
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.dispatch import dispatchable, ensure
from pubsub_emulator.runtime.framework.events import deposit, event
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.origin import Origin, ensure_signed
from pubsub_emulator.runtime.framework.pallet import (
    Constant,
    Event,
    Pallet,
    PalletError,
    constant,
    pallet_errors,
)
from pubsub_emulator.runtime.framework.storage import Storage

PALLET: Final = Pallet("Prism", 107, "pallet_prism")
MOST_OBJECT: Final = 16_384
"""The maximum length of an object in bytes."""

_BASE: Final = Weight(10_000_000, 1_024)
_BYTE: Final = Weight(1_500, 1)


@event(PALLET, 0)
class ObjectAnchored(Event):
    """`who` anchored an AtalaObject."""

    who: AccountId
    object: bytes


@pallet_errors(PALLET)
class Error(PalletError):
    """Errors of `Prism`."""

    ObjectEmpty = 0, "The object has no bytes."
    ObjectTooLarge = 1, "The object has more bytes than an object may have."


class Prism(Hooks):
    """The pallet."""

    pallet = PALLET

    @dispatchable(0, weight=lambda _pallet, object_: _BASE + _BYTE * len(object_))
    def anchor(self, storage: Storage, origin: Origin, object: bytes) -> None:  # noqa: A002  # the call's own name
        """Anchor an object of 1 to 16,384 bytes.

        Errors: `BadOrigin`, `ObjectEmpty`, `ObjectTooLarge`. Emits `ObjectAnchored`.
        """
        who = ensure_signed(origin)
        ensure(object, Error.ObjectEmpty)
        ensure(len(object) <= MOST_OBJECT, Error.ObjectTooLarge)
        deposit(storage, ObjectAnchored(who, object))

    def constants(self) -> tuple[Constant, ...]:
        """Return the maximum size of an object."""
        return (constant("MaxObject", scale.u32, MOST_OBJECT, "Bytes of an object."),)


@dataclass(frozen=True, slots=True)
class PrismConfig:
    """A pallet `Prism` to be added to a relay chain."""

    def make(self) -> Prism:
        """Return the pallet."""
        return Prism()

    def genesis(self, pallet: Prism, storage: Storage) -> None:
        """Do nothing: the pallet has no storage."""

"""The hooks of a pallet.

The executive calls them at fixed points of every block, in the order of the pallets:

on_initialize  before everything else in a block; its weight counts before that of calls
on_idle        after the last call, within the weight that is left; may do nothing
on_finalize    last, without a weight of its own
"""

from typing import ClassVar

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight
from pubsub_emulator.runtime.framework.pallet import Constant, Pallet
from pubsub_emulator.runtime.framework.storage import Storage


class IntegrityError(PubsubError):
    """The configuration of a pallet cannot work; the message has the value and the reason."""


class StateError(PubsubError):
    """The state breaks an invariant of the pallet named in the message."""


class Hooks:
    """Base of all pallets, with hooks that do nothing.

    Its methods with `dispatchable` are the pallet's calls.
    """

    pallet: ClassVar[Pallet]

    def constants(self) -> tuple[Constant, ...]:
        """Return the pallet's constants, for metadata."""
        return ()

    def on_initialize(self, storage: Storage, now: int) -> Weight:  # noqa: ARG002  # for subclasses
        """Begin block `now` and return the weight used."""
        return WEIGHT_ZERO

    def on_idle(self, storage: Storage, now: int, remaining: Weight) -> Weight:  # noqa: ARG002  # for subclasses
        """Use up to `remaining` and return the weight used."""
        return WEIGHT_ZERO

    def on_finalize(self, storage: Storage, now: int) -> None:
        """End block `now`."""

    def integrity_test(self) -> None:
        """Raise `IntegrityError` unless the configuration can work."""

    def try_state(self, storage: Storage) -> None:
        """Raise `StateError` if the pallet's state breaks an invariant."""

"""The hooks of a pallet, which the executive calls at fixed points of every block, in pallet order.

on_initialize  before anything else of a block; may use weight, which counts before calls do
on_idle        after the last call, within the weight that is left; may do nothing
on_finalize    last, without a weight of its own
"""

from typing import ClassVar

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight
from pubsub_emulator.runtime.framework.pallet import Constant, Pallet
from pubsub_emulator.runtime.framework.storage import Storage


class IntegrityError(PubsubError):
    """The configuration of a pallet cannot work; the message says which value and why."""


class StateError(PubsubError):
    """The state breaks an invariant of the pallet named in the message."""


class Hooks:
    """Base of all pallets, with hooks that do nothing; its methods with `dispatchable` are the pallet's calls."""

    pallet: ClassVar[Pallet]

    def constants(self) -> tuple[Constant, ...]:
        """The pallet's constants, for metadata."""
        return ()

    def on_initialize(self, storage: Storage, now: int) -> Weight:  # noqa: ARG002  # for subclasses
        """Begin block `now`; returns the weight used."""
        return WEIGHT_ZERO

    def on_idle(self, storage: Storage, now: int, remaining: Weight) -> Weight:  # noqa: ARG002  # for subclasses
        """Use up to `remaining`; returns the weight used, never more."""
        return WEIGHT_ZERO

    def on_finalize(self, storage: Storage, now: int) -> None:
        """End block `now`."""

    def integrity_test(self) -> None:
        """Raise `IntegrityError` if the configuration cannot work."""

    def try_state(self, storage: Storage) -> None:
        """Raise `StateError` if the pallet's state breaks an invariant."""

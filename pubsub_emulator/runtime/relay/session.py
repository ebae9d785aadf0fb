"""The `Session` pallet: sessions of a fixed length, and the changes between two sessions.

A change of session on- and offboards paras. Then each offboarding hook runs once for all paras that
left. The runtime orders the hooks so that a para's message queue is emptied before its published
data is removed (PS-11): a message that ran afterwards would publish again for a para that is gone.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.codecs import U32
from pubsub_emulator.runtime.framework.dispatch import ensure
from pubsub_emulator.runtime.framework.events import deposit, event
from pubsub_emulator.runtime.framework.hooks import Hooks, IntegrityError
from pubsub_emulator.runtime.framework.items import StorageValue
from pubsub_emulator.runtime.framework.pallet import Event, Pallet
from pubsub_emulator.runtime.framework.storage import Storage

PALLET: Final = Pallet("Session", 9, "pallet_session")
CURRENT_INDEX: Final = StorageValue(
    PALLET, "CurrentIndex", "Current index of the session.", scale.u32, 0
)
ROTATION_WEIGHT: Final = Weight(100_000_000, 20_000)
OFFBOARDING_WEIGHT: Final = Weight(200_000_000, 50_000)

OffboardingHook = Callable[[Storage, Sequence[ParaId]], object]
"""A pallet's hook for the paras that left, ascending."""
NewSessionHook = Callable[[Storage, int], object]
"""A pallet's hook for a session that begins."""


class ParaLifecycles(Protocol):
    """The pallet that on- and offboards paras."""

    def apply_actions(self, storage: Storage, session: int) -> list[ParaId]:
        """Onboard and offboard the paras scheduled for `session`.

        Returns those that left, ascending.
        """


@event(PALLET, 0)
class NewSession(Event):
    """A session began."""

    session_index: U32


class Session(Hooks):
    """The pallet that rotates every `period` blocks.

    A change that is scheduled now takes effect `delay` sessions later.
    """

    pallet = PALLET

    def __init__(
        self,
        period: int,
        paras: ParaLifecycles,
        *,
        offboarding: Sequence[OffboardingHook] = (),
        on_new_session: Sequence[NewSessionHook] = (),
        delay: int = 2,
    ) -> None:
        self.period = period
        self.delay = delay
        self._paras = paras
        self._offboarding = tuple(offboarding)
        self._on_new_session = tuple(on_new_session)

    def current_index(self, storage: Storage) -> int:
        """Return the current session."""
        return CURRENT_INDEX.get(storage)

    def scheduled_session(self, storage: Storage) -> int:
        """Return the session at whose start a change that is scheduled now takes effect."""
        return CURRENT_INDEX.get(storage) + self.delay

    def rotate(self, storage: Storage) -> list[ParaId]:
        """End the session and begin the next.

        Returns the paras that left.
        """
        session = CURRENT_INDEX.get(storage) + 1
        CURRENT_INDEX.put(storage, session)
        for hook in self._on_new_session:
            hook(storage, session)
        outgoing = self._paras.apply_actions(storage, session)
        if outgoing:
            for on_offboard in self._offboarding:
                on_offboard(storage, outgoing)
        deposit(storage, NewSession(session))
        return outgoing

    def on_initialize(self, storage: Storage, now: int) -> Weight:
        """Rotate at every multiple of the period.

        Emits `NewSession` and the events of the hooks.
        """
        if now % self.period:
            return Weight()
        outgoing = self.rotate(storage)
        return ROTATION_WEIGHT + OFFBOARDING_WEIGHT * len(outgoing)

    def integrity_test(self) -> None:
        """Raise `IntegrityError` unless sessions have blocks and changes take effect later."""
        ensure(self.period > 0, IntegrityError("a session has at least one block"))
        ensure(self.delay > 0, IntegrityError("a change takes place in a later session"))

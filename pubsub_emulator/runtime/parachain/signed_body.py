"""The signed extrinsics of a parachain's block, after its inherent.

Author and verifier run the same code.
"""

from dataclasses import dataclass
from typing import Final, Protocol

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.storage_keys import CURRENT_SLOT
from pubsub_emulator.primitives.types import Slot
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.accounts.apply import apply_signed
from pubsub_emulator.runtime.accounts.timestamp import set_now
from pubsub_emulator.runtime.framework import events
from pubsub_emulator.runtime.framework.dispatch import DispatchOutcome
from pubsub_emulator.runtime.framework.static_keys import StaticValues
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.framework.system import DispatchEventInfo, ExtrinsicSuccess
from pubsub_emulator.runtime.framework.validity import InvalidTransaction
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec
from pubsub_emulator.runtime.parachain.accounts import ParachainRoom, parachain_accounts

MANDATORY: Final = 2
"""The class of inherents."""


class BadBody(PubsubError):
    """An extrinsic that cannot be part of its block. `index` includes the inherent, which has 0."""

    def __init__(self, index: int, raw: bytes, reason: str) -> None:
        super().__init__(f"extrinsic {index}: {reason}")
        self.raw = raw


class Body(Protocol):
    """The extrinsics after the inherent."""

    @property
    def length(self) -> int:
        """Return the number of bytes of the block's extrinsics."""

    def run(self, storage: Storage, spec: RuntimeSpec) -> tuple[DispatchOutcome, ...]:
        """Run the extrinsics of the block."""


@dataclass(frozen=True, slots=True)
class SignedBody:
    """Signed extrinsics with their length prefixes, in order. All of them must run."""

    extrinsics: tuple[bytes, ...] = ()

    @property
    def length(self) -> int:
        """Return the number of bytes of all extrinsics."""
        return sum(map(len, self.extrinsics))

    def run(self, storage: Storage, spec: RuntimeSpec) -> tuple[DispatchOutcome, ...]:
        """Run all extrinsics after the inherent.

        Raises `BadBody` for the first one that cannot be part of the block.
        """
        if not spec.accounts:
            if self.extrinsics:
                raise BadBody(1, self.extrinsics[0], "this chain takes no signed extrinsics")
            return ()
        note_inherent(storage)
        if not self.extrinsics:
            return ()
        signing = parachain_accounts(spec).signing
        room = ParachainRoom()
        outcomes = []
        for index, raw in enumerate(self.extrinsics, 1):
            try:
                outcomes.append(apply_signed(signing, storage, index, raw, room))
            except InvalidTransaction as error:
                raise BadBody(index, raw, str(error)) from error
        return tuple(outcomes)


@dataclass(slots=True)
class OfferedBody:
    """Signed extrinsics that are offered to an author.

    In their order, the author takes those that can be part of its block.
    """

    offered: tuple[bytes, ...] = ()
    extrinsics: tuple[bytes, ...] = ()
    """The taken extrinsics, after `run`."""
    refused: tuple[tuple[bytes, InvalidTransaction], ...] = ()

    @property
    def length(self) -> int:
        """Return the number of bytes of the taken extrinsics."""
        return sum(map(len, self.extrinsics))

    def run(self, storage: Storage, spec: RuntimeSpec) -> tuple[DispatchOutcome, ...]:
        """Run the extrinsics that can be part of the block.

        The others change nothing, and their reads are removed from the record.
        """
        if not spec.accounts:
            return ()
        note_inherent(storage)
        if not self.offered:
            return ()
        signing = parachain_accounts(spec).signing
        room = ParachainRoom()
        outcomes: list[DispatchOutcome] = []
        taken: list[bytes] = []
        refused: list[tuple[bytes, InvalidTransaction]] = []
        for raw in self.offered:
            reads = len(storage.recorded or ())
            try:
                outcomes.append(apply_signed(signing, storage, len(taken) + 1, raw, room))
            except InvalidTransaction as error:
                refused.append((raw, error))
                for key in tuple(storage.recorded or ())[reads:]:
                    del storage.recorded[key]  # type: ignore[union-attr]  # there is a record, or there was no key
            else:
                taken.append(raw)
        self.extrinsics = tuple(taken)
        self.refused = tuple(refused)
        return tuple(outcomes)


NO_EXTRINSICS: Final = SignedBody()


def note_inherent(storage: Storage) -> None:
    """Deposit `ExtrinsicSuccess` for the inherent, as on a chain that has accounts."""
    events.deposit(storage, ExtrinsicSuccess(DispatchEventInfo(Weight(0, 0), class_=MANDATORY)))


def note_time(storage: Storage, statics: StaticValues) -> None:
    """Set the block's time to that of its relay parent, if the relay parent has a slot."""
    slot = statics.values.get(CURRENT_SLOT)
    if slot is not None and len(slot) == 8:
        set_now(storage, Slot(int.from_bytes(slot, "little")))

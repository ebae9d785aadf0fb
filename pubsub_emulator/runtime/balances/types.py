"""Types of balances: hold reasons, options of operations, errors, and their encoding.

IdAmount           RuntimeHoldReason id, u128 amount
RuntimeHoldReason  u8 pallet index, u8 variant
"""

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Final

from pubsub_emulator.primitives import scale, type_info
from pubsub_emulator.primitives.scale import Codec
from pubsub_emulator.runtime.framework.pallet import Pallet, PalletError, pallet_errors

PALLET: Final = Pallet("Balances", 5, "pallet_balances", "Free balances and those on hold.")


@dataclass(frozen=True, slots=True)
class HoldReason:
    """The reason of a hold, `RuntimeHoldReason::Pallet(variant)`: the pallet's index, and which of its reasons."""

    pallet: int
    variant: int

    def encode(self) -> bytes:
        """SCALE bytes: pallet index, variant."""
        return bytes((self.pallet, self.variant))


@dataclass(frozen=True, slots=True)
class IdAmount:
    """The amount on hold for one reason."""

    id: HoldReason
    amount: int


class Preservation(Enum):
    """Whether an operation on the free balance may remove the account."""

    EXPENDABLE = "expendable"
    PROTECT = "protect"
    PRESERVE = "preserve"


class Precision(Enum):
    """Whether an operation must handle the exact amount, or as much as possible."""

    EXACT = "exact"
    BEST_EFFORT = "best effort"


class Fortitude(Enum):
    """Whether freezes are respected."""

    POLITE = "polite"
    FORCE = "force"


reason_codec: Final[Codec[HoldReason]] = Codec(
    "RuntimeHoldReason",
    HoldReason.encode,
    lambda reader: HoldReason(reader.u8(), reader.u8()),
    type_info.Named("RuntimeHoldReason"),
)
Reason = Annotated[HoldReason, reason_codec]
"""A hold reason as a field of an event."""
holds_codec: Final[Codec[list[IdAmount]]] = scale.vec(
    scale.pair(reason_codec, scale.u128)
    .map("IdAmount", lambda p: IdAmount(*p), lambda h: (h.id, h.amount))
    .described(
        type_info.struct(
            "frame_support::traits::tokens::misc::IdAmount",
            type_info.Parameter("Id", type_info.Named("RuntimeHoldReason")),
            type_info.Parameter("Balance", type_info.U128),
            id=type_info.Named("RuntimeHoldReason"),
            amount=type_info.U128,
        )
    )
)


@pallet_errors(PALLET)
class Error(PalletError):
    """Errors of `pallet_balances`, in its order."""

    VestingBalance = 0, "What vests cannot be sent yet."
    LiquidityRestrictions = 1, "The account may not withdraw so much now."
    InsufficientBalance = 2, "The balance is too low."
    ExistentialDeposit = 3, "The amount is below the existential deposit."
    Expendability = 4, "The account would end."
    ExistingVestingSchedule = 5, "The account has a vesting schedule already."
    DeadAccount = 6, "The receiving account does not exist."
    TooManyReserves = 7, "The account has the maximum number of named reserves."
    TooManyHolds = 8, "The account has the maximum number of holds."
    TooManyFreezes = 9, "The account has the maximum number of freezes."
    IssuanceDeactivated = 10, "The issuance is deactivated and cannot change."
    DeltaZero = 11, "A change of zero is none."

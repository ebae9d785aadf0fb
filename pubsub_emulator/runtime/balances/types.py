"""Types of balances: hold reasons, options of operations, events and errors, and their encoding.

IdAmount           RuntimeHoldReason id, u128 amount
RuntimeHoldReason  u8 pallet index, u8 variant

The variants of events have no explicit indices in `pallet_balances`, so their order decides. It is
that of releases with 30 variants, which Polkadot runs since specification 2,003,002: `MintedCredit`
and `BurnedDebt` shifted the later variants.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Final

from pubsub_emulator.primitives import scale, type_info
from pubsub_emulator.primitives.scale import Codec
from pubsub_emulator.primitives.structs import struct
from pubsub_emulator.primitives.types import AccountId
from pubsub_emulator.runtime.framework.codecs import U128
from pubsub_emulator.runtime.framework.events import event
from pubsub_emulator.runtime.framework.pallet import Event, Pallet, PalletError, pallet_errors

PALLET: Final = Pallet("Balances", 5, "pallet_balances", "Free balances and those on hold.")


@dataclass(frozen=True, slots=True)
class HoldReason:
    """The reason of a hold, `RuntimeHoldReason::Pallet(variant)`.

    It is the pallet's index, and the index of the reason in the pallet.
    """

    pallet: int
    variant: int

    def encode(self) -> bytes:
        """Return the SCALE bytes: pallet index, variant."""
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


_REASON: Final = type_info.Named("RuntimeHoldReason")
reason_codec: Final[Codec[HoldReason]] = Codec(
    "RuntimeHoldReason",
    HoldReason.encode,
    lambda reader: HoldReason(reader.u8(), reader.u8()),
    _REASON,
)
Reason = Annotated[HoldReason, reason_codec]
"""A hold reason as a field of an event."""
_OF: Final = (type_info.Parameter("Id", _REASON), type_info.Parameter("Balance", type_info.U128))
_HOLD: Final = "frame_support::traits::tokens::misc::IdAmount"
holds: Final[Codec[list[IdAmount]]] = scale.vec(
    struct(IdAmount, reason_codec, scale.u128, rust=_HOLD, params=_OF)
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


@event(PALLET, 0)
class Endowed(Event):
    """An account was made with a free balance."""

    account: AccountId
    free_balance: U128


@event(PALLET, 1)
class DustLost(Event):
    """An account ended with less than the existential deposit, which is burnt."""

    account: AccountId
    amount: U128


@event(PALLET, 2)
class Transfer(Event):
    """A transfer succeeded."""

    from_: AccountId
    to: AccountId
    amount: U128


@event(PALLET, 3)
class BalanceSet(Event):
    """Root set a free balance."""

    who: AccountId
    free: U128


@event(PALLET, 7)
class Deposit(Event):
    """Something was given to an account, as a fee that was too high."""

    who: AccountId
    amount: U128


@event(PALLET, 8)
class Withdraw(Event):
    """Something was taken from an account, as a fee."""

    who: AccountId
    amount: U128


@event(PALLET, 9)
class Slashed(Event):
    """Something was taken from an account and burnt."""

    who: AccountId
    amount: U128


@event(PALLET, 10)
class Minted(Event):
    """Something was made and given to an account."""

    who: AccountId
    amount: U128


@event(PALLET, 12)
class Burned(Event):
    """Something was taken from an account's free balance and burnt."""

    who: AccountId
    amount: U128


@event(PALLET, 24)
class Held(Event):
    """Something was put on hold."""

    reason: Reason
    who: AccountId
    amount: U128


@event(PALLET, 26)
class TransferOnHold(Event):
    """Something on hold went to another account."""

    reason: Reason
    source: AccountId
    dest: AccountId
    amount: U128


@event(PALLET, 28)
class Released(Event):
    """Something is no longer on hold."""

    reason: Reason
    who: AccountId
    amount: U128

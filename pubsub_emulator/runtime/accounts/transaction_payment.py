"""The `TransactionPayment` pallet: the fees of signed extrinsics, in plancks.

    fee = 10^7 + 10^6 x length + ref_time of the call // 10 + tip

The length is in bytes and includes the prefix.
"""

from dataclasses import dataclass
from typing import Final

from pubsub_emulator.primitives import scale, type_info
from pubsub_emulator.primitives.types import AccountId
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.codecs import U128
from pubsub_emulator.runtime.framework.events import event
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.items import StorageValue
from pubsub_emulator.runtime.framework.pallet import Constant, Event, Pallet, constant

PALLET: Final = Pallet("TransactionPayment", 32, "pallet_transaction_payment")
BASE_FEE: Final = 10**7
LENGTH_FEE: Final = 10**6
"""Plancks per byte."""
PICOSECONDS_PER_PLANCK: Final = 10
MULTIPLIER_ONE: Final = 10**18
"""A `FixedU128` of one."""

_about: Final = "Fees by weight are multiplied by it, which is always one."
_fixed: Final = scale.u128.described(
    type_info.wrapper("sp_arithmetic::fixed_point::FixedU128", type_info.U128, "u128")
)
NEXT_FEE_MULTIPLIER: Final = StorageValue(
    PALLET, "NextFeeMultiplier", _about, _fixed, MULTIPLIER_ONE
)


@event(PALLET, 0)
class TransactionFeePaid(Event):
    """An account paid for an extrinsic; the tip is part of `actual_fee`."""

    who: AccountId
    actual_fee: U128
    tip: U128


@dataclass(frozen=True, slots=True)
class Fee:
    """The parts of a fee in plancks."""

    base: int
    length: int
    weight: int
    tip: int = 0

    @property
    def total(self) -> int:
        """Return the sum of the parts."""
        return self.base + self.length + self.weight + self.tip


def weight_fee(weight: Weight) -> int:
    """Return the fee of a weight; proof size is free."""
    return weight.ref_time // PICOSECONDS_PER_PLANCK


def fee_of(length: int, weight: Weight, tip: int = 0) -> Fee:
    """Return the fee of an extrinsic with a call of this weight.

    `length` is in bytes and includes the prefix.
    """
    return Fee(BASE_FEE, LENGTH_FEE * length, weight_fee(weight), tip)


class TransactionPayment(Hooks):
    """The pallet, which has neither calls nor hooks."""

    pallet = PALLET

    def constants(self) -> tuple[Constant, ...]:
        """Return the constants by which clients compute fees."""
        return (
            constant(
                "OperationalFeeMultiplier", scale.u8, 5, "Not used: no extrinsic is operational."
            ),
        )

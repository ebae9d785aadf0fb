"""Events of the `Balances` pallet, with the variant indices of `pallet_balances`.

The variants there have no explicit indices, so their order decides. It is that of releases with 30 variants, which
Polkadot runs since specification 2,003,002: `MintedCredit` and `BurnedDebt` shifted the later variants.
"""

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.types import AccountId
from pubsub_emulator.runtime.balances.types import PALLET, HoldReason, reason_codec
from pubsub_emulator.runtime.framework.events import Event, event
from pubsub_emulator.runtime.framework.system import account_id


@event(PALLET, 0, account_id, scale.u128)
class Endowed(Event):
    """An account was made with a free balance."""

    account: AccountId
    free_balance: int


@event(PALLET, 1, account_id, scale.u128)
class DustLost(Event):
    """An account ended with less than the existential deposit, which is burnt."""

    account: AccountId
    amount: int


@event(PALLET, 2, account_id, account_id, scale.u128)
class Transfer(Event):
    """A transfer succeeded."""

    from_: AccountId
    to: AccountId
    amount: int


@event(PALLET, 3, account_id, scale.u128)
class BalanceSet(Event):
    """Root set a free balance."""

    who: AccountId
    free: int


@event(PALLET, 7, account_id, scale.u128)
class Deposit(Event):
    """Something was given to an account, as a fee that was too high."""

    who: AccountId
    amount: int


@event(PALLET, 8, account_id, scale.u128)
class Withdraw(Event):
    """Something was taken from an account, as a fee."""

    who: AccountId
    amount: int


@event(PALLET, 9, account_id, scale.u128)
class Slashed(Event):
    """Something was taken from an account and burnt."""

    who: AccountId
    amount: int


@event(PALLET, 10, account_id, scale.u128)
class Minted(Event):
    """Something was made and given to an account."""

    who: AccountId
    amount: int


@event(PALLET, 12, account_id, scale.u128)
class Burned(Event):
    """Something was taken from an account's free balance and burnt."""

    who: AccountId
    amount: int


@event(PALLET, 24, reason_codec, account_id, scale.u128)
class Held(Event):
    """Something was put on hold."""

    reason: HoldReason
    who: AccountId
    amount: int


@event(PALLET, 26, reason_codec, account_id, account_id, scale.u128)
class TransferOnHold(Event):
    """Something on hold went to another account."""

    reason: HoldReason
    source: AccountId
    dest: AccountId
    amount: int


@event(PALLET, 28, reason_codec, account_id, scale.u128)
class Released(Event):
    """Something is no longer on hold."""

    reason: HoldReason
    who: AccountId
    amount: int

"""Events of the `Balances` pallet, with the variant indices of `pallet_balances`.

The variants there have no explicit indices, so their order decides. It is that of releases with 30 variants, which
Polkadot runs since specification 2,003,002: `MintedCredit` and `BurnedDebt` shifted the later variants.
"""

from pubsub_emulator.primitives.types import AccountId
from pubsub_emulator.runtime.balances.types import PALLET, Reason
from pubsub_emulator.runtime.framework.codecs import U128
from pubsub_emulator.runtime.framework.events import event
from pubsub_emulator.runtime.framework.pallet import Event


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

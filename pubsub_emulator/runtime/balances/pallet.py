"""Free and held balances, with the semantics of `fungible` in `pallet_balances`.

Every method updates the reference counters of `System`. A method that raises may already have
written, so it must run in a storage layer, as calls do.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.types import U128_MAX, AccountId, Balance
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.balances import types
from pubsub_emulator.runtime.balances.types import (
    PALLET,
    Fortitude,
    HoldReason,
    IdAmount,
    Precision,
    Preservation,
)
from pubsub_emulator.runtime.framework import dispatch, system
from pubsub_emulator.runtime.framework.codecs import CompactU128, account_id
from pubsub_emulator.runtime.framework.dispatch import (
    Arithmetic,
    Token,
    TokenError,
    dispatchable,
    ensure,
)
from pubsub_emulator.runtime.framework.events import deposit
from pubsub_emulator.runtime.framework.hashers import Blake2_128Concat
from pubsub_emulator.runtime.framework.hooks import Hooks, IntegrityError, StateError
from pubsub_emulator.runtime.framework.items import StorageMap, StorageValue
from pubsub_emulator.runtime.framework.origin import (
    MultiAddress,
    Origin,
    ensure_root,
    ensure_signed,
    lookup,
)
from pubsub_emulator.runtime.framework.pallet import Constant, constant
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.framework.system import AccountData

TRANSFER_WEIGHT: Final = Weight(60_000_000, 3593)
"""The approximate weight of a transfer on a Polkadot node.

ref_time is in picoseconds, proof_size in bytes.
"""

TOTAL_ISSUANCE: Final = StorageValue(
    PALLET, "TotalIssuance", "The total units issued in the system.", scale.u128, 0
)
HOLDS: Final = StorageMap(
    PALLET, "Holds", "Holds on account balances.", Blake2_128Concat, account_id, types.holds, []
)


class Balances(Hooks):
    """`pallet_balances`.

    `existential_deposit` is in plancks. `max_holds` is the maximum number of hold reasons of an
    account.
    """

    pallet = PALLET

    def __init__(self, existential_deposit: int = 10_000_000_000, max_holds: int = 8) -> None:
        self.existential_deposit = existential_deposit
        self.max_holds = max_holds

    def genesis(self, storage: Storage, balances: Mapping[AccountId, int]) -> None:
        """Add to the balances of accounts before block 1.

        Raises `IntegrityError` for amounts below the existential deposit.
        """
        for who, free in balances.items():
            if free < self.existential_deposit:
                raise IntegrityError(f"a balance of {free} is below the existential deposit")
            if not system.account(storage, who).providers:
                system.inc_providers(storage, who)
            info = system.account(storage, who)
            system.ACCOUNT.insert(
                storage, who, replace(info, data=replace(info.data, free=info.data.free + free))
            )
        TOTAL_ISSUANCE.put(storage, TOTAL_ISSUANCE.get(storage) + sum(balances.values()))

    @dispatchable(0, weight=TRANSFER_WEIGHT)
    def transfer_allow_death(
        self, storage: Storage, origin: Origin, dest: MultiAddress, value: CompactU128
    ) -> None:
        """Transfer free balance; the sender's account may end. Errors and events as `transfer`."""
        self.transfer(storage, ensure_signed(origin), lookup(dest), value, Preservation.EXPENDABLE)

    @dispatchable(3, weight=TRANSFER_WEIGHT)
    def transfer_keep_alive(
        self, storage: Storage, origin: Origin, dest: MultiAddress, value: CompactU128
    ) -> None:
        """Transfer free balance that the sender's account outlives.

        Errors and events as `transfer`.
        """
        self.transfer(storage, ensure_signed(origin), lookup(dest), value, Preservation.PRESERVE)

    @dispatchable(4, weight=TRANSFER_WEIGHT)
    def transfer_all(
        self, storage: Storage, origin: Origin, dest: MultiAddress, keep_alive: bool
    ) -> None:
        """Transfer all free balance that can be transferred.

        If `keep_alive`, the amount that keeps the account alive stays. Errors and events as
        `transfer`.
        """
        who = ensure_signed(origin)
        preservation = Preservation.PRESERVE if keep_alive else Preservation.EXPENDABLE
        amount = self.reducible_balance(storage, who, preservation, Fortitude.POLITE)
        self.transfer(storage, who, lookup(dest), amount, preservation)

    @dispatchable(8, weight=TRANSFER_WEIGHT)
    def force_set_balance(
        self, storage: Storage, origin: Origin, who: MultiAddress, new_free: CompactU128
    ) -> None:
        """Root sets a free balance; below the existential deposit it becomes zero.

        Raises `Arithmetic(Overflow)` when the total issuance would not fit: Rust's saturates, and
        no longer is the sum of all balances. Emits `BalanceSet`.
        """
        ensure_root(origin)
        account = lookup(who)
        free = 0 if new_free < self.existential_deposit else new_free
        issuance = TOTAL_ISSUANCE.get(storage) - system.account(storage, account).data.free + free
        ensure(issuance <= U128_MAX, Arithmetic(dispatch.ArithmeticError.Overflow))
        self._mutate(storage, account, lambda data: replace(data, free=free))
        TOTAL_ISSUANCE.put(storage, issuance)
        deposit(storage, types.BalanceSet(account, free))

    def balance_on_hold(self, storage: Storage, reason: HoldReason, who: AccountId) -> Balance:
        """Return the amount on hold for this reason."""
        return Balance(
            next((hold.amount for hold in HOLDS.get(storage, who) if hold.id == reason), 0)
        )

    def reducible_balance(
        self, storage: Storage, who: AccountId, preservation: Preservation, force: Fortitude
    ) -> Balance:
        """Return the amount of the free balance that can be withdrawn."""
        info = system.account(storage, who)
        data = info.data
        untouchable = max(data.frozen - data.reserved, 0) if force is Fortitude.POLITE else 0
        needed = (
            preservation is Preservation.PRESERVE
            or (preservation is Preservation.PROTECT and data.free and info.providers == 1)
            or (
                preservation is Preservation.EXPENDABLE
                and data.free
                and not system.can_dec_provider(storage, who)
            )
        )
        if needed:
            untouchable = max(untouchable, self.existential_deposit)
        return Balance(max(data.free - untouchable, 0))

    def transfer(
        self,
        storage: Storage,
        source: AccountId,
        dest: AccountId,
        amount: int,
        preservation: Preservation,
    ) -> None:
        """Move free balance.

        Raises `Token(FundsUnavailable)`, `Token(Frozen)`, `Token(OnlyProvider)`,
        `Token(NotExpendable)`, `Token(BelowMinimum)` and `Arithmetic(Overflow)`. Emits `Transfer`,
        and events of created or removed accounts.
        """
        self._check_withdraw(
            storage, source, amount, keep=preservation is not Preservation.EXPENDABLE
        )
        self._check_deposit(storage, dest, amount)
        if source != dest:
            self._decrease(
                storage, source, amount, Precision.BEST_EFFORT, preservation, Fortitude.POLITE
            )
            self._increase(storage, dest, amount)
        deposit(storage, types.Transfer(source, dest, amount))

    def withdraw_fee(self, storage: Storage, who: AccountId, amount: int) -> None:
        """Burn a fee and keep the account alive.

        Raises `Token(FundsUnavailable)`. Emits `Withdraw`.
        """
        self._decrease(
            storage, who, amount, Precision.EXACT, Preservation.PRESERVE, Fortitude.POLITE
        )
        TOTAL_ISSUANCE.put(storage, TOTAL_ISSUANCE.get(storage) - amount)
        deposit(storage, types.Withdraw(who, amount))

    def refund_fee(self, storage: Storage, who: AccountId, amount: int) -> None:
        """Refund a part of a burnt fee.

        This does nothing for zero or if the account is gone. Emits `Deposit`.
        """
        data = system.account(storage, who).data
        if not amount or not (data.free or data.reserved):
            return
        self._increase(storage, who, amount)
        TOTAL_ISSUANCE.put(storage, TOTAL_ISSUANCE.get(storage) + amount)
        deposit(storage, types.Deposit(who, amount))

    def hold(self, storage: Storage, reason: HoldReason, who: AccountId, amount: int) -> None:
        """Put `amount` of the free balance on hold.

        This does nothing for zero. The existential deposit stays free while the account needs it.
        Raises `Token(CannotCreateHold)` if there is no account or no room for another reason, and
        `Token(FundsUnavailable)`. Emits `Held`.
        """
        if amount == 0:
            return
        holds = HOLDS.get(storage, who)
        full = len(holds) >= self.max_holds and all(hold.id != reason for hold in holds)
        ensure(
            not full and system.account(storage, who).providers, Token(TokenError.CannotCreateHold)
        )
        self._decrease(storage, who, amount, Precision.EXACT, Preservation.PROTECT, Fortitude.FORCE)
        self._set_on_hold(storage, reason, who, self.balance_on_hold(storage, reason, who) + amount)
        deposit(storage, types.Held(reason, who, amount))

    def release(
        self,
        storage: Storage,
        reason: HoldReason,
        who: AccountId,
        amount: int,
        precision: Precision = Precision.EXACT,
    ) -> Balance:
        """Release an amount on hold, and return the released amount.

        This does nothing for zero. Raises `Token(FundsUnavailable)` if less is on hold and
        `precision` is exact, and `Token(CannotCreate)` if the free balance would be below the
        existential deposit or beyond a u128. Rust adds the amount to the total, which includes it
        already. Emits `Released`.
        """
        if amount == 0:
            return Balance(0)
        data = system.account(storage, who).data
        if data.free + amount < self.existential_deposit or data.free + amount > U128_MAX:
            raise Token(TokenError.CannotCreate)
        released = self._decrease_on_hold(storage, reason, who, amount, precision)
        self._increase(storage, who, released)
        deposit(storage, types.Released(reason, who, released))
        return Balance(released)

    def slash_held(
        self, storage: Storage, reason: HoldReason, who: AccountId, amount: int
    ) -> Balance:
        """Burn up to `amount` of an amount on hold, and return the burnt amount.

        Emits `Slashed`.
        """
        burnt = self._decrease_on_hold(storage, reason, who, amount, Precision.BEST_EFFORT)
        if burnt:
            TOTAL_ISSUANCE.put(storage, TOTAL_ISSUANCE.get(storage) - burnt)
            deposit(storage, types.Slashed(who, burnt))
        return Balance(burnt)

    def integrity_test(self) -> None:
        """Raise `IntegrityError` if the existential deposit is zero, so that accounts are free."""
        ensure(
            self.existential_deposit > 0,
            IntegrityError("the existential deposit must be greater than zero"),
        )

    def try_state(self, storage: Storage) -> None:
        """Raise `StateError` if holds, balances and reference counters do not agree.

        The holds of an account must add up to `reserved`, and all accounts to the issuance.
        """
        issuance = 0
        for who, info in system.ACCOUNT.items(storage):
            data = info.data
            held = HOLDS.get(storage, who)
            issuance += data.free + data.reserved
            if sum(hold.amount for hold in held) != data.reserved or any(
                hold.amount == 0 for hold in held
            ):
                raise StateError(
                    f"Balances: holds of {who.hex()} do not sum up to what is reserved"
                )
            if data.reserved and not (info.consumers and info.providers):
                raise StateError(f"Balances: {who.hex()} holds without a consumer or a provider")
            if data.free < self.existential_deposit and (data.free or not data.reserved):
                raise StateError(f"Balances: {who.hex()} lives below the existential deposit")
        if issuance != TOTAL_ISSUANCE.get(storage):
            raise StateError("Balances: accounts do not sum up to the total issuance")

    def constants(self) -> tuple[Constant, ...]:
        """Return the existential deposit."""
        least = "The minimum amount required to keep an account open."
        return (constant("ExistentialDeposit", scale.u128, self.existential_deposit, least),)

    def _mutate(
        self, storage: Storage, who: AccountId, change: Callable[[AccountData], AccountData]
    ) -> None:
        """Change an account's data, update its reference counters and burn dust."""
        info = system.account(storage, who)
        before = info.data
        after = change(before)
        minimum = self.existential_deposit
        is_new = info == system.AccountInfo()
        did_provide = before.free >= minimum
        does_provide = after.free >= minimum
        did_consume = bool(before.reserved or before.frozen)
        does_consume = bool(after.reserved or after.frozen)
        if not did_provide and does_provide:
            system.inc_providers(storage, who)
        if did_consume and not does_consume:
            system.dec_consumers(storage, who)
        if not did_consume and does_consume:
            system.inc_consumers(storage, who)
        # The steps above may have changed the counters, so the account is read again.
        info = system.account(storage, who)
        dust = 0
        if after.free < minimum and not after.reserved:
            dust = after.free
            after = replace(after, free=0)
        if info.providers or info.sufficients or info.consumers:
            system.ACCOUNT.insert(storage, who, replace(info, data=after))
        if did_provide and not does_provide:
            # This may remove the account, so it comes last.
            system.dec_providers(storage, who)
        if is_new and after.free:
            deposit(storage, types.Endowed(who, after.free))
        if dust:
            TOTAL_ISSUANCE.put(storage, TOTAL_ISSUANCE.get(storage) - dust)
            deposit(storage, types.DustLost(who, dust))

    def _write_free(self, storage: Storage, who: AccountId, free: int) -> None:
        self._mutate(storage, who, lambda data: replace(data, free=free))

    def _increase(self, storage: Storage, who: AccountId, amount: int) -> None:
        """Increase a free balance, unless it would still be below the existential deposit.

        Raises `Arithmetic(Overflow)`.
        """
        free = system.account(storage, who).data.free + amount
        ensure(free <= U128_MAX, Arithmetic(dispatch.ArithmeticError.Overflow))
        if amount and free >= self.existential_deposit:
            self._write_free(storage, who, free)

    def _decrease(  # noqa: PLR0917  # in the order of fungible's own
        self,
        storage: Storage,
        who: AccountId,
        amount: int,
        precision: Precision,
        preservation: Preservation,
        force: Fortitude,
    ) -> None:
        """Decrease a free balance by `amount`, or by as much as possible with best effort.

        Raises `Token(FundsUnavailable)`.
        """
        reducible = self.reducible_balance(storage, who, preservation, force)
        if precision is Precision.BEST_EFFORT:
            amount = min(amount, reducible)
        elif amount > reducible:
            raise Token(TokenError.FundsUnavailable)
        self._write_free(storage, who, system.account(storage, who).data.free - amount)

    def _decrease_on_hold(
        self,
        storage: Storage,
        reason: HoldReason,
        who: AccountId,
        amount: int,
        precision: Precision,
    ) -> int:
        """Decrease an amount on hold, and return the decrease. Raises `Token(FundsUnavailable)`."""
        held = self.balance_on_hold(storage, reason, who)
        if precision is Precision.BEST_EFFORT:
            amount = min(amount, held)
        elif amount > held:
            raise Token(TokenError.FundsUnavailable)
        self._set_on_hold(storage, reason, who, held - amount)
        return amount

    def _set_on_hold(
        self, storage: Storage, reason: HoldReason, who: AccountId, amount: int
    ) -> None:
        holds = HOLDS.get(storage, who)
        index = next((i for i, hold in enumerate(holds) if hold.id == reason), None)
        before = 0 if index is None else holds[index].amount
        if index is None:
            if amount:
                holds.append(IdAmount(reason, amount))
        elif amount:
            holds[index] = IdAmount(reason, amount)
        else:
            del holds[index]
        ensure(len(holds) <= self.max_holds, types.Error.TooManyHolds)
        self._mutate(
            storage, who, lambda data: replace(data, reserved=data.reserved + amount - before)
        )
        HOLDS.insert(storage, who, holds)

    def _check_withdraw(self, storage: Storage, who: AccountId, amount: int, *, keep: bool) -> None:
        if amount == 0:
            return
        data = system.account(storage, who).data
        remaining = data.free - amount
        ensure(remaining >= 0, Token(TokenError.FundsUnavailable))
        if amount > self.reducible_balance(storage, who, Preservation.EXPENDABLE, Fortitude.POLITE):
            raise Token(TokenError.Frozen)
        if remaining < self.existential_deposit:
            ensure(system.can_dec_provider(storage, who), Token(TokenError.OnlyProvider))
            ensure(not keep, Token(TokenError.NotExpendable))

    def _check_deposit(self, storage: Storage, who: AccountId, amount: int) -> None:
        if amount == 0:
            return
        data = system.account(storage, who).data
        ensure(
            data.free + amount + data.reserved <= U128_MAX,
            Arithmetic(dispatch.ArithmeticError.Overflow),
        )
        ensure(data.free + amount >= self.existential_deposit, Token(TokenError.BelowMinimum))

"""The holds of one pallet, whose reasons are its own enum: what a pallet that takes deposits is given."""

from enum import Enum

from primitives.types import AccountId, Balance
from runtime.balances.pallet import Balances
from runtime.balances.types import HoldReason, Precision
from runtime.storage import Storage


class Holding:
    """`Balances` as the pallet `pallet` sees it; a reason is an enum member whose value is its variant index."""

    def __init__(self, balances: Balances, pallet: str) -> None:
        self._balances = balances
        self._pallet = pallet

    def hold(self, storage: Storage, reason: Enum, who: AccountId, amount: Balance) -> None:
        """Put `amount` on hold. Raises and emits as `Balances.hold`."""
        self._balances.hold(storage, self._reason(reason), who, amount)

    def release(self, storage: Storage, reason: Enum, who: AccountId, amount: Balance) -> Balance:
        """Give back at most `amount`; returns how much. Raises and emits as `Balances.release`."""
        return self._balances.release(storage, self._reason(reason), who, amount, Precision.BEST_EFFORT)

    def slash_held(self, storage: Storage, reason: Enum, who: AccountId, amount: Balance) -> Balance:
        """Burn at most `amount` of what is on hold; returns how much. Emits as `Balances.slash_held`."""
        return self._balances.slash_held(storage, self._reason(reason), who, amount)

    def held(self, storage: Storage, reason: Enum, who: AccountId) -> Balance:
        """What is on hold for this reason."""
        return self._balances.balance_on_hold(storage, self._reason(reason), who)

    def _reason(self, reason: Enum) -> HoldReason:
        return HoldReason(self._pallet, reason.value)

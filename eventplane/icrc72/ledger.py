"""An emulated token ledger: the part of ICRC-1 and ICRC-2 that payments for replays use. It takes no fee (RP-4)."""

from collections.abc import Mapping
from typing import Any

from pubsub_emulator.eventplane.ic.candid.types import Variant
from pubsub_emulator.eventplane.ic.canister import Context
from pubsub_emulator.eventplane.ic.principal import Principal
from pubsub_emulator.eventplane.icrc72.messages import Account, ApproveArgs, TransferArg, TransferFromArgs
from pubsub_emulator.eventplane.icrc72.role import Handler, Query, RoleCanister, reply


class Ledger:
    """The role of a ledger."""

    name = "ledger"

    def __init__(self, balances: Mapping[Principal, int]) -> None:
        self.balances: dict[Principal, int] = dict(balances)
        self.allowances: dict[tuple[Principal, Principal], int] = {}
        self.blocks = 0

    def attach(self, role: RoleCanister) -> None:
        """Nothing to learn."""

    def updates(self) -> Mapping[str, Handler]:
        """Methods by name."""
        return {
            "icrc1_transfer": self._transfer,
            "icrc2_approve": self._approve,
            "icrc2_transfer_from": self._transfer_from,
        }

    def queries(self) -> Mapping[str, Query]:
        """Queries by name."""
        return {
            "icrc1_fee": lambda _caller, _time: 0,
            "icrc1_balance_of": lambda _caller, _time, account: self.balances.get(account.owner, 0),
            "icrc2_allowance": self._allowance,
        }

    def begin(self, ctx: Context) -> None:
        """Nothing."""

    def wake(self, ctx: Context) -> None:
        """Nothing."""

    def due(self, _now: int) -> int | None:
        """Never."""
        return None

    def saved(self) -> Any:
        """Balances and allowances."""
        return self.balances, self.allowances, self.blocks

    def resume(self, state: Any) -> None:
        """Go on."""
        self.balances, self.allowances, self.blocks = state

    def total(self) -> int:
        """All tokens: no method here changes it."""
        return sum(self.balances.values())

    def _block(self) -> Variant:
        self.blocks += 1
        return Variant("Ok", self.blocks)

    def _move(self, source: Principal, to: Account, amount: int, fee: int | None) -> Variant | None:
        """The error, or `None` when the amount was moved. Subaccounts are not kept apart: only the default is used."""
        if fee:
            return Variant("BadFee", (0,))
        balance = self.balances.get(source, 0)
        if balance < amount:
            return Variant("InsufficientFunds", (balance,))
        self.balances[source] = balance - amount
        self.balances[to.owner] = self.balances.get(to.owner, 0) + amount
        return None

    def _transfer(self, ctx: Context, order: TransferArg) -> None:
        wrong = self._move(ctx.caller, order.to, order.amount, order.fee)
        reply(ctx, "icrc1_transfer", self._block() if wrong is None else Variant("Err", wrong))

    def _approve(self, ctx: Context, order: ApproveArgs) -> None:
        self.allowances[ctx.caller, order.spender.owner] = order.amount
        reply(ctx, "icrc2_approve", self._block())

    def _transfer_from(self, ctx: Context, order: TransferFromArgs) -> None:
        key = (order.source.owner, ctx.caller)
        allowed = self.allowances.get(key, 0)
        wrong: Variant | None
        if allowed < order.amount:
            wrong = Variant("InsufficientAllowance", (allowed,))
        else:
            wrong = self._move(order.source.owner, order.to, order.amount, order.fee)
        if wrong is None:
            self.allowances[key] = allowed - order.amount
        reply(ctx, "icrc2_transfer_from", self._block() if wrong is None else Variant("Err", wrong))

    def _allowance(self, _caller: Principal, _time: int, arg: Any) -> Any:
        account, spender = arg
        return self.allowances.get((account.owner, spender.owner), 0), None


__all__ = ["Ledger"]

"""An emulated token ledger: the part of ICRC-1 and ICRC-2 that payments for replays use (RP-4)."""

from collections.abc import Mapping
from typing import Final, Literal

from pubsub_emulator.icrc72.ic.candid.types import Variant
from pubsub_emulator.icrc72.ic.canister import Context
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.ic.stable import stable
from pubsub_emulator.icrc72.messages import Account, ApproveArgs, Ok, TransferArg, TransferFromArgs
from pubsub_emulator.icrc72.methods import APPROVE, TRANSFER, TRANSFER_FROM, Transferred
from pubsub_emulator.icrc72.role import Core, Handler, Query, restored

SUBACCOUNT_BYTES: Final = 32

stable(Account)

Wrong = Variant[str, object]
"""Why a ledger refuses."""


class TokenLedger(Core):
    """The role of a ledger."""

    name = "ledger"

    def __init__(self, balances: Mapping[Principal, int], fee: int = 0) -> None:
        self.fee = fee
        self.balances: dict[Account, int] = {Account(who): amount for who, amount in balances.items()}
        self.allowances: dict[tuple[Account, Account], tuple[int, int | None]] = {}
        """Of each account and spender: the amount, and the time (ns) until which it holds."""
        self.blocks = 0
        self.burnt = 0

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
            "icrc1_fee": lambda _caller, _time: self.fee,
            "icrc1_balance_of": lambda _caller, _time, account: self.balance(account),
            "icrc2_allowance": self._allowance,
        }

    def saved(self) -> object:
        """Balances and allowances."""
        return self.balances, self.allowances, self.blocks, self.burnt

    def resume(self, state: object) -> None:
        """Continue with the saved state."""
        self.balances, self.allowances, self.blocks, self.burnt = restored(state, tuple)

    def total(self) -> int:
        """All tokens, with the fees that were taken: no method here changes it."""
        return sum(self.balances.values()) + self.burnt

    def balance(self, account: Account) -> int:
        """The tokens of an account."""
        return self.balances.get(_account(account), 0)

    def give(self, who: Principal, amount: int) -> None:
        """Make tokens for somebody."""
        self.balances[Account(who)] = self.balance(Account(who)) + amount

    def _block(self) -> Ok[int]:
        self.blocks += 1
        return Variant("Ok", self.blocks)

    def _move(self, source: Account, to: Account, amount: int, fee: int | None) -> Wrong | None:
        """The error, or `None` when the amount was moved."""
        if fee not in {None, self.fee}:
            return _wrong("BadFee", self.fee)
        if not _is_account(source) or not _is_account(to):
            return Variant("GenericError", (1, "a subaccount has 32 bytes"))
        balance = self.balance(source)
        if balance < amount + self.fee:
            return _wrong("InsufficientFunds", balance)
        self.balances[_account(source)] = balance - amount - self.fee
        self.burnt += self.fee
        self.balances[_account(to)] = self.balance(to) + amount
        return None

    def _transfer(self, ctx: Context, order: TransferArg) -> None:
        wrong = self._move(Account(ctx.caller, order.from_subaccount), order.to, order.amount, order.fee)
        TRANSFER.reply(ctx, self._block() if wrong is None else _err(wrong))

    def _approve(self, ctx: Context, order: ApproveArgs) -> None:
        APPROVE.reply(ctx, self._approved(ctx, order))

    def _approved(self, ctx: Context, order: ApproveArgs) -> Transferred:
        source = Account(ctx.caller, order.from_subaccount)
        if not _is_account(source) or not _is_account(order.spender):
            return _err(Variant("GenericError", (1, "a subaccount has 32 bytes")))
        key = _account(source), _account(order.spender)
        allowed = self._allowed(key, ctx.time)
        if order.fee not in {None, self.fee}:
            return _err(_wrong("BadFee", self.fee))
        if order.expected_allowance is not None and order.expected_allowance != allowed:
            return _err(_wrong("AllowanceChanged", allowed))
        if order.expires_at is not None and order.expires_at <= ctx.time:
            return _err(_wrong("Expired", ctx.time))
        self.allowances[key] = order.amount, order.expires_at
        return self._block()

    def _transfer_from(self, ctx: Context, order: TransferFromArgs) -> None:
        key = _account(order.source), _account(Account(ctx.caller, order.spender_subaccount))
        allowed = self._allowed(key, ctx.time)
        wrong: Wrong | None
        if allowed < order.amount + self.fee:
            wrong = _wrong("InsufficientAllowance", allowed)
        else:
            wrong = self._move(order.source, order.to, order.amount, order.fee)
        if wrong is None:
            self.allowances[key] = (
                allowed - order.amount - self.fee,
                self.allowances[key][1] if key in self.allowances else None,
            )
        TRANSFER_FROM.reply(ctx, self._block() if wrong is None else _err(wrong))

    def _allowed(self, key: tuple[Account, Account], time: int) -> int:
        amount, until = self.allowances.get(key, (0, None))
        return 0 if until is not None and until <= time else amount

    def _allowance(self, _caller: Principal, time: int, arg: tuple[Account, Account]) -> tuple[int, int | None]:
        key = _account(arg[0]), _account(arg[1])
        amount = self._allowed(key, time)
        return amount, self.allowances[key][1] if amount else None


def _wrong(tag: str, number: int) -> Wrong:
    return Variant(tag, (number,))


def _err(wrong: Wrong) -> Variant[Literal["Err"], Wrong]:
    return Variant("Err", wrong)


def _is_account(account: Account) -> bool:
    return account.subaccount is None or len(account.subaccount) == SUBACCOUNT_BYTES


def _account(account: Account) -> Account:
    """An account as it is known: no subaccount and one of zeros are the same (ICRC-1)."""
    zeros = account.subaccount is not None and not any(account.subaccount)
    return Account(account.owner) if zeros else Account(*account)

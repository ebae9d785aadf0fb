"""The emulated ledger: accounts, allowances, and that no token is made or lost."""

from dataclasses import dataclass
from typing import Any

import pytest

from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.ledger import TokenLedger
from pubsub_emulator.icrc72.messages import Account, ApproveArgs, TransferArg, TransferFromArgs
from pubsub_emulator.icrc72.role import RoleCanister
from pubsub_emulator.testing.canisters import Canisters

SAVINGS = bytes(31) + b"\x01"


@dataclass
class Bank:
    lab: Canisters
    token: Principal
    one: Principal
    other: Principal

    def order(self, who: Principal, method: str, *values: Any) -> Any:
        return self.lab.answer(who, self.token, method, *values)

    def holds(self, *account: Any) -> int:
        found: int = self.lab.ask("icrc1_balance_of", Account(*account), to=self.token)
        return found


@pytest.fixture(name="bank")
def _bank() -> Bank:
    lab = Canisters()
    one, other = lab.probe(), lab.probe()
    return Bank(lab, lab.network.create(0, RoleCanister([TokenLedger({one: 100})])), one, other)


def test_subaccounts_are_kept_apart_and_one_of_zeros_is_the_default(bank: Bank) -> None:
    move = TransferArg(None, Account(bank.one, SAVINGS), 40)
    assert bank.order(bank.one, "icrc1_transfer", move) == ("Ok", 1)
    assert (bank.holds(bank.one), bank.holds(bank.one, bytes(32)), bank.holds(bank.one, SAVINGS)) == (60, 60, 40)
    back = TransferArg(SAVINGS, Account(bank.other, bytes(32)), 30)
    assert bank.order(bank.one, "icrc1_transfer", back) == ("Ok", 2)
    assert (bank.holds(bank.other), bank.holds(bank.one, SAVINGS)) == (30, 10)
    poor = bank.order(bank.one, "icrc1_transfer", TransferArg(SAVINGS, Account(bank.other), 11))
    assert poor.value == ("InsufficientFunds", (10,))
    bad = bank.order(bank.one, "icrc1_transfer", TransferArg(b"short", Account(bank.other), 1))
    assert bad.value.tag == "GenericError"


def test_an_allowance_is_of_an_account_and_a_spender_and_ends(bank: Bank) -> None:
    bank.order(bank.one, "icrc1_transfer", TransferArg(None, Account(bank.one, SAVINGS), 50))
    until = bank.lab.network.time(0) + 60 * 10**9
    allow = ApproveArgs(SAVINGS, Account(bank.other), 20, expires_at=until)
    assert bank.order(bank.one, "icrc2_approve", allow).tag == "Ok"
    wrong = TransferFromArgs(None, Account(bank.one), Account(bank.other), 5)
    assert bank.order(bank.other, "icrc2_transfer_from", wrong).value == ("InsufficientAllowance", (0,))
    right = TransferFromArgs(None, Account(bank.one, SAVINGS), Account(bank.other, SAVINGS), 5)
    assert bank.order(bank.other, "icrc2_transfer_from", right).tag == "Ok"
    pair = (Account(bank.one, SAVINGS), Account(bank.other))
    assert bank.lab.ask("icrc2_allowance", pair, to=bank.token) == (15, until)
    changed = ApproveArgs(SAVINGS, Account(bank.other), 9, expected_allowance=20)
    assert bank.order(bank.one, "icrc2_approve", changed).value == ("AllowanceChanged", (15,))
    bank.lab.step(80)
    assert bank.lab.ask("icrc2_allowance", pair, to=bank.token) == (0, None)
    assert bank.order(bank.other, "icrc2_transfer_from", right).value == ("InsufficientAllowance", (0,))
    past = ApproveArgs(None, Account(bank.other), 1, expires_at=1)
    assert bank.order(bank.one, "icrc2_approve", past).value.tag == "Expired"
    assert (bank.holds(bank.one, SAVINGS), bank.holds(bank.other, SAVINGS)) == (45, 5)

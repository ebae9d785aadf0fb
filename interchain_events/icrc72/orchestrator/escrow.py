"""Payment of replays: into escrow when they are registered, out when they have ended (RP-4, R4).

A publication charges a price for each event, in cycles or in tokens of an ICRC-2 ledger. The
subscriber pays for the whole range in advance. At the end the publisher gets the price of the
events that it has delivered, and the subscriber the rest.
"""

from collections.abc import Callable
from dataclasses import dataclass

from interchain_events.icrc72.ic.canister import GUARANTEED, Answer, Context
from interchain_events.icrc72.ic.errors import shown
from interchain_events.icrc72.ic.principal import MANAGEMENT
from interchain_events.icrc72.messages import Account, Err, TransferArg, TransferFromArgs
from interchain_events.icrc72.methods import (
    LEDGER_FEE,
    TRANSFER,
    TRANSFER_FROM,
    Transferred,
    ok,
    refused,
)
from interchain_events.icrc72.orchestrator.state import Replay
from interchain_events.icrc72.role import RoleCanister
from interchain_events.icrc72.services import type_codec
from interchain_events.icrc72.settings import Settings


@dataclass(slots=True)
class Escrow:
    """The payments of an orchestrator's replays."""

    settings: Settings
    role: RoleCanister

    def pay(
        self, ctx: Context, replay: Replay, paid: Callable[[Context, Replay, Err | None], None]
    ) -> None:
        """Take the price of a replay from its payer.

        `paid` is called with `None` when the price was taken or none is due, otherwise with the
        error, whose text states the terms. For cycles this happens at once, from the cycles that
        came with the call, and for tokens after the ledger has answered.
        """
        ledger, payer = replay.ledger, replay.payer
        if payer is None:
            paid(ctx, replay, None)
            return
        count = replay.paid // replay.price
        terms = f"perEvent={shown(replay.price)};count={count};amount={shown(replay.paid)};"
        if ledger is None:
            enough = ctx.available >= replay.paid
            ctx.accept(replay.paid if enough else 0)
            paid(
                ctx,
                replay,
                None if enough else refused("PaymentRequired", f"{terms}currency=cycles"),
            )
            return
        terms += f"currency=icrc2:{ledger.text};spender={ctx.me.text}"

        def moved(ctx: Context, result: Transferred | None) -> None:
            done = result is not None and result.tag == "Ok"
            paid(ctx, replay, None if done else refused("PaymentRequired", terms))

        order = TransferFromArgs(None, Account(payer), Account(ctx.me), replay.paid)
        self.role.ask(ctx, ledger, TRANSFER_FROM, order, moved, kind=GUARANTEED)

    def settle(self, ctx: Context, replay: Replay, count: int) -> None:
        """Divide the price of a replay that has ended, and begin to pay out.

        `count` is how many events the last publisher earned. Publishers that finished their parts
        before are paid for these, unless the replay failed. The payer gets the rest.
        """
        replay.settled = True
        left = replay.paid
        if replay.payer is not None:
            parts = (
                [] if replay.state == "errored" else [(who, part) for who, _, part in replay.parts]
            )
            for who, part in (*parts, (replay.publisher, count)):
                earned = min(replay.prices.get(who, replay.price) * part, left)
                left -= earned
                replay.owed.append((who, earned))
            replay.owed = [each for each in (*replay.owed, (replay.payer, left)) if each[1]]
        self.transfer(ctx, replay)

    def transfer(self, ctx: Context, replay: Replay) -> None:
        """Make the transfers that are owed, one after the other.

        The receiver bears the ledger's fee. A failed transfer is tried again after `transfer_retry`
        rounds.
        """
        if not replay.owed or replay.paying or ctx.now < replay.next_pay:
            return
        to, amount = replay.owed[0]
        replay.paying = True

        def known(ctx: Context, fee: int | None) -> None:
            if fee is None or replay.ledger is None:
                moved(ctx, None)
            elif amount <= fee:
                # Nothing would arrive, so the amount stays here and the debt is dropped.
                moved(ctx, ok(0))
            else:
                order = TransferArg(None, Account(to), amount - fee)
                self.role.ask(ctx, replay.ledger, TRANSFER, order, moved, kind=GUARANTEED)

        def deposited(ctx: Context, answer: Answer) -> None:
            moved(ctx, ok(0) if answer.ok else None)

        def moved(ctx: Context, result: Transferred | None) -> None:
            replay.paying = False
            if result is not None and result.tag == "Ok":
                del replay.owed[0]
                self.transfer(ctx, replay)
            else:
                replay.next_pay = ctx.now + self.settings.transfer_retry

        if replay.ledger is None:
            # Cycles are deposited without a fee. If the canister has spent some, it pays what it
            # has.
            arg = type_codec("ledger", "Deposit").encode((to,))
            amount = min(amount, ctx.balance)
            ctx.call(MANAGEMENT, "deposit_cycles", arg, deposited, cycles=amount)
            return
        self.role.ask(ctx, replay.ledger, LEDGER_FEE, None, known, kind=GUARANTEED)

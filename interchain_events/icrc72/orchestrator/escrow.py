"""Payment of replays: into escrow when they are registered, out when they have ended (RP-4, R4).

A publication charges a price for each event, in cycles or in tokens of an ICRC-2 ledger. The
subscriber pays for the whole range in advance. At the end the publisher gets the price of the
events that it has delivered, and the subscriber the rest.
"""

from collections.abc import Callable
from dataclasses import dataclass

from interchain_events.icrc72.ic.canister import GUARANTEED, Answer, Context
from interchain_events.icrc72.ic.errors import shown
from interchain_events.icrc72.ic.principal import MANAGEMENT, Principal
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

        `paid` is called with `None` when the price was taken or the replay is free, otherwise with
        an error that states the terms. Cycles are taken from those that came with the call, so
        `paid` is called at once. For tokens it is called when the ledger has answered.
        """
        ledger = replay.ledger
        payer = replay.payer
        if payer is None:
            paid(ctx, replay, None)
            return
        count = replay.paid // replay.price
        terms = f"perEvent={shown(replay.price)};count={count};amount={shown(replay.paid)};"
        if ledger is None:
            if ctx.available >= replay.paid:
                ctx.accept(replay.paid)
                paid(ctx, replay, None)
            else:
                paid(ctx, replay, refused("PaymentRequired", f"{terms}currency=cycles"))
            return
        terms += f"currency=icrc2:{ledger.text};spender={ctx.me.text}"

        def moved(ctx: Context, result: Transferred | None) -> None:
            done = result is not None and result.tag == "Ok"
            paid(ctx, replay, None if done else refused("PaymentRequired", terms))

        order = TransferFromArgs(None, Account(payer), Account(ctx.me), replay.paid)
        self.role.ask(ctx, ledger, TRANSFER_FROM, order, moved, kind=GUARANTEED)

    def settle(self, ctx: Context, replay: Replay, count: int) -> None:
        """Divide the price of a replay that has ended, and begin to pay out.

        `count` is the number of events for which the last publisher is paid. Publishers that
        finished their parts earlier are paid for them, unless the replay failed. The payer gets the
        rest.
        """
        replay.settled = True
        left = replay.paid
        if replay.payer is not None:
            counts: list[tuple[Principal, int]] = []
            if replay.state != "errored":
                counts += [(publisher, part) for publisher, _, part in replay.parts]
            counts.append((replay.publisher, count))
            for publisher, part in counts:
                earned = min(replay.prices.get(publisher, replay.price) * part, left)
                left -= earned
                replay.owed.append((publisher, earned))
            replay.owed.append((replay.payer, left))
            replay.owed = [(receiver, amount) for receiver, amount in replay.owed if amount]
        self.transfer(ctx, replay)

    def transfer(self, ctx: Context, replay: Replay) -> None:
        """Make the transfers that are owed, one after the other.

        The receiver bears the ledger's fee. A failed transfer is tried again after `transfer_retry`
        rounds.
        """
        if not replay.owed or replay.paying or ctx.now < replay.next_pay:
            return
        receiver, amount = replay.owed[0]
        replay.paying = True

        def got_fee(ctx: Context, fee: int | None) -> None:
            if fee is None or replay.ledger is None:
                transferred(ctx, None)
            elif amount <= fee:
                # The receiver would get nothing, so the amount stays here and the debt is dropped.
                transferred(ctx, ok(0))
            else:
                order = TransferArg(None, Account(receiver), amount - fee)
                self.role.ask(ctx, replay.ledger, TRANSFER, order, transferred, kind=GUARANTEED)

        def deposited(ctx: Context, answer: Answer) -> None:
            transferred(ctx, ok(0) if answer.ok else None)

        def transferred(ctx: Context, result: Transferred | None) -> None:
            replay.paying = False
            if result is not None and result.tag == "Ok":
                del replay.owed[0]
                self.transfer(ctx, replay)
            else:
                replay.next_pay = ctx.now + self.settings.transfer_retry

        if replay.ledger is None:
            # Cycles are deposited without a fee. The canister may have spent some of them; it then
            # pays all that it still has.
            arg = type_codec("ledger", "Deposit").encode((receiver,))
            amount = min(amount, ctx.balance)
            ctx.call(MANAGEMENT, "deposit_cycles", arg, deposited, cycles=amount)
            return
        self.role.ask(ctx, replay.ledger, LEDGER_FEE, None, got_fee, kind=GUARANTEED)

"""Payment of replays: into escrow when they are registered, out when they have ended (RP-4)."""

from collections.abc import Callable
from typing import Any

from pubsub_emulator.eventplane.ic.candid.types import Variant
from pubsub_emulator.eventplane.ic.canister import GUARANTEED, Answer, Context
from pubsub_emulator.eventplane.ic.words import shown
from pubsub_emulator.eventplane.icrc72.messages import Account, TransferArg, TransferFromArgs
from pubsub_emulator.eventplane.icrc72.orchestrator.results import err
from pubsub_emulator.eventplane.icrc72.orchestrator.state import Replay
from pubsub_emulator.eventplane.icrc72.role import RoleCanister
from pubsub_emulator.eventplane.icrc72.settings import Settings


class Escrow:
    """The money of an orchestrator's replays, in the ledgers that publications name."""

    def __init__(self, settings: Settings, role: RoleCanister) -> None:
        self.settings = settings
        self.role = role

    def pay(self, ctx: Context, replay: Replay, paid: Callable[[Context, Replay, Variant | None], None]) -> None:
        """Take the price of a replay; `paid` is told of it, or of the refusal."""
        ledger, payer = replay.ledger, replay.payer
        if ledger is None or payer is None:
            paid(ctx, replay, None)
            return
        count = replay.paid // replay.price
        terms = (
            f"perEvent={shown(replay.price)};count={count};amount={shown(replay.paid)};"
            f"currency=icrc2:{ledger.text};spender={ctx.me.text}"
        )

        def moved(ctx: Context, values: tuple[Any, ...] | None, _answer: Answer) -> None:
            done = values is not None and values[0].tag == "Ok"
            paid(ctx, replay, None if done else err("PaymentRequired", terms))

        order = TransferFromArgs(None, Account(payer), Account(ctx.me), replay.paid)
        self.role.ask(ctx, ledger, "icrc2_transfer_from", order, then=moved, kind=GUARANTEED)

    def settle(self, ctx: Context, replay: Replay, count: int) -> None:
        """Owe the publisher for `count` events and the payer the rest, and begin to pay."""
        replay.settled = True
        earned = min(replay.price * count, replay.paid)
        if replay.payer is not None:
            owed = [(replay.publisher, earned), (replay.payer, replay.paid - earned)]
            replay.owed = [each for each in owed if each[1]]
        self.transfer(ctx, replay)

    def transfer(self, ctx: Context, replay: Replay) -> None:
        """Pay what is owed, one transfer after the other; a failed one is tried again later."""
        if not replay.owed or replay.paying or ctx.now < replay.next_pay or replay.ledger is None:
            return
        to, amount = replay.owed[0]
        replay.paying = True

        def moved(ctx: Context, values: tuple[Any, ...] | None, _answer: Answer) -> None:
            replay.paying = False
            if values is not None and values[0].tag == "Ok":
                del replay.owed[0]
                self.transfer(ctx, replay)
            else:
                replay.next_pay = ctx.now + self.settings.transfer_retry

        order = TransferArg(None, Account(to), amount)
        self.role.ask(ctx, replay.ledger, "icrc1_transfer", order, then=moved, kind=GUARANTEED)

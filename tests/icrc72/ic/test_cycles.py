"""Cycles: they go with calls, and what nobody accepts comes back."""

from pubsub_emulator.icrc72.ic.candid.did import parse_types
from pubsub_emulator.icrc72.ic.candid.encode import Encoder
from pubsub_emulator.icrc72.ic.canister import Canister, Context
from pubsub_emulator.icrc72.ic.errors import Trap
from pubsub_emulator.icrc72.ic.network import CanisterNetwork
from pubsub_emulator.icrc72.ic.principal import ANONYMOUS, MANAGEMENT, Principal

OTHER = Principal(b"other")


class Purse(Canister):
    """Takes half of the cycles that come, or calls somebody with cycles."""

    def update(self, ctx: Context, method: str, arg: bytes) -> None:
        if method == "take":
            assert ctx.accept(ctx.available // 2) == ctx.available
            ctx.reply(b"")
        elif method == "trap":
            ctx.accept(ctx.available)
            raise Trap("no")
        else:
            to = MANAGEMENT if method == "deposit_cycles" else Principal(arg)
            called = method.removeprefix("call ")
            ctx.call(to, called, arg, lambda ctx, answer: ctx.reply(answer.message.encode()), cycles=100)


def test_cycles_go_with_calls_and_what_is_not_accepted_comes_back() -> None:
    network = CanisterNetwork(2)
    payer, payee = network.create(0, Purse(), cycles=250), network.create(1, Purse(), cycles=0)

    def say(method: str, arg: bytes = payee) -> str:
        ticket = network.submit(ANONYMOUS, payer, method, arg)
        network.step(12)
        assert ticket.answer is not None
        return ticket.answer.message or ticket.answer.data.decode()

    def owned() -> tuple[int, int]:
        return network.cycles(payer), network.cycles(payee)

    assert (say("call take"), owned()) == ("", (200, 50))
    assert ("IC0503" in say("call trap"), owned()) == (True, (200, 50))
    assert ("no such canister" in say("call take", OTHER), owned()) == (True, (200, 50))
    deposit = Encoder(parse_types("(record { canister_id : principal })"))
    assert (say("deposit_cycles", deposit.encode((payee,))), owned()) == ("", (100, 150))
    assert ("there is no canister" in say("deposit_cycles", deposit.encode((OTHER,))), owned()) == (True, (100, 150))
    assert (say("call take"), owned()) == ("", (50, 200))
    assert ("100 cycles cannot be sent" in say("call take"), owned()) == (True, (50, 200))

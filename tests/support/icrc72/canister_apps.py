"""Canisters that most stories of ICRC-72 need, and messages for probes."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from interchain_events.icrc72 import keys
from interchain_events.icrc72 import messages as m
from interchain_events.icrc72.client import App, Context, EventNotification, plain
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.canister import GUARANTEED
from interchain_events.icrc72.ic.errors import Trap
from interchain_events.icrc72.ic.messaging import Happening, Recorder
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.methods import REGISTER_REPLAY, TRANSFER, TRANSFER_FROM
from interchain_events.icrc72.namespaces import system_namespace
from interchain_events.icrc72.role import Core, RoleCanister
from interchain_events.icrc72.services import codec
from interchain_events.icrc72.values import Value, as_nat, class_, first, nat, of, text
from interchain_events.testing.canisters import Canisters

NAME = "org.example.a"


class Source(App):
    """Publishes numbers: the method is the namespace."""

    def on_call(self, ctx: Context, method: str, arg: bytes) -> None:
        for number in arg.split():
            self.emit(ctx, method, {"n": int(number)})
        ctx.reply(b"")


def keeping(what: Callable[[EventNotification], Any], base: type[App] = App) -> type[Any]:
    """Return an app that keeps the result of `what` for each event that it handles."""

    class Keeper(base):  # type: ignore[misc, valid-type]  # a class that is given
        def on_event(self, _ctx: Context, event: EventNotification) -> None:
            self.data.append(what(event))

    return Keeper


class Sink(App):
    """Keeps the numbers that it handled."""

    def on_event(self, _ctx: Context, event: EventNotification) -> None:
        self.data.append(plain(event.data)["n"])


class Asker(App):
    """An app that asks for replays and keeps their numbers, events, ends and refusals.

    The argument of a call is the request: `from [to [cycles]]`, where `-` stands for no limit.
    """

    def on_event(self, _ctx: Context, event: EventNotification) -> None:
        replay, end = (
            as_nat(first(event.headers, key)) for key in (keys.REPLAY_ID, keys.REPLAY_END)
        )
        self.data.append((plain(event.data)["n"], replay, end))

    def on_call(self, ctx: Context, method: str, arg: bytes) -> None:
        assert self.subscriber is not None
        start, *rest = (None if each == b"-" else int(each) for each in arg.split())
        end, cycles = (*rest, None, None)[:2]
        config = ((keys.REPLAY_ISOLATED, of(True)),) if method == "isolated" else ()
        item = m.ReplayRegistration(NAME, (start or 0, end), config)
        self.subscriber.state.ever_asked = True

        def keep_number(_ctx: Context, results: Any) -> None:
            """Keep the replay's number, or the refusal. Without results, the call was lost."""
            assert self.subscriber is not None
            if results is not None and results[0].tag == "Ok":
                state = self.subscriber.state
                state.own = {**state.own, results[0].value: None}
            elif results is not None:
                self.data.append(results[0].value)

        there = self.subscriber.orchestrator
        self.ask(
            ctx, there, REGISTER_REPLAY, (item,), keep_number, kind=GUARANTEED, cycles=cycles or 0
        )
        ctx.reply(b"")


class Lists(App):
    """A list canister: `data` has the members of each list, and whether it is silent."""

    def start(self) -> Any:
        return {"silent": False, "friends": [], "others": []}

    def update(self, ctx: Context, method: str, arg: bytes) -> None:
        if method != "icrc75_is_member":
            super().update(ctx, method, arg)
            return
        if self.data["silent"]:
            raise Trap("silent")
        (items,) = codec(method).args.decode(arg)
        ctx.reply(
            codec(method).rets.encode(
                tuple(who.value in self.data[name] for who, ((name,),) in items)
            )
        )


class Ledger(Core):
    """The part of a token ledger that payments use.

    `allowed` is the amount that others may draw from each account.
    """

    name = "ledger"

    def __init__(self, fee: int) -> None:
        self.fee, self.burnt = fee, 0
        self.balances: Counter[Principal] = Counter()
        self.allowed: Counter[Principal] = Counter()

    def updates(self) -> Any:
        return {"icrc1_transfer": self._transfer, "icrc2_transfer_from": self._transfer_from}

    def queries(self) -> Any:
        return {"icrc1_fee": lambda _caller, _time: self.fee}

    def give(self, who: Principal, amount: int, allowed: int) -> None:
        self.balances[who] += amount
        self.allowed[who] = allowed

    def total(self) -> int:
        """Return all tokens, including the fees that were taken."""
        return self.balances.total() + self.burnt

    def _move(self, source: Principal, to: m.Account, amount: int) -> Any:
        if self.balances[source] < amount + self.fee:
            return Variant("Err", Variant("InsufficientFunds", (self.balances[source],)))
        self.balances[source] -= amount + self.fee
        self.balances[to.owner] += amount
        self.burnt += self.fee
        return Variant("Ok", 1)

    def _transfer(self, ctx: Context, order: m.TransferArg) -> None:
        TRANSFER.reply(ctx, self._move(ctx.caller, order.to, order.amount))

    def _transfer_from(self, ctx: Context, order: m.TransferFromArgs) -> None:
        payer = order.source.owner
        moved: Any = Variant("Err", Variant("InsufficientAllowance", (self.allowed[payer],)))
        if self.allowed[payer] >= order.amount + self.fee:
            moved = self._move(payer, order.to, order.amount)
        if moved.tag == "Ok":
            self.allowed[payer] -= order.amount + self.fee
        TRANSFER_FROM.reply(ctx, moved)


def err(result: Any) -> Any:
    """Return the code or name of a refusal."""
    assert result.tag == "Err", result
    return result.value.value.error_code if result.value.tag == "GenericError" else result.value.tag


class Lab(Canisters):
    """Subnets with publish-subscribe, and the work of sources, readers and probes on them."""

    def source_and_sink(
        self,
        sink: type[App] = Sink,
        source: type[App] = Source,
        *,
        at: int = 1,
        rounds: int = 60,
        **config: Any,
    ) -> tuple[Principal, Principal]:
        """Install a source with this configuration of the publication, and a reader on a subnet."""
        there = self.install(source, 0, publications={NAME: config.pop("publication", {})})
        reader = self.install(sink, at, subscriptions={NAME: config})
        self.step(rounds)
        return there, reader

    def emit(
        self, who: Principal, *numbers: int, name: str = NAME, rounds: int = 1, then: int = 0
    ) -> None:
        """Let a source publish numbers, one in so many rounds, and go on for some more."""
        for number in numbers:
            self.call(who, name, b"%d" % number)
            self.step(rounds)
        self.step(then)

    def published(self, count: int, **config: Any) -> Principal:
        """Install a source and let it publish this many events, which can be replayed."""
        source = self.install(Source, 0, publications={NAME: {keys.REPLAY: True, **config}})
        self.step(60)
        self.emit(source, *range(1, count + 1), then=40)
        return source

    def asks(self, order: bytes, method: str = "ask", rounds: int = 0, **config: Any) -> Principal:
        """Install a subscriber that asks for a replay. `order` is a request of `Asker`."""
        reader = self.install(Asker, 1, subscriptions={NAME: config})
        self.step(60)
        self.call(reader, method, order)
        self.step(rounds)
        return reader

    def publish(
        self, who: Principal, *config: tuple[str, Any], name: str = NAME, memo: bytes | None = None
    ) -> Any:
        """Let a probe register a publication."""
        item = m.PublicationRegistration(
            name, tuple((key, of(value)) for key, value in config), memo
        )
        return self.answer(who, self.orchestrator, "icrc72_register_publication", (item,))[0]

    def subscribe(
        self, who: Principal, *config: tuple[str, Any], name: str = NAME, memo: bytes | None = None
    ) -> Any:
        """Let a probe register a subscription."""
        item = m.SubscriptionRegistration(
            name, tuple((key, of(value)) for key, value in config), memo
        )
        return self.answer(who, self.orchestrator, "icrc72_register_subscription", (item,))[0]

    def member(self, role: str, subnet: int = 0) -> Principal:
        """Install a probe that subscribes to the messages for members of a role."""
        probe = self.probe(subnet)
        self.subscribe(probe, name=system_namespace(role, probe))
        return probe

    def teller(self, *config: tuple[str, Any]) -> Principal:
        """Install a probe that may publish and knows its broadcaster."""
        probe = self.member("publisher")
        assert self.publish(probe, *config).tag == "Ok"
        self.confirm_all(probe)
        return probe

    def follower(self, subnet: int = 1) -> Principal:
        """Install a probe with a subscription, whose alerts are confirmed."""
        probe = self.member("subscriber", subnet)
        self.subscribe(probe)
        self.confirm_all(probe)
        return probe

    def replay(
        self,
        who: Principal,
        start: int,
        end: int | None,
        *config: tuple[str, Any],
        name: str = NAME,
    ) -> Any:
        """Let a probe ask for a replay."""
        item = m.ReplayRegistration(
            name, (start, end), tuple((key, of(value)) for key, value in config)
        )
        return self.answer(
            who, self.orchestrator, "icrc77_register_replay", (item,), kind=GUARANTEED
        )[0]

    def confirm_all(self, *probes: Principal, turns: int = 6) -> None:
        """Let probes confirm their notifications, `turns` times after six rounds each."""
        for _ in range(turns):
            self.step(6)
            for probe in probes:
                notified, self.probed(probe).notified = self.probed(probe).notified, []
                for caller in dict.fromkeys(caller for caller, _ in notified):
                    mine = tuple(
                        dict.fromkeys(
                            note.notificationId for who, note in notified if who == caller
                        )
                    )
                    self.answer(probe, caller, "icrc72_confirm_notifications", mine[:100])

    def with_ledger(self, fee: int = 0) -> tuple[Ledger, Principal, Value]:
        """Install a ledger, and return it with its principal and a price.

        The price of an event is 5 tokens of the ledger.
        """
        ledger = Ledger(fee)
        token = self.network.create(0, RoleCanister([ledger]))
        return (
            ledger,
            token,
            class_(("perEvent", nat(5)), ("currency", text(f"icrc2:{token.text}"))),
        )

    def happenings(self) -> list[Happening]:
        """Return a list to which all later occurrences are appended."""
        recorder = Recorder()
        self.network.observers.append(recorder)
        return recorder.happenings

"""Cheats of every role as named objects (IC-50, RP-14): each acts on a small stage, and the audit must name it.

A cheat says who cheats and how: a broadcaster or an app with other code, or calls that somebody makes who should not.
The stage is the same for all: two subnets with a broadcaster each, a publisher on one, listeners on both, a stranger.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from pubsub_emulator.eventplane.ic.candid.types import Variant
from pubsub_emulator.eventplane.ic.canister import BOUNDED, Context
from pubsub_emulator.eventplane.ic.errors import Trap
from pubsub_emulator.eventplane.ic.network import Network
from pubsub_emulator.eventplane.ic.principal import ANONYMOUS, Principal
from pubsub_emulator.eventplane.ic.schedule import Schedule
from pubsub_emulator.eventplane.ic.stable import decode, encode
from pubsub_emulator.eventplane.icrc72 import keys
from pubsub_emulator.eventplane.icrc72.audit import Audit, Finding
from pubsub_emulator.eventplane.icrc72.broadcaster.accept import Acceptance
from pubsub_emulator.eventplane.icrc72.broadcaster.core import Broadcaster
from pubsub_emulator.eventplane.icrc72.broadcaster.delivery import Delivery
from pubsub_emulator.eventplane.icrc72.client import App, EventNotification
from pubsub_emulator.eventplane.icrc72.deployment import Brokers, PubSub, deploy
from pubsub_emulator.eventplane.icrc72.identifiers import OWN
from pubsub_emulator.eventplane.icrc72.inbox import Inbox
from pubsub_emulator.eventplane.icrc72.messages import (
    Event,
    ReplayRegistration,
    ReplayStatusUpdate,
    SubscriptionRegistration,
)
from pubsub_emulator.eventplane.icrc72.namespaces import system_namespace
from pubsub_emulator.eventplane.icrc72.publisher import Publisher
from pubsub_emulator.eventplane.icrc72.services import codec
from pubsub_emulator.eventplane.icrc72.settings import DEFAULTS, Settings
from pubsub_emulator.eventplane.icrc72.values import array, blob, map_, nat, of

NAMESPACE: Final = "stage.events"
SAY: Final = "say"


class Actor(App):
    """An app that makes any call that it is told to make, and publishes what it is told to."""

    def on_call(self, ctx: Context, method: str, arg: bytes) -> None:
        """`say`: make a call; a namespace: publish."""
        if method == SAY:
            target, called, raw = decode(arg)
            ctx.call(target, called, raw, lambda _ctx, _answer: None, kind=BOUNDED)
        else:
            self.emit(ctx, method, {"n": int(arg)})
        ctx.reply(b"")

    def on_event(self, ctx: Context, event: EventNotification) -> None:
        """Remember the event."""
        del ctx
        self.data.append(event.eventId)


@dataclass(slots=True)
class Stage:
    """The network on which a cheat acts."""

    system: PubSub
    audit: Audit
    teller: Principal
    near: Principal
    far: Principal
    stranger: Principal

    @property
    def network(self) -> Network:
        """The network."""
        return self.system.network

    @property
    def entry(self) -> Principal:
        """The publisher's broadcaster."""
        return self.system.broadcasters[0]

    @property
    def exit(self) -> Principal:
        """The broadcaster of the far listener."""
        return self.system.broadcasters[1]

    def emit(self, count: int = 6) -> None:
        """Let the publisher make events."""
        for number in range(1, count + 1):
            self.network.submit(ANONYMOUS, self.teller, NAMESPACE, b"%d" % number)
            self.network.step()
        self.network.step(40)

    def say(self, who: Principal, to: Principal, method: str, *values: Any) -> None:
        """Let an actor call somebody."""
        self.shout(who, to, method, codec(method).args.encode(*values))

    def shout(self, who: Principal, to: Principal, method: str, raw: bytes) -> None:
        """Let an actor call somebody with any bytes."""
        self.network.submit(ANONYMOUS, who, SAY, encode((to, method, raw)))
        self.network.step(14)

    def replay(self, who: Principal, start: int, end: int | None) -> None:
        """Let a listener ask for a replay."""
        subscriber = self.system.app(who).subscriber
        if subscriber is not None:
            subscriber.state.ever_asked = True
        self.say(
            who, self.system.orchestrator, "icrc77_register_replay", (ReplayRegistration(NAMESPACE, (start, end), ()),)
        )
        self.network.step(80)

    def event(self, number: int, prev: int | None, *, headers: Any = None, source: Principal | None = None) -> Event:
        """An event of the publisher, as it pleases a cheat."""
        data = map_({"n": nat(number)})
        return Event(number, prev, self.network.time(0), NAMESPACE, data, source or self.teller, headers)


Deed = Callable[[Stage], None]
Configs = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Cheat:
    """Somebody who cheats, how, and what the audit calls it."""

    name: str
    role: str
    deed: Deed = Stage.emit
    broker: Brokers = Broadcaster
    teller: type[App] = Actor
    publication: dict[str, Any] | None = None
    far: dict[str, Any] | None = None
    settings: Settings = DEFAULTS


def run(cheat: Cheat | None, schedule: Schedule | None = None) -> list[Finding]:
    """Let a cheat act, or nobody; what the audit finds."""
    network = Network(2, schedule=schedule)
    settings = replace(DEFAULTS, subscriptions=5) if cheat is None else replace(cheat.settings, subscriptions=5)
    broker = Broadcaster if cheat is None else cheat.broker
    system = deploy(network, broadcasters=(0, 1), settings=settings, make=broker)
    audit = Audit(system.orchestrator, system.broadcasters)
    network.observers.append(audit)
    config = {keys.REPLAY: True} if cheat is None or cheat.publication is None else cheat.publication
    made = (Actor if cheat is None else cheat.teller)(
        system.orchestrator, settings, publications={NAMESPACE: config}, subscriptions={}
    )
    teller = network.create(0, made)
    far_config = {} if cheat is None or cheat.far is None else cheat.far
    near = network.create(0, Actor(system.orchestrator, settings, subscriptions={NAMESPACE: {}}, publications={}))
    far = network.create(
        1, Actor(system.orchestrator, settings, subscriptions={NAMESPACE: far_config}, publications={})
    )
    stranger = network.create(1, Actor(system.orchestrator, settings, publications={}, subscriptions={}))
    stage = Stage(system, audit, teller, near, far, stranger)
    network.step(90)
    (Stage.emit if cheat is None else cheat.deed)(stage)
    network.step(160)
    return judged(stage)


def judged(stage: Stage) -> list[Finding]:
    """What the audit says at the end."""
    logs: dict[Principal, dict[tuple[str, int], Event]] = {}
    alive = stage.network.running()
    for who in alive:
        canister = stage.network.canister(who)
        if isinstance(canister, App) and canister.publisher is not None:
            rows = canister.publisher.state.log
            logs[who] = {(row.event.namespace, row.event.eventId): row.event for row in rows}
    return stage.audit.finish(logs, alive)


# Broadcasters


def _delivering(change: Callable[[Any, EventNotification], EventNotification]) -> Brokers:
    """A broadcaster that changes what it sends to subscribers."""

    class Changed(Delivery):
        def _notification(self, note: Any) -> EventNotification:
            made = super()._notification(note)
            return made if made.namespace.startswith("icrc72:") else change(self, made)

    class Cheating(Broadcaster):
        def _wire(self) -> None:
            super()._wire()
            self.delivery = Changed(self.state, self.settings, self.role)
            self.acceptance = Acceptance(self.state, self.settings, self.delivery, self.orchestrator)
            self.publish = self.acceptance.publish

    return Cheating


def _accepting(name: str, change: Callable[..., Any]) -> Brokers:
    """A broadcaster that accepts, passes or hands on in its own way: `change` takes the place of a method."""
    Changed = type("Changed", (Acceptance,), {name: change})  # noqa: N806 — a class

    class Cheating(Broadcaster):
        def _wire(self) -> None:
            super()._wire()
            self.acceptance = Changed(self.state, self.settings, self.delivery, self.orchestrator)
            self.publish = self.acceptance.publish

    return Cheating


def _drops(self: Any, ctx: Context, number: int, event: Event, *rest: Any, **more: Any) -> list[int]:
    return [] if event.eventId == 3 else list(Acceptance._notify(self, ctx, number, event, *rest, **more))  # noqa: SLF001


def _forgets(self: Any, *rest: Any, **more: Any) -> Variant:
    del self, rest, more
    return Variant("Ok", ())


def _everything(self: Any, event: Event, filter_: Any, skip: Any) -> bool:
    return bool(Acceptance._passes(self, event, filter_ if self.state.last_event < 0 else None, skip))  # noqa: SLF001


def _no_skip(self: Any, event: Event, filter_: Any, skip: Any) -> bool:
    del skip
    return bool(Acceptance._passes(self, event, filter_, None))  # noqa: SLF001


def _no_relay(self: Any, number: int, event: Event, key: Any) -> None:
    if event.eventId != 3:
        Acceptance._relay(self, number, event, key)  # noqa: SLF001


def _to_all(  # noqa: PLR0917 — takes the place of a method
    self: Any, ctx: Context, event: Event, replay: int, delivered: Any, full: Any
) -> Variant:
    for who in list(self.state.subscribers.get(event.namespace, ())):
        if who != delivered.subscriber:
            number = self._store(event, own=False)
            note = self._note(ctx, number, event, (0, 0, who, None), 1, 1)
            note.replay = replay
            self.delivery.add(ctx, who, note)
    return Acceptance._deliver(self, ctx, event, replay, delivered, full)  # noqa: SLF001


def _no_replay(  # noqa: PLR0917 — takes the place of a method
    self: Any, ctx: Context, event: Event, replay: int, delivered: Any, full: Any
) -> Variant:
    del ctx, event, replay, delivered, full
    return Variant("Ok", (self.delivery.role.next_notification(),))


def _altered(_self: Any, note: EventNotification) -> EventNotification:
    return note._replace(data=map_({"n": nat(666)}))


def _invented(_self: Any, note: EventNotification) -> EventNotification:
    return note._replace(eventId=note.eventId + 1000)


def _headless(_self: Any, note: EventNotification) -> EventNotification:
    return note._replace(headers=tuple(reversed(note.headers or ())))


class _Twice(Delivery):
    def _send_new(self, ctx: Context, spot: Any, left: int) -> int:
        sent = super()._send_new(ctx, spot, left)
        window = self._window(spot)
        for note in [] if window is None else list(window.out.values()):
            if not note.namespace.startswith("icrc72:"):
                again = self._notification(note)._replace(notificationId=self.role.next_notification())
                raw = codec("icrc72_handle_notification").args.encode((again,))
                self.role.send(ctx, spot[0], "icrc72_handle_notification", raw)
        return sent


class _Backwards(Delivery):
    def _send_new(self, ctx: Context, spot: Any, left: int) -> int:
        window = self._window(spot)
        if window is not None and window.queue and window.queue[0].stored:
            window.queue.reverse()
        return super()._send_new(ctx, spot, left)


def _burst(stage: Stage) -> None:
    """Many events in one round."""
    for number in range(1, 7):
        stage.network.submit(ANONYMOUS, stage.teller, NAMESPACE, b"%d" % number)
    stage.network.step(60)


def _with(delivery: type[Delivery]) -> Brokers:
    class Cheating(Broadcaster):
        def _wire(self) -> None:
            super()._wire()
            self.delivery = delivery(self.state, self.settings, self.role)
            self.acceptance = Acceptance(self.state, self.settings, self.delivery, self.orchestrator)
            self.publish = self.acceptance.publish

    return Cheating


def _favours(_self: Any, note: EventNotification) -> EventNotification:
    """Everybody is told to be first but those who are."""
    headers = []
    for name, value in note.headers or ():
        place = value.value[0].value if name == keys.PRIORITY else 0
        headers.append((name, array([nat(3 - place), nat(2)])) if place else (name, value))
    return note._replace(headers=tuple(headers))


def _favoured(stage: Stage) -> None:
    """A publication with priorities, and two listeners at one broadcaster."""
    name = "stage.ranked"
    made = [
        stage.network.create(
            1, Actor(stage.system.orchestrator, stage.system.settings, subscriptions={name: {}}, publications={})
        )
        for _ in range(2)
    ]
    ranks = [[bytes(who), rank] for who, rank in zip(made, (1, 9), strict=True)]
    config = {keys.MODE: "priority", keys.PRIORITIES: ranks}
    teller = stage.network.create(
        1, Actor(stage.system.orchestrator, stage.system.settings, publications={name: config}, subscriptions={})
    )
    stage.network.step(90)
    stage.network.submit(ANONYMOUS, teller, name, b"1")
    stage.network.step(40)


def _forge(stage: Stage) -> None:
    data = map_({keys.EXIT_REMOVE: array([array([nat(1), blob(stage.exit)])])})
    broadcaster = stage.network.canister(stage.exit)
    name = system_namespace("subscriber", stage.far)
    note = EventNotification(9999, 9999, None, 1, name, data, None, stage.system.orchestrator, None)
    _as(stage, broadcaster, stage.far, "icrc72_handle_notification", (note,))


def _as(stage: Stage, canister: Any, to: Principal, method: str, *values: Any) -> None:
    """Let a role canister make a call that its code does not make."""
    raw = codec(method).args.encode(*values)
    honest = canister.update

    def update(ctx: Context, called: str, arg: bytes) -> None:
        if called == SAY:
            ctx.call(to, method, raw, lambda _ctx, _answer: None, kind=BOUNDED)
            ctx.reply(b"")
        else:
            honest(ctx, called, arg)

    canister.update = update
    stage.network.submit(ANONYMOUS, canister.me, SAY, b"")
    stage.network.step(30)


def _relays(change: Callable[[Stage, Event], Event]) -> Deed:
    def deed(stage: Stage) -> None:
        stage.emit(2)
        event = stage.event(3, 2)
        _as(stage, stage.network.canister(stage.entry), stage.exit, "icrc72_publish", (change(stage, event),))

    return deed


# Publishers, subscribers, strangers: calls that they should not make


def _brings(make: Callable[[Stage], Event], *, warm: int = 3) -> Deed:
    def deed(stage: Stage) -> None:
        if warm:
            stage.emit(warm)
        stage.say(stage.teller, stage.entry, "icrc72_publish", (make(stage),))

    return deed


def _early(stage: Stage) -> None:
    event = stage.event(1, None, source=stage.stranger)
    stage.say(stage.stranger, stage.exit, "icrc72_publish", (event,))


def _confirms(stage: Stage) -> None:
    stage.network.stop(stage.far)
    stage.network.step(2)
    stage.emit(3)
    numbers = tuple(stage.system.broadcaster(stage.exit).state.pending)
    stage.say(stage.stranger, stage.exit, "icrc72_confirm_notifications", numbers)
    stage.network.start(stage.far)


def _floods(stage: Stage) -> None:
    items = tuple(SubscriptionRegistration(f"flood.n{at}", ()) for at in range(9))
    stage.say(stage.stranger, stage.system.orchestrator, "icrc72_register_subscription", items)


def _fakes(role: str) -> Deed:
    def deed(stage: Stage) -> None:
        target = stage.exit if role == "broadcaster" else stage.far
        name = system_namespace("broadcaster", stage.exit) if role == "broadcaster" else NAMESPACE
        note = EventNotification(1, 1, None, 1, name, map_({}), None, stage.stranger, None)
        stage.say(stage.stranger, target, "icrc72_handle_notification", (note,))

    return deed


def _bombs(stage: Stage) -> None:
    stage.shout(stage.stranger, stage.exit, "icrc72_publish", bytes.fromhex("4449444c016d7f01008094ebdc03"))


class _Traps(Actor):
    def on_event(self, ctx: Context, event: EventNotification) -> None:
        del ctx, event
        raise Trap("always")


def _traps(stage: Stage) -> None:
    app = _Traps(stage.system.orchestrator, stage.system.settings, subscriptions={NAMESPACE: {}}, publications={})
    stage.network.create(1, app)
    stage.network.step(60)
    stage.emit(3)


class _Mute(Actor):
    """A subscriber that takes everything and confirms nothing."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.inbox.__class__ = _MuteInbox


class _MuteInbox(Inbox):
    def _confirm(self, ctx: Context) -> None:
        del ctx
        self.state.confirm.clear()


class _Withholding(Actor):
    """A subscriber that never answers a trusted batch: it waits for itself for ever."""

    def update(self, ctx: Context, method: str, arg: bytes) -> None:
        if method in {"icrc72_handle_notification_trusted", "for ever"}:
            ctx.call(ctx.me, "for ever", b"")
        else:
            super().update(ctx, method, arg)


def _withholds(stage: Stage) -> None:
    app = _Withholding(stage.system.orchestrator, stage.system.settings, subscriptions={NAMESPACE: {}}, publications={})
    stage.network.create(1, app)
    stage.network.step(60)
    stage.emit(3)
    stage.network.step(150)


def _never_confirms(stage: Stage) -> None:
    app = _Mute(stage.system.orchestrator, stage.system.settings, subscriptions={NAMESPACE: {}}, publications={})
    stage.network.create(1, app)
    stage.network.step(60)
    stage.emit(3)
    stage.network.step(300)


# Replays


def _crowd(stage: Stage) -> None:
    """A second listener at the exit."""
    app = Actor(stage.system.orchestrator, stage.system.settings, subscriptions={NAMESPACE: {}}, publications={})
    stage.network.create(1, app)
    stage.network.step(60)
    _replays(stage)


def _silence(stage: Stage) -> None:
    _replays(stage)
    stage.network.step(250)


def _mute(self: Any, ctx: Context, number: int, each: Any) -> None:
    del self, ctx, number
    each.report = 1 << 60


def _replays(stage: Stage) -> None:
    stage.emit(8)
    stage.replay(stage.far, 2, 7)


def _telling(**changes: Callable[..., Any]) -> type[App]:
    """A publisher whose replays are other than they should be."""
    Cheating = type("Cheating", (Publisher,), changes)  # noqa: N806 — a class

    class Liar(Actor):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            if self.publisher is not None:
                self.publisher.__class__ = Cheating

    return Liar


def _marked(change: Callable[[Event], Event]) -> Callable[..., Event]:
    return staticmethod(lambda event, number, each: change(Publisher._marked(event, number, each)))  # noqa: SLF001


def _bad_hash(event: Event) -> Event:
    headers = tuple(each for each in event.headers or () if each[0] != keys.HASH)
    return event._replace(data=map_({"n": nat(666)}), headers=headers)


def _new_id(event: Event) -> Event:
    return event._replace(eventId=event.eventId * 1000) if event.eventId == 6 else event


def _fewer(self: Any, each: Any) -> list[int]:
    return [row for row in Publisher._rows(self, each) if self.state.log[row].event.eventId != 4]  # noqa: SLF001


def _more(self: Any, ctx: Context, number: int, each: Any) -> None:
    if each.state == "completed":
        each.count = max(each.count, 99)
    Publisher._report(self, ctx, number, each)  # noqa: SLF001


def _again(self: Any, ctx: Context, number: int, each: Any) -> None:
    """When it is done, it begins once more."""
    if each.state == "completed" and not each.text:
        each.state, each.text, each.place, each.count = "running", "twice", each.start, 0
    Publisher._report(self, ctx, number, each)  # noqa: SLF001


def _unasked(stage: Stage) -> None:
    stage.emit(3)
    headers = ((keys.REPLAYED, of(True)), (keys.REPLAY_ID, nat(77)))
    stage.say(stage.teller, stage.entry, "icrc72_publish", (stage.event(2, 1, headers=headers),))


def _rewrites(stage: Stage) -> None:
    stage.emit(8)
    publisher = stage.system.app(stage.teller).publisher
    if publisher is not None:
        row = publisher.state.log[4]
        old = row.event
        row.event = old._replace(data=map_({"n": nat(666)}))
        stage.replay(stage.far, 2, 7)
        row.event = old


def _asks_for_all(stage: Stage) -> None:
    stage.emit(3)
    stage.replay(stage.far, 1, 1_000_000)


def _pays_nothing(stage: Stage) -> None:
    stage.emit(3)
    stage.replay(stage.far, 1, 3)


def _cancels(stage: Stage) -> None:
    stage.emit(8)
    stage.replay(stage.far, 2, 7)
    stage.say(stage.stranger, stage.system.orchestrator, "icrc77_cancel_replay", (1,))


def _reports(stage: Stage) -> None:
    stage.emit(8)
    stage.replay(stage.far, 2, 7)
    update = ReplayStatusUpdate(1, Variant("completed", 5))
    stage.say(stage.stranger, stage.system.orchestrator, "icrc77_replay_status", (update,))


def _priced() -> dict[str, Any]:
    inside = (("perEvent", nat(5), True), ("currency", of("icrc2:aaaaa-aa"), True))
    return {keys.REPLAY: True, keys.PRICING: Variant("Class", inside)}


def _other_headers(*more: tuple[str, Variant]) -> Callable[[Stage], Event]:
    return lambda stage: stage.event(4, 3, headers=more)


CHEATS: Final = (
    Cheat("Drops", "broadcaster", broker=_accepting("_notify", _drops)),
    Cheat("Reorders", "broadcaster", _burst, broker=_with(_Backwards)),
    Cheat("AcceptsAndForgets", "broadcaster", broker=_accepting("_hand_on", _forgets)),
    Cheat("Invents", "broadcaster", broker=_delivering(_invented)),
    Cheat("AltersHeaders", "broadcaster", broker=_delivering(_headless)),
    Cheat("AltersData", "broadcaster", broker=_delivering(_altered)),
    Cheat("Repeats", "broadcaster", broker=_with(_Twice)),
    Cheat("IgnoresFilter", "broadcaster", broker=_accepting("_passes", _everything), far={keys.FILTER: "n > 3"}),
    Cheat("IgnoresSkip", "broadcaster", broker=_accepting("_passes", _no_skip), far={keys.SKIP: [2, 0]}),
    Cheat("FavoursOne", "broadcaster", _favoured, broker=_delivering(_favours)),
    Cheat("ForgesSystemEvent", "broadcaster", _forge),
    Cheat("RelayDrops", "relay", broker=_accepting("_relay", _no_relay)),
    Cheat(
        "RelaysTwice",
        "relay",
        _relays(lambda s, e: e._replace(headers=((keys.BROADCASTER, blob(s.entry)), (keys.RELAY, blob(s.entry))))),
    ),
    Cheat(
        "RelaysInLoop",
        "relay",
        _relays(lambda s, e: e._replace(headers=((keys.BROADCASTER, blob(s.exit)), (keys.RELAY, blob(s.entry))))),
    ),
    Cheat("RelaysForeign", "relay", _relays(lambda s, e: e._replace(headers=((keys.BROADCASTER, blob(s.far)),)))),
    Cheat("PublishesEarly", "publisher", _early),
    Cheat("ForgesSource", "publisher", _brings(lambda stage: stage.event(4, 3, source=stage.near))),
    Cheat("PlantsHeaders", "publisher", _brings(_other_headers((keys.BROADCASTER, blob(b"x"))))),
    Cheat("UsesForeignIds", "publisher", _brings(lambda stage: stage.event(OWN * 5 + 1, 3))),
    Cheat("Equivocates", "publisher", _brings(lambda s: s.event(2, 1)._replace(data=map_({"n": nat(9)})))),
    Cheat("BreaksChain", "publisher", _brings(lambda stage: stage.event(9, 7))),
    Cheat("ConfirmsOthers", "subscriber", _confirms),
    Cheat("AlwaysTraps", "subscriber", _traps),
    Cheat("Floods", "subscriber", _floods),
    Cheat("FakeBroadcaster", "outsider", _fakes("subscriber")),
    Cheat("FakeOrchestrator", "outsider", _fakes("broadcaster")),
    Cheat("Bombs", "outsider", _bombs),
    Cheat("ReplaysAltered", "publisher", _replays, teller=_telling(_marked=_marked(_bad_hash))),
    Cheat("ReplaysInvented", "publisher", _replays, teller=_telling(_marked=_marked(_new_id))),
    Cheat("SkipsInReplay", "publisher", _replays, teller=_telling(_rows=_fewer)),
    Cheat("Overcharges", "publisher", _replays, teller=_telling(_report=_more)),
    Cheat("ReplaysTwice", "publisher", _replays, teller=_telling(_report=_again)),
    Cheat("ReplaysUnasked", "publisher", _unasked),
    Cheat("Rewrites", "archive", _rewrites),
    Cheat("ReplaysToAll", "broadcaster", _crowd, broker=_accepting("_deliver", _to_all)),
    Cheat("DropsReplay", "broadcaster", _replays, broker=_accepting("_deliver", _no_replay)),
    Cheat("NeverReports", "publisher", _silence, teller=_telling(_report=_mute)),
    Cheat("NeverConfirms", "subscriber", _never_confirms),
    Cheat("WithholdsReply", "subscriber", _withholds, publication={keys.TRUSTED: True}),
    Cheat("AsksForAll", "subscriber", _asks_for_all),
    Cheat("PaysNothing", "subscriber", _pays_nothing, publication=_priced()),
    Cheat("CancelsOthers", "subscriber", _cancels),
    Cheat("ReportsForAnother", "outsider", _reports),
)
"""Every cheat that the audit must name."""

__all__ = ["CHEATS", "Cheat", "Stage", "run"]

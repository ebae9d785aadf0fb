"""Broadcasters and relays that cheat."""

from collections.abc import Callable
from typing import Any, Final

from pubsub_emulator.eventplane.ic.candid.types import Variant
from pubsub_emulator.eventplane.ic.canister import BOUNDED, Context
from pubsub_emulator.eventplane.ic.principal import ANONYMOUS, Principal
from pubsub_emulator.eventplane.icrc72 import keys
from pubsub_emulator.eventplane.icrc72.broadcaster.accept import Acceptance
from pubsub_emulator.eventplane.icrc72.broadcaster.core import Broadcaster
from pubsub_emulator.eventplane.icrc72.broadcaster.delivery import Delivery
from pubsub_emulator.eventplane.icrc72.cheats.stage import NAMESPACE, SAY, Actor, Cheat, Deed, Stage
from pubsub_emulator.eventplane.icrc72.client import EventNotification
from pubsub_emulator.eventplane.icrc72.deployment import Brokers
from pubsub_emulator.eventplane.icrc72.messages import Event
from pubsub_emulator.eventplane.icrc72.namespaces import system_namespace
from pubsub_emulator.eventplane.icrc72.services import codec
from pubsub_emulator.eventplane.icrc72.values import array, blob, map_, nat


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


def accepting(name: str, change: Callable[..., Any]) -> Brokers:
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


CHEATS: Final = (
    Cheat("Drops", "broadcaster", broker=accepting("_notify", _drops)),
    Cheat("Reorders", "broadcaster", _burst, broker=_with(_Backwards)),
    Cheat("AcceptsAndForgets", "broadcaster", broker=accepting("_hand_on", _forgets)),
    Cheat("Invents", "broadcaster", broker=_delivering(_invented)),
    Cheat("AltersHeaders", "broadcaster", broker=_delivering(_headless)),
    Cheat("AltersData", "broadcaster", broker=_delivering(_altered)),
    Cheat("Repeats", "broadcaster", broker=_with(_Twice)),
    Cheat("IgnoresFilter", "broadcaster", broker=accepting("_passes", _everything), far={keys.FILTER: "n > 3"}),
    Cheat("IgnoresSkip", "broadcaster", broker=accepting("_passes", _no_skip), far={keys.SKIP: [2, 0]}),
    Cheat("FavoursOne", "broadcaster", _favoured, broker=_delivering(_favours)),
    Cheat("ForgesSystemEvent", "broadcaster", _forge),
    Cheat("RelayDrops", "relay", broker=accepting("_relay", _no_relay)),
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
)

__all__ = ["CHEATS", "accepting"]

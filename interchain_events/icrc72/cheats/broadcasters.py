"""Broadcasters and relays that cheat (IC-50).

Each class overrides one method of a part of the honest broadcaster. The names in `CHEATS` describe
the cheats.
"""

from collections.abc import Callable
from typing import Final

from interchain_events.icrc72 import keys
from interchain_events.icrc72.broadcaster.accept import AGAIN, Acceptance, Answer, Arrival
from interchain_events.icrc72.broadcaster.core import Broadcaster
from interchain_events.icrc72.broadcaster.delivery import Delivery, Spot
from interchain_events.icrc72.broadcaster.state import ChainKey, Note, PublicationView
from interchain_events.icrc72.cheats.stage import NAMESPACE, SAY, Cheat, Deed, Stage
from interchain_events.icrc72.client import EventNotification
from interchain_events.icrc72.deployment import Brokers
from interchain_events.icrc72.headers import read
from interchain_events.icrc72.ic.canister import BOUNDED, ONE_WAY, Context
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.messages import Event
from interchain_events.icrc72.methods import HANDLE, PUBLISH, A, Method, R
from interchain_events.icrc72.namespaces import system_namespace
from interchain_events.icrc72.values import Pairs, Skip, array, blob, map_, nat


def cheating(
    acceptance: type[Acceptance] = Acceptance, delivery: type[Delivery] = Delivery
) -> Brokers:
    """Return a broadcaster whose parts for acceptance or delivery are replaced."""

    class Cheating(Broadcaster):
        accepts = acceptance
        delivers = delivery

    return Cheating


class _Drops(Acceptance):
    def _notify(
        self, arrival: Arrival, number: int, key: ChainKey, view: PublicationView, *, begins: bool
    ) -> list[int]:
        if arrival.event.eventId == 3:
            return []
        return super()._notify(arrival, number, key, view, begins=begins)


class _Forgets(Acceptance):
    def _hand_on(
        self, arrival: Arrival, key: ChainKey, view: PublicationView, *, begins: bool
    ) -> Answer:
        del arrival, key, view, begins
        return AGAIN


class _Everything(Acceptance):
    def _passes(self, event: Event, _filter: str | None, skip: Skip | None) -> bool:
        return super()._passes(event, None, skip)


class _NoSkip(Acceptance):
    def _passes(self, event: Event, filter_: str | None, _skip: Skip | None) -> bool:
        return super()._passes(event, filter_, None)


class _NoRelay(Acceptance):
    def _relay(self, number: int, event: Event, key: ChainKey) -> None:
        if event.eventId != 3:
            super()._relay(number, event, key)


def _delivering(change: Callable[[EventNotification], EventNotification]) -> Brokers:
    """Return a broadcaster that changes each notification of an event."""

    class Changed(Delivery):
        def _notification(self, note: Note) -> EventNotification:
            honest = super()._notification(note)
            return honest if honest.namespace.startswith("icrc72:") else change(honest)

    return cheating(delivery=Changed)


class _Twice(Delivery):
    def _send_new(self, ctx: Context, spot: Spot, left: int) -> int:
        sent = super()._send_new(ctx, spot, left)
        window = self._window(spot)
        notes = [] if window is None else list(window.out.values())
        for note in notes:
            if not note.namespace.startswith("icrc72:"):
                again = self._notification(note)._replace(
                    notificationId=self.role.next_notification()
                )
                self.role.ask(ctx, spot.subscriber, HANDLE, (again,), kind=ONE_WAY)
        return sent


class _Backwards(Delivery):
    def _send_new(self, ctx: Context, spot: Spot, left: int) -> int:
        window = self._window(spot)
        if window is not None and window.queue and window.queue[0].stored:
            window.queue.reverse()
        return super()._send_new(ctx, spot, left)


def _burst(stage: Stage) -> None:
    """Publish several events in one round, so that a batch can be reordered."""
    stage.tell(stage.teller, NAMESPACE, range(1, 7), rounds=0)
    stage.network.step(60)


def _favours(note: EventNotification) -> EventNotification:
    """Exchange the positions of two subscribers in the priority header."""
    (place, _) = read(note.headers).priority
    # The other one of the positions 1 and 2.
    exchanged = 3 if place is None else 3 - place
    header = (keys.PRIORITY, array([nat(exchanged), nat(2)]))
    return note._replace(
        headers=tuple(
            header if key == keys.PRIORITY else (key, value) for key, value in note.headers or ()
        )
    )


def _favoured(stage: Stage) -> None:
    """Publish an event to two subscribers of different rank."""
    name = "stage.ranked"
    low = stage.actor(1, None, {name: {}})
    high = stage.actor(1, None, {name: {}})
    ranks = [[bytes(low), 1], [bytes(high), 9]]
    teller = stage.actor(1, {name: {keys.MODE: "priority", keys.PRIORITIES: ranks}})
    stage.network.step(90)
    stage.tell(teller, name, [1], 40)


def _forge(stage: Stage) -> None:
    """Let a broadcaster forge a system event of the orchestrator to the far subscriber."""
    data = map_({keys.EXIT_REMOVE: array([array([nat(1), blob(stage.exit)])])})
    name = system_namespace("subscriber", stage.far)
    note = EventNotification(
        9999,
        9999,
        None,
        timestamp=1,
        namespace=name,
        data=data,
        headers=None,
        source=stage.system.orchestrator,
        filter=None,
    )
    _as(stage, stage.exit, stage.far, HANDLE, (note,))


def _as(stage: Stage, who: Principal, to: Principal, method: Method[A, R], value: A) -> None:
    """Let a canister that is not an actor make a call, by patching its `update`."""
    canister = stage.network.canister(who)
    raw = method.argument(value)
    honest = canister.update

    def update(ctx: Context, called: str, arg: bytes) -> None:
        if called == SAY:
            ctx.call(to, method.name, raw, lambda _ctx, _answer: None, kind=BOUNDED)
            ctx.reply(b"")
        else:
            honest(ctx, called, arg)

    canister.update = update  # type: ignore[method-assign, assignment]  # this one canister cheats
    stage.network.submit(ANONYMOUS, who, SAY, b"")
    stage.network.step(30)


def _relays(headers: Callable[[Stage], Pairs]) -> Deed:
    """Return a deed in which the entry relays an event with these headers to the exit."""

    def deed(stage: Stage) -> None:
        stage.emit(2)
        event = stage.event(stage.teller, 3, 2, headers=headers(stage))
        _as(stage, stage.entry, stage.exit, PUBLISH, (event,))

    return deed


CHEATS: Final = (
    Cheat("Drops", "broadcaster", broker=cheating(_Drops)),
    Cheat("Reorders", "broadcaster", _burst, broker=cheating(delivery=_Backwards)),
    Cheat("AcceptsAndForgets", "broadcaster", broker=cheating(_Forgets)),
    Cheat(
        "Invents",
        "broadcaster",
        broker=_delivering(lambda note: note._replace(eventId=note.eventId + 1000)),
    ),
    Cheat(
        "AltersHeaders",
        "broadcaster",
        broker=_delivering(lambda n: n._replace(headers=(n.headers or ())[::-1])),
    ),
    Cheat(
        "AltersData",
        "broadcaster",
        broker=_delivering(lambda note: note._replace(data=map_({"n": nat(666)}))),
    ),
    Cheat("Repeats", "broadcaster", broker=cheating(delivery=_Twice)),
    Cheat("IgnoresFilter", "broadcaster", broker=cheating(_Everything), far={keys.FILTER: "n > 3"}),
    Cheat("IgnoresSkip", "broadcaster", broker=cheating(_NoSkip), far={keys.SKIP: [2, 0]}),
    Cheat("FavoursOne", "broadcaster", _favoured, broker=_delivering(_favours)),
    Cheat("ForgesSystemEvent", "broadcaster", _forge),
    Cheat("RelayDrops", "relay", broker=cheating(_NoRelay)),
    Cheat(
        "RelaysTwice",
        "relay",
        _relays(lambda s: ((keys.BROADCASTER, blob(s.entry)), (keys.RELAY, blob(s.entry)))),
    ),
    Cheat(
        "RelaysInLoop",
        "relay",
        _relays(lambda s: ((keys.BROADCASTER, blob(s.exit)), (keys.RELAY, blob(s.entry)))),
    ),
    Cheat("RelaysForeign", "relay", _relays(lambda s: ((keys.BROADCASTER, blob(s.far)),))),
)

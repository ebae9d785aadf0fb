"""Cheats in replays (RP-14)."""

from collections.abc import Callable
from typing import Any, Final

from pubsub_emulator.eventplane.ic.candid.types import Variant
from pubsub_emulator.eventplane.ic.canister import Context
from pubsub_emulator.eventplane.ic.principal import ANONYMOUS, Principal
from pubsub_emulator.eventplane.icrc72 import keys
from pubsub_emulator.eventplane.icrc72.archive import Archive
from pubsub_emulator.eventplane.icrc72.broadcaster.accept import Acceptance
from pubsub_emulator.eventplane.icrc72.cheats.broadcasters import accepting
from pubsub_emulator.eventplane.icrc72.cheats.stage import NAMESPACE, Actor, Cheat, Stage
from pubsub_emulator.eventplane.icrc72.client import App
from pubsub_emulator.eventplane.icrc72.messages import Event, ReplayRegistration, ReplayStatusUpdate
from pubsub_emulator.eventplane.icrc72.publisher.replays import Replays
from pubsub_emulator.eventplane.icrc72.role import RoleCanister
from pubsub_emulator.eventplane.icrc72.values import map_, nat, of
from pubsub_emulator.eventplane.log.memory import MemoryStore


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
    Cheating = type("Cheating", (Replays,), changes)  # noqa: N806 — a class

    class Liar(Actor):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            if self.publisher is not None:
                self.publisher.replays.__class__ = Cheating

    return Liar


def _marked(change: Callable[[Event], Event]) -> Callable[..., Event]:
    return staticmethod(lambda event, number, each: change(Replays._marked(event, number, each)))  # noqa: SLF001


def _bad_hash(event: Event) -> Event:
    headers = tuple(each for each in event.headers or () if each[0] != keys.HASH)
    return event._replace(data=map_({"n": nat(666)}), headers=headers)


def _new_id(event: Event) -> Event:
    return event._replace(eventId=event.eventId * 1000) if event.eventId == 6 else event


def _fewer(self: Any, each: Any) -> list[int]:
    return [row for row in Replays._rows(self, each) if self.publisher.state.log[row].event.eventId != 4]  # noqa: SLF001


def _more(self: Any, ctx: Context, number: int, each: Any) -> None:
    if each.state == "completed":
        each.count = max(each.count, 99)
    Replays._report(self, ctx, number, each)  # noqa: SLF001


def _again(self: Any, ctx: Context, number: int, each: Any) -> None:
    """When it is done, it begins once more."""
    if each.state == "completed" and not each.text:
        each.state, each.text, each.place, each.count = "running", "twice", each.start, 0
    Replays._report(self, ctx, number, each)  # noqa: SLF001


def _unasked(stage: Stage) -> None:
    stage.emit(3)
    headers = ((keys.REPLAYED, of(True)), (keys.REPLAY_ID, nat(77)))
    stage.say(stage.teller, stage.entry, "icrc72_publish", (stage.event(2, 1, headers=headers),))


class _Rewriting(Archive):
    def _page(self, caller: Principal, time: int, asked: Any) -> tuple[Event, ...]:
        found = super()._page(caller, time, asked)
        return tuple(each._replace(data=map_({"n": nat(666)})) if each.eventId == 5 else each for each in found)


def _rewrites(stage: Stage) -> None:
    """A publisher with an archive, which hands over other data than it got."""
    name, network, system = "stage.kept", stage.network, stage.system
    archive = _Rewriting(MemoryStore(name))
    where = network.create(0, RoleCanister([archive]))
    config = {name: {keys.REPLAY: True}}
    made = Actor(system.orchestrator, system.settings, publications=config, subscriptions={}, archive=where, keep=0)
    teller = archive.writer = network.create(0, made)
    listens = Actor(system.orchestrator, system.settings, publications={}, subscriptions={name: {}})
    listener = network.create(1, listens)
    network.step(90)
    for number in range(1, 9):
        network.submit(ANONYMOUS, teller, name, b"%d" % number)
        network.step(3)
    network.step(40)
    item = ReplayRegistration(name, (2, 8), ())
    stage.say(listener, system.orchestrator, "icrc77_register_replay", (item,))
    network.step(80)


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


CHEATS: Final = (
    Cheat("ReplaysAltered", "publisher", _replays, teller=_telling(_marked=_marked(_bad_hash))),
    Cheat("ReplaysInvented", "publisher", _replays, teller=_telling(_marked=_marked(_new_id))),
    Cheat("SkipsInReplay", "publisher", _replays, teller=_telling(_rows=_fewer)),
    Cheat("Overcharges", "publisher", _replays, teller=_telling(_report=_more)),
    Cheat("ReplaysTwice", "publisher", _replays, teller=_telling(_report=_again)),
    Cheat("ReplaysUnasked", "publisher", _unasked),
    Cheat("Rewrites", "archive", _rewrites),
    Cheat("ReplaysToAll", "broadcaster", _crowd, broker=accepting("_deliver", _to_all)),
    Cheat("DropsReplay", "broadcaster", _replays, broker=accepting("_deliver", _no_replay)),
    Cheat("NeverReports", "publisher", _silence, teller=_telling(_report=_mute)),
    Cheat("AsksForAll", "subscriber", _asks_for_all),
    Cheat("PaysNothing", "subscriber", _pays_nothing, publication=_priced()),
    Cheat("CancelsOthers", "subscriber", _cancels),
    Cheat("ReportsForAnother", "outsider", _reports),
)

__all__ = ["CHEATS"]

"""Cheats in replays (RP-14)."""

from collections.abc import Mapping
from typing import Final

from pubsub_emulator.events.log.memory import MemoryStore
from pubsub_emulator.icrc72 import keys
from pubsub_emulator.icrc72.archive import Archive
from pubsub_emulator.icrc72.broadcaster.accept import Acceptance, Answer, Full
from pubsub_emulator.icrc72.broadcaster.state import Delivered
from pubsub_emulator.icrc72.cheats.broadcasters import cheating
from pubsub_emulator.icrc72.cheats.stage import NAMESPACE, Actor, Cheat, Stage
from pubsub_emulator.icrc72.client import App, Config
from pubsub_emulator.icrc72.headers import Headers
from pubsub_emulator.icrc72.ic.canister import Context
from pubsub_emulator.icrc72.ic.principal import ANONYMOUS, Principal
from pubsub_emulator.icrc72.messages import Event, ReplayRegistration, ReplayStatusUpdate, state_of
from pubsub_emulator.icrc72.publisher.replays import Replays
from pubsub_emulator.icrc72.publisher.state import Replaying
from pubsub_emulator.icrc72.results import ok
from pubsub_emulator.icrc72.role import RoleCanister
from pubsub_emulator.icrc72.settings import DEFAULTS, Settings
from pubsub_emulator.icrc72.values import class_, map_, nat, of, text


def _crowd(stage: Stage) -> None:
    """A second listener at the exit."""
    app = Actor(stage.system.orchestrator, stage.system.settings, subscriptions={NAMESPACE: {}}, publications={})
    stage.network.create(1, app)
    stage.network.step(60)
    _replays(stage)


def _silence(stage: Stage) -> None:
    _replays(stage)
    stage.network.step(250)


class _Mute(Replays):
    def _report(self, ctx: Context, number: int, each: Replaying) -> None:
        del ctx, number
        each.report = 1 << 60


def _replays(stage: Stage) -> None:
    stage.emit(8)
    stage.replay(stage.far, 2, 7)


def _telling(lying: type[Replays]) -> type[App]:
    """A publisher whose replays are other than they should be."""

    class Liar(Actor):
        def __init__(
            self,
            orchestrator: Principal,
            settings: Settings = DEFAULTS,
            *,
            publications: Mapping[str, Config] | None = None,
            subscriptions: Mapping[str, Config] | None = None,
        ) -> None:
            super().__init__(orchestrator, settings, publications=publications, subscriptions=subscriptions)
            if self.publisher is not None:
                self.publisher.replays = lying(orchestrator, settings, self.publisher)

    return Liar


class _BadHash(Replays):
    @staticmethod
    def marked(event: Event, number: int, each: Replaying) -> Event:
        marked = Replays.marked(event, number, each)
        headers = tuple(each for each in marked.headers or () if each[0] != keys.HASH)
        return marked._replace(data=map_({"n": nat(666)}), headers=headers)


class _NewId(Replays):
    @staticmethod
    def marked(event: Event, number: int, each: Replaying) -> Event:
        marked = Replays.marked(event, number, each)
        return marked._replace(eventId=event.eventId * 1000) if event.eventId == 6 else marked


class _Fewer(Replays):
    def _rows(self, each: Replaying) -> list[int]:
        log = self.publisher.state.log
        return [row for row in super()._rows(each) if log[row].event.eventId != 4]


class _More(Replays):
    def _report(self, ctx: Context, number: int, each: Replaying) -> None:
        if each.state == "completed":
            each.count = max(each.count, 99)
        super()._report(ctx, number, each)


class _Again(Replays):
    """When it is done, it begins once more."""

    def _report(self, ctx: Context, number: int, each: Replaying) -> None:
        if each.state == "completed" and not each.text:
            each.state, each.text, each.place, each.count = "running", "twice", each.start, 0
        super()._report(ctx, number, each)


def _unasked(stage: Stage) -> None:
    stage.emit(3)
    headers = ((keys.REPLAYED, of(True)), (keys.REPLAY_ID, nat(77)))
    stage.say(stage.teller, stage.entry, "icrc72_publish", (stage.event(2, 1, headers=headers),))


class _Rewriting(Archive):
    def _page(self, caller: Principal, time: int, asked: tuple[str, int, int, int]) -> tuple[Event, ...]:
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
    update = ReplayStatusUpdate(1, state_of("completed", 5, ""))
    stage.say(stage.stranger, stage.system.orchestrator, "icrc77_replay_status", (update,))


def _priced() -> Config:
    return {keys.REPLAY: True, keys.PRICING: class_(("perEvent", nat(5)), ("currency", text("icrc2:aaaaa-aa")))}


class _ToAll(Acceptance):
    def _deliver(  # noqa: PLR0917 — as the honest one
        self, ctx: Context, event: Event, headers: Headers, replay: int, delivered: Delivered, full: Full
    ) -> Answer:
        for who in list(self.state.subscribers.get(event.namespace, ())):
            if who != delivered.subscriber:
                number = self._store(event, own=False)
                note = self._note(ctx, number, event, (0, 0, who, None), 1, 1)
                note.replay = replay
                self.delivery.add(ctx, who, note)
        return super()._deliver(ctx, event, headers, replay, delivered, full)


class _NoReplay(Acceptance):
    def _deliver(  # noqa: PLR0917 — as the honest one
        self, ctx: Context, event: Event, headers: Headers, replay: int, delivered: Delivered, full: Full
    ) -> Answer:
        del ctx, event, headers, replay, delivered, full
        return ok((self.delivery.role.next_notification(),))


CHEATS: Final = (
    Cheat("ReplaysAltered", "publisher", _replays, teller=_telling(_BadHash)),
    Cheat("ReplaysInvented", "publisher", _replays, teller=_telling(_NewId)),
    Cheat("SkipsInReplay", "publisher", _replays, teller=_telling(_Fewer)),
    Cheat("Overcharges", "publisher", _replays, teller=_telling(_More)),
    Cheat("ReplaysTwice", "publisher", _replays, teller=_telling(_Again)),
    Cheat("ReplaysUnasked", "publisher", _unasked),
    Cheat("Rewrites", "archive", _rewrites),
    Cheat("ReplaysToAll", "broadcaster", _crowd, broker=cheating(_ToAll)),
    Cheat("DropsReplay", "broadcaster", _replays, broker=cheating(_NoReplay)),
    Cheat("NeverReports", "publisher", _silence, teller=_telling(_Mute)),
    Cheat("AsksForAll", "subscriber", _asks_for_all),
    Cheat("PaysNothing", "subscriber", _pays_nothing, publication=_priced()),
    Cheat("CancelsOthers", "subscriber", _cancels),
    Cheat("ReportsForAnother", "outsider", _reports),
)

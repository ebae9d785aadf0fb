"""Publishers, broadcasters, subscribers and archives that cheat in replays (RP-14)."""

from typing import Any, Final

from interchain_events.events.log.memory import MemoryStore
from interchain_events.icrc72 import keys, methods
from interchain_events.icrc72.archive import Archive
from interchain_events.icrc72.broadcaster.accept import Acceptance, Answer, Arrival, Full, Match
from interchain_events.icrc72.broadcaster.state import Delivered, Forwarded
from interchain_events.icrc72.cheats.broadcasters import cheating
from interchain_events.icrc72.cheats.stage import NAMESPACE, Actor, Cheat, Stage
from interchain_events.icrc72.client import App, Config
from interchain_events.icrc72.ic.canister import Context
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.messages import Event, ReplayStatusUpdate, state_of
from interchain_events.icrc72.methods import ok
from interchain_events.icrc72.publisher.replays import Replays
from interchain_events.icrc72.publisher.state import Replaying
from interchain_events.icrc72.role import RoleCanister
from interchain_events.icrc72.values import class_, map_, nat, of, text


def _crowd(stage: Stage) -> None:
    """Replay events while there is another subscriber, who must not get them."""
    stage.actor(1, None, {NAMESPACE: {}})
    stage.network.step(60)
    stage.replayed()


def _silence(stage: Stage) -> None:
    """Replay events, and wait until a report is overdue."""
    stage.replayed()
    stage.network.step(250)


class _Mute(Replays):
    def _report(self, _ctx: Context, _number: int, replay: Replaying) -> None:
        replay.report = 1 << 60


def _publisher_with(replays_class: type[Replays]) -> type[App]:
    """Return a class of publishers that replay by `replays_class`."""

    class Liar(Actor):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            if self.publisher is not None:
                self.publisher.replays = replays_class(
                    self.publisher.orchestrator, self.publisher.settings, self.publisher
                )

    return Liar


class _BadHash(Replays):
    @staticmethod
    def marked(event: Event, number: int, replay: Replaying) -> Event:
        marked = Replays.marked(event, number, replay)
        headers = tuple(header for header in marked.headers or () if header[0] != keys.HASH)
        return marked._replace(data=map_({"n": nat(666)}), headers=headers)


class _NewId(Replays):
    @staticmethod
    def marked(event: Event, number: int, replay: Replaying) -> Event:
        marked = Replays.marked(event, number, replay)
        return marked._replace(eventId=event.eventId * 1000) if event.eventId == 6 else marked


class _Fewer(Replays):
    def _rows(self, replay: Replaying) -> list[int]:
        log = self.publisher.state.log
        return [row for row in super()._rows(replay) if log[row].event.eventId != 4]


class _More(Replays):
    def _report(self, ctx: Context, number: int, replay: Replaying) -> None:
        if replay.state == "completed":
            replay.count = max(replay.count, 99)
        super()._report(ctx, number, replay)


class _Again(Replays):
    """Replays a completed range once more. The text of the replay marks that this was done."""

    def _report(self, ctx: Context, number: int, replay: Replaying) -> None:
        if replay.state == "completed" and not replay.text:
            replay.state = "running"
            replay.text = "twice"
            replay.place = replay.start
            replay.count = 0
        super()._report(ctx, number, replay)


def _unasked(stage: Stage) -> None:
    """Let the publisher send an event of a replay that does not exist."""
    stage.emit(3)
    headers = ((keys.REPLAYED, of(True)), (keys.REPLAY_ID, nat(77)))
    stage.say(
        stage.teller,
        stage.entry,
        methods.PUBLISH,
        (stage.event(stage.teller, 2, 1, headers=headers),),
    )


class _Rewriting(Archive):
    def _page(
        self, caller: Principal, time: int, page: tuple[str, int, int, int]
    ) -> tuple[Event, ...]:
        events = super()._page(caller, time, page)
        return tuple(
            event._replace(data=map_({"n": nat(666)})) if event.eventId == 5 else event
            for event in events
        )


def _rewrites(stage: Stage) -> None:
    """Replay events from an archive that changes the data of one."""
    name = "stage.kept"
    network = stage.network
    archive = _Rewriting(MemoryStore(name))
    publisher = Actor(
        stage.system.orchestrator,
        stage.system.settings,
        publications={name: {keys.REPLAY: True}},
        subscriptions={},
        archive=network.create(0, RoleCanister([archive])),
        keep=0,
    )
    teller = network.create(0, publisher)
    archive.writer = teller
    listener = stage.actor(1, None, {name: {}})
    network.step(90)
    stage.tell(teller, name, range(1, 9), 3)
    network.step(40)
    stage.replay(listener, name, 2, 8)
    network.step(80)


def _cancels(stage: Stage) -> None:
    stage.replayed()
    stage.say(stage.stranger, stage.system.orchestrator, methods.CANCEL_REPLAY, (1,))


def _reports(stage: Stage) -> None:
    stage.replayed()
    update = ReplayStatusUpdate(1, state_of("completed", 5, ""))
    stage.say(stage.stranger, stage.system.orchestrator, methods.REPLAY_STATUS, (update,))


class _ToAll(Acceptance):
    def _take(
        self, arrival: Arrival, replay: int, role: Delivered | Forwarded, full: Full
    ) -> Answer:
        if isinstance(role, Delivered):
            event = arrival.event
            for subscriber in list(self.state.subscribers.get(event.namespace, ())):
                if subscriber != role.subscriber:
                    number = self._store(event, own=False)
                    match = Match(rank=0, subscription=0, subscriber=subscriber, filter=None)
                    note = self._note(arrival, number, match)
                    note.replay = replay
                    self.delivery.add(arrival.ctx, subscriber, note)
        return super()._take(arrival, replay, role, full)


class _NoReplay(Acceptance):
    def _take(
        self, arrival: Arrival, replay: int, role: Delivered | Forwarded, full: Full
    ) -> Answer:
        if isinstance(role, Delivered):
            return ok((self.delivery.role.next_notification(),))
        return super()._take(arrival, replay, role, full)


_PRICE: Final = class_(("perEvent", nat(5)), ("currency", text("icrc2:aaaaa-aa")))
_PRICED: Final[Config] = {keys.REPLAY: True, keys.PRICING: _PRICE}
CHEATS: Final = (
    Cheat("ReplaysAltered", "publisher", Stage.replayed, teller=_publisher_with(_BadHash)),
    Cheat("ReplaysInvented", "publisher", Stage.replayed, teller=_publisher_with(_NewId)),
    Cheat("SkipsInReplay", "publisher", Stage.replayed, teller=_publisher_with(_Fewer)),
    Cheat("Overcharges", "publisher", Stage.replayed, teller=_publisher_with(_More)),
    Cheat("ReplaysTwice", "publisher", Stage.replayed, teller=_publisher_with(_Again)),
    Cheat("ReplaysUnasked", "publisher", _unasked),
    Cheat("Rewrites", "archive", _rewrites),
    Cheat("ReplaysToAll", "broadcaster", _crowd, broker=cheating(_ToAll)),
    Cheat("DropsReplay", "broadcaster", Stage.replayed, broker=cheating(_NoReplay)),
    Cheat("NeverReports", "publisher", _silence, teller=_publisher_with(_Mute)),
    Cheat("AsksForAll", "subscriber", lambda stage: stage.replayed(1, 1_000_000, 3)),
    Cheat("PaysNothing", "subscriber", lambda stage: stage.replayed(1, 3, 3), publication=_PRICED),
    Cheat("CancelsOthers", "subscriber", _cancels),
    Cheat("ReportsForAnother", "outsider", _reports),
)

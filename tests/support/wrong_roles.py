"""Roles that break one rule each, and the rule that a trial has to name: the power of the conformance kit."""

from collections.abc import Callable
from typing import Any

from pubsub_emulator.icrc72.broadcaster.core import Broadcaster
from pubsub_emulator.icrc72.cheats.catalogue import CHEATS
from pubsub_emulator.icrc72.cheats.stage import Actor
from pubsub_emulator.icrc72.ic.candid.types import Variant
from pubsub_emulator.icrc72.ic.canister import Answer, Canister, Context
from pubsub_emulator.icrc72.ic.errors import Trap
from pubsub_emulator.icrc72.ic.principal import ANONYMOUS, Principal
from pubsub_emulator.icrc72.keys import HASH, REPLAY, REPLAY_END, REPLAY_ID
from pubsub_emulator.icrc72.messages import Event, EventNotification, state_of
from pubsub_emulator.icrc72.methods import PUBLISH
from pubsub_emulator.icrc72.orchestrator.core import Orchestrator
from pubsub_emulator.icrc72.results import ok
from pubsub_emulator.icrc72.role import Core, RoleCanister
from pubsub_emulator.icrc72.services import codec
from pubsub_emulator.icrc72.values import blob, map_, nat

NAME = "trial.events"
App = Any
"""An `Actor`; mutants reach into it."""
Wrong = Callable[[App], None]
Change = Callable[[App, Any], Any]


def subscriber(wrong: Wrong | None = None) -> Callable[[Principal], Actor]:
    """A subscriber, made wrong."""

    def make(orchestrator: Principal) -> Actor:
        app = Actor(orchestrator, publications={}, subscriptions={NAME: {}})
        if wrong is not None:
            wrong(app)
        return app

    return make


def publisher(wrong: Wrong | None = None) -> Callable[[Principal], Actor]:
    """A publisher, made wrong."""

    def make(orchestrator: Principal) -> Actor:
        app = Actor(orchestrator, publications={NAME: {REPLAY: True}}, subscriptions={})
        if wrong is not None:
            wrong(app)
        return app

    return make


def asked(method: str, change: Callable[[App, Principal, Any, Any], tuple[Principal, Any, Any] | None]) -> Wrong:
    """Change the calls of one method: callee, argument and what is done with the result; `None` drops the call."""

    def wrong(app: App) -> None:
        honest = app.send

        def ask(ctx: Context, to: Principal, called: Any, value: Any, then: Any = None, **rest: Any) -> None:
            if called.name == method:
                changed = change(app, to, value, then)
                if changed is None:
                    return
                to, value, then = changed
            honest(ctx, to, called, called.argument(value), then, **{"kind": "bounded", **rest})

        app.ask = ask

    return wrong


def argument(method: str, change: Change) -> Wrong:
    """Change the argument of the calls of one method."""
    return asked(method, lambda app, to, value, then: (to, change(app, value), then))


def events(change: Callable[[App, Event], Event], *, replayed: bool = False) -> Wrong:
    """Change each event that is published, or each that is replayed."""

    def every(app: App, batch: tuple[Event, ...]) -> tuple[Event, ...]:
        return tuple(change(app, each) if is_replayed(each) == replayed else each for each in batch)

    return argument("icrc72_publish", every)


def is_replayed(event: Event) -> bool:
    return any(key == REPLAY_ID for key, _ in event.headers or ())


def patched(path: str, value: Any) -> Wrong:
    """Replace an attribute of the app, of its inbox or of a role."""

    def wrong(app: App) -> None:
        *way, name = path.split(".")
        target = app
        for each in way:
            target = getattr(target, each)
        setattr(target, name, value)

    return wrong


def handling(handle: Callable[[App, EventNotification], None]) -> Wrong:
    return lambda app: setattr(app, "on_event", lambda _ctx, event: handle(app, event))


def trusting(app: App) -> None:
    """Takes everybody for a broadcaster."""
    honest = app.inbox._receive

    def receive(ctx: Context, notifications: Any) -> int:
        app.inbox.state.valid[ctx.caller] = None
        return int(honest(ctx, notifications))

    app.inbox._receive = receive


def never_asking(app: App) -> None:
    trusting(app)
    app.inbox._ask_valid = lambda *_: None


def forgetting(change: Callable[[App], None]) -> Wrong:
    """Lose something in an upgrade."""

    def wrong(app: App) -> None:
        honest = app.post_upgrade

        def upgraded(ctx: Context, kept: bytes) -> None:
            honest(ctx, kept)
            change(app)

        app.post_upgrade = upgraded

    return wrong


def trapping(app: App) -> None:
    honest = app.update

    def update(ctx: Context, method: str, arg: bytes) -> None:
        if method == "icrc72_handle_notification" and ctx.now % 3 == 0:
            raise Trap("not today")
        honest(ctx, method, arg)

    app.update = update


def upgrade_traps(app: App) -> None:
    def upgraded(_ctx: Context, _kept: bytes) -> None:
        raise Trap("no")

    app.post_upgrade = upgraded


def without_stats(app: App) -> None:
    honest = app.query

    def query(caller: Principal, time: int, method: str, arg: bytes) -> bytes:
        if method.endswith("_stats"):
            raise Trap("there is no query")
        return bytes(honest(caller, time, method, arg))

    app.query = query


def elsewhere(_app: App, _to: Principal, value: Any, then: Any) -> tuple[Principal, Any, Any]:
    return ANONYMOUS, value, then


def unheeding(_app: App, to: Principal, value: Any, then: Any) -> tuple[Principal, Any, Any]:
    """Takes every event for accepted, whatever the answer is."""
    return to, value, lambda ctx, _results: then(ctx, tuple(map_ok(value)))


def map_ok(value: Any) -> list[Any]:
    return [ok(()) for _ in value]


def twice(app: App) -> None:
    """Sends each batch twice at once."""
    honest = app.send

    def send(ctx: Context, to: Principal, method: Any, arg: bytes, then: Any = None, **rest: Any) -> None:
        if method.name == "icrc72_publish":
            honest(ctx, to, method, arg, lambda _ctx, _result: None, **rest)
        honest(ctx, to, method, arg, then, **rest)

    app.send = send


def hasty(app: App) -> None:
    """Publishes before it is told where: to whoever is a valid broadcaster."""
    honest = app.inbox.begin

    def begin(ctx: Context) -> None:
        honest(ctx)
        event = Event(1, None, ctx.time, NAME, map_({"n": nat(1)}), ctx.me, ())
        app.ask(ctx, ANONYMOUS, PUBLISH, (event,), lambda _ctx, _result: None)

    app.inbox.begin = begin


def retold(number: int | None, name: str | None = None) -> Wrong:
    """Reports something else of a replay."""

    def change(_app: App, updates: Any) -> Any:
        return tuple(
            each._replace(status=state_of(name or each.status.tag, number, ""))
            if each.status.tag == "completed"
            else each
            for each in updates
        )

    return argument("icrc77_replay_status", change)


def _headers(event: Event, key: str, value: Any) -> Event:
    kept = tuple((k, value if k == key else v) for k, v in event.headers or ())
    return event._replace(headers=kept if key in dict(kept) else (*kept, (key, value)))


def _restless(app: App, event: Event) -> Event:
    app.count = getattr(app, "count", 0) + 1
    return event._replace(data=map_({"n": nat(app.count)}), headers=())


def _forget_ids(app: App) -> None:
    for mine in app.publisher.state.mine.values():
        mine.last = 0


class Lying(RoleCanister):
    """A canister that answers one method, or each, otherwise than its cores do."""

    def __init__(self, core: Core, method: str, change: Callable[[Any], Any]) -> None:
        self.lies, self.change = method, change
        super().__init__([core])

    def update(self, ctx: Context, method: str, arg: bytes) -> None:
        super().update(ctx, method, arg)
        if method == self.lies and ctx.answer is not None and ctx.answer.ok:
            ctx.answer = Answer(self.lie(ctx.answer.data))

    def query(self, caller: Principal, time: int, method: str, arg: bytes) -> bytes:
        data = super().query(caller, time, method, arg)
        return self.lie(data) if method == self.lies else data

    def lie(self, data: bytes) -> bytes:
        rets = codec(self.lies).rets
        return rets.encode(self.change(rets.decode(data)[0]))


class Silly(RoleCanister):
    """A canister that traps where it should go on."""

    def __init__(self, core: Core, *, upgrade: bool = False, method: str = "") -> None:
        self.upgrade, self.method = upgrade, method
        super().__init__([core])

    def update(self, ctx: Context, method: str, arg: bytes) -> None:
        if method == self.method and ctx.now % 3 == 0:
            raise Trap("not today")
        super().update(ctx, method, arg)

    def post_upgrade(self, ctx: Context, kept: bytes) -> None:
        if self.upgrade:
            raise Trap("no")
        super().post_upgrade(ctx, kept)


def all_ok(results: Any) -> Any:
    return tuple(ok(7) if each is not None and each.tag == "Err" else each for each in results)


def all_published(results: Any) -> Any:
    return tuple(ok(()) for _ in results)


def shortened(results: Any) -> Any:
    return results[:100]


def numbered() -> Callable[[Any], Any]:
    """Gives another id each time."""
    count = iter(range(10**6, 10**7))
    return lambda results: tuple(ok(next(count)) if each.tag == "Ok" else each for each in results)


def once() -> Callable[[Any], Any]:
    """Gives the first answer again and again."""
    kept: list[Any] = []

    def answer(value: Any) -> Any:
        kept.append(value)
        return kept[0]

    return answer


def orchestrators() -> dict[str, tuple[Any, ...]]:
    """What makes each, given the only broadcaster, and the rules that it breaks."""

    def lying(method: str, change: Callable[[Any], Any]) -> Callable[[Principal], Canister]:
        return lambda broadcaster: Lying(Orchestrator([broadcaster]), method, change)

    def traps(**how: Any) -> Callable[[Principal], Canister]:
        return lambda broadcaster: Silly(Orchestrator([broadcaster]), **how)

    return {
        "takes any publication": (
            lying("icrc72_register_publication", all_ok),
            *("IC-31 system", "IC-31 creator", "IC-30b keys"),
        ),
        "takes any subscription": (lying("icrc72_register_subscription", all_ok), "IC-32 system", "IC-26"),
        "a new id for the same subscription": (lying("icrc72_register_subscription", numbered()), "IC-32"),
        "answers 101 items short": (lying("icrc72_register_publication", shortened), "IC-30a"),
        "anybody changes a publication": (lying("icrc72_update_publication", all_ok_true), "IC-34"),
        "deletes what is not there": (lying("icrc72_delete_publication", all_ok_true), "IC-34 unknown"),
        "lists nothing": (lying("icrc72_get_publications", lambda _: ()), "IC-35b"),
        "lists backwards": (lying("icrc72_get_publications", lambda found: found[::-1]), "IC-35a"),
        "one page for all": (lying("icrc72_get_publications", once()), "IC-35a pages"),
        "lists no broadcaster": (lying("icrc72_get_broadcasters", lambda _: ()), "IC-35b broadcasters"),
        "replays anything to anybody": (lying("icrc77_register_replay", all_ok), "RP-3 range", "RP-3 who", "RP-3 wide"),
        "anybody reports": (lying("icrc77_replay_status", all_ok), "RP-5 who"),
        "forgets replays": (lying("icrc77_get_replays", lambda _: ()), "RP-5"),
        "cancels what is over": (lying("icrc77_cancel_replay", all_ok), "RP-11"),
        "traps in an upgrade": (traps(upgrade=True), "IC-8"),
        "traps now and then": (traps(method="icrc72_register_publication"), "IC-4"),
    }


def all_ok_true(results: Any) -> Any:
    return tuple(ok(True) for _ in results)


def broadcasters() -> dict[str, tuple[Any, ...]]:
    """What makes each, given the orchestrator, and the rules that it breaks."""

    def lying(method: str, change: Callable[[Any], Any]) -> Callable[[Principal], Canister]:
        return lambda me: Lying(Broadcaster(me), method, change)

    def dropping(keep: Callable[[EventNotification], bool]) -> Callable[[Principal], Canister]:
        def make(me: Principal) -> Canister:
            made: Any = RoleCanister([Broadcaster(me)])
            honest = made.send

            def ask(ctx: Context, to: Principal, called: Any, value: Any, then: Any = None, **rest: Any) -> None:
                if called.name == "icrc72_handle_notification":
                    value = tuple(each for each in value if keep(each))
                honest(ctx, to, called, called.argument(value), then, **{"kind": "bounded", **rest})

            def send(ctx: Context, to: Principal, called: Any, arg: bytes, then: Any = None, **rest: Any) -> None:
                ask(ctx, to, called, called.value(arg), then, **rest)

            made.ask, made.send = ask, send
            return made  # type: ignore[no-any-return]  # it is a `RoleCanister`

        return make

    return {
        "answers Ok to anybody": (lying("icrc72_publish", all_published), "IC-41", "IC-41 source"),
        "answers 101 items short": (lying("icrc72_publish", shortened), "IC-30a"),
        "confirms whatever is said": (
            lying("icrc72_confirm_notifications", lambda _: Variant("allAccepted", None)),
            "IC-44",
        ),
        "loses every fifth event": (dropping(lambda each: each.eventId % 5 > 0), "IC-43"),
        "loses what is replayed": (dropping(lambda each: not is_replayed(each)), "RP-8"),
        "traps in an upgrade": (lambda me: Silly(Broadcaster(me), upgrade=True), "IC-8"),
        "traps now and then": (lambda me: Silly(Broadcaster(me), method="icrc72_publish"), "IC-4"),
        **{
            f"cheats: {each.name}": (lambda me, broker=each.broker: RoleCanister([broker(me)]), rule)  # type: ignore[misc]
            for each in CHEATS
            if (rule := FOUND_BY.get(each.name, ""))
        },
    }


FOUND_BY = {
    **dict.fromkeys(("Drops", "AcceptsAndForgets"), "IC-43"),
    **dict.fromkeys(("Invents", "AltersData", "Repeats"), "IC-51"),
}
CONFIRM = "icrc72_confirm_notifications"
SUBSCRIBERS: dict[str, tuple[Wrong, str]] = {
    "confirms nothing": (asked(CONFIRM, lambda *_: None), "IC-44"),
    "confirms every other notification": (argument(CONFIRM, lambda _, ids: tuple(n for n in ids if n % 2)), "IC-44"),
    "confirms what nobody sent": (argument(CONFIRM, lambda _, ids: (*ids, 10**6)), "IC-44 own"),
    "confirms to somebody else": (asked(CONFIRM, elsewhere), "IC-44"),
    "does not subscribe to alerts": (
        argument(
            "icrc72_register_subscription",
            lambda _, items: tuple(
                each._replace(namespace="other.name") if each.namespace.startswith("icrc72:") else each
                for each in items
            ),
        ),
        "IC-39 alerts",
    ),
    "registers an unknown key": (
        argument(
            "icrc72_register_subscription",
            lambda _, items: tuple(each._replace(config=(("icrc72:nonsense", nat(1)),)) for each in items),
        ),
        "IC-32",
    ),
    "registers nothing": (patched("subscriber._register", lambda _ctx: None), "IC-39 subscription"),
    "takes everybody for a broadcaster": (trusting, "IC-49b strangers"),
    "asks nobody who is valid": (never_asking, "IC-49b"),
    "handles events twice": (handling(lambda app, e: app.data.extend([e.eventId, e.eventId])), "I1 once"),
    "handles events backwards": (handling(lambda app, e: app.data.insert(0, e.eventId)), "I1 order"),
    "drops every fifth event": (handling(lambda app, e: app.data.extend([e.eventId] * (e.eventId % 5 > 0))), "I1"),
    "forgets in an upgrade": (forgetting(lambda app: app.data.clear()), "I1"),
    "asks for no replay": (patched("subscriber.repairs.wake", lambda _ctx: None), "RP-10"),
    "asks for the wrong events": (
        argument("icrc77_register_replay", lambda _, items: tuple(each._replace(range=(1, 2)) for each in items)),
        "RP-10",
    ),
    "traps now and then": (trapping, "IC-4"),
    "traps in an upgrade": (upgrade_traps, "IC-8"),
    "tells no statistics": (without_stats, "IC-35d"),
}
PUBLISHERS: dict[str, tuple[Wrong, str]] = {
    "another source": (events(lambda _, e: e._replace(source=ANONYMOUS)), "IC-22 source"),
    "a namespace of others": (events(lambda _, e: e._replace(namespace="other.name")), "IC-41 namespace"),
    "no time": (events(lambda _, e: e._replace(timestamp=0)), "IC-22 time"),
    "a wrong former event": (events(lambda _, e: e._replace(prevEventId=10**6)), "IC-42"),
    "a broadcaster's header": (events(lambda _, e: _headers(e, "icrc72:broadcaster", blob(b"me"))), "IC-23"),
    "a wrong hash": (events(lambda _, e: _headers(e, HASH, blob(bytes(32)))), "IC-21"),
    "ids that descend": (events(lambda _, e: e._replace(eventId=1000 - e.eventId, prevEventId=None)), "IC-25"),
    "another event under the same id": (events(_restless), "IC-48 repeats"),
    "publishes elsewhere": (asked("icrc72_publish", elsewhere), "IC-39 entry"),
    "publishes before it is told where": (hasty, "IC-39 entry"),
    "heeds no answer": (asked("icrc72_publish", unheeding), "IC-48"),
    "sends two batches at once": (twice, "IC-48 batches"),
    "believes a stranger's alert": (trusting, "IC-49b strangers"),
    "confirms no alert": (asked(CONFIRM, lambda *_: None), "IC-44"),
    "ids begin anew after an upgrade": (forgetting(_forget_ids), "IC-48"),
    "registers no publication": (patched("publisher._register", lambda _ctx: None), "IC-39 publication"),
    "replays other data": (events(lambda _, e: e._replace(data=map_({})), replayed=True), "RP-7"),
    "replays under another number": (events(lambda _, e: _headers(e, REPLAY_ID, nat(99)), replayed=True), "RP-7 marks"),
    "tells a wrong end": (events(lambda _, e: _headers(e, REPLAY_END, nat(1)), replayed=True), "RP-7 marks"),
    "replays other events": (
        argument(
            "icrc72_publish",
            lambda _, batch: tuple(each._replace(eventId=each.eventId + is_replayed(each)) for each in batch),
        ),
        "RP-2",
    ),
    "never reports": (asked("icrc77_replay_status", lambda *_: None), "RP-5"),
    "reports too many": (retold(99), "RP-5"),
    "reports a replay as canceled": (retold(4, "canceled"), "RP-5"),
    "traps in an upgrade": (upgrade_traps, "IC-8"),
}

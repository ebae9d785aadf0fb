"""Roles that break one rule each, and the rule that a trial must report.

They show which faults the conformance kit finds.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from interchain_events.icrc72 import CHEATS, RoleCanister
from interchain_events.icrc72.broadcaster.core import Broadcaster
from interchain_events.icrc72.cheats.stage import Actor
from interchain_events.icrc72.facts import Due, SubscriberFact
from interchain_events.icrc72.ic.candid.did import parse_types
from interchain_events.icrc72.ic.candid.encode import Encoder
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.canister import Answer, Context
from interchain_events.icrc72.ic.errors import Trap
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.keys import HASH, REPLAY, REPLAY_END, REPLAY_ID
from interchain_events.icrc72.messages import (
    Event,
    EventNotification,
    state_of,
)
from interchain_events.icrc72.methods import PUBLISH, err, ok
from interchain_events.icrc72.orchestrator.core import Orchestrator
from interchain_events.icrc72.services import codec
from interchain_events.icrc72.values import blob, map_, nat

NAME = "trial.events"
App = Any
"""An `Actor`; mutants reach into it."""
Wrong = Callable[[App], None]
Change = Callable[[App, Any], Any]


ROLES: dict[str, Callable[[Principal], App]] = {
    "subscriber": lambda me: Actor(me, publications={}, subscriptions={NAME: {}}),
    "publisher": lambda me: Actor(me, publications={NAME: {REPLAY: True}}, subscriptions={}),
    "broadcaster": lambda me: RoleCanister([Broadcaster(me)]),
    "orchestrator": lambda broadcaster: RoleCanister([Orchestrator([broadcaster])]),
}
"""What makes each, given the orchestrator, or the only broadcaster."""


def role(name: str, wrong: Wrong | None = None) -> Callable[[Principal], App]:
    """Return a function that makes a canister of a role and changes it with `wrong`."""

    def make(other: Principal) -> App:
        app = ROLES[name](other)
        if wrong is not None:
            wrong(app)
        return app

    return make


def around(path: str, instead: Callable[..., Any]) -> Wrong:
    """Replace a method of the app or of a part of it; `instead` is given the app and the honest
    method first.
    """

    def wrong(app: App) -> None:
        *way, name = path.split(".")
        target = app
        for each in way:
            target = getattr(target, each)
        honest = getattr(target, name)
        setattr(target, name, lambda *given, **named: instead(app, honest, *given, **named))

    return wrong


def everybody_may(app: App) -> None:
    """Allow everybody everything, as an orchestrator."""
    app.cores[0].access.may = lambda *_: True


def ends_early(app: App) -> None:
    """Replay only three events of a range without an end."""
    honest = app.publisher.told

    def told(ctx: Context, caller: Principal, alert: Any) -> None:
        for fact, value in alert.adds.items():
            if isinstance(value, Due) and value.end is None:
                alert.adds[fact] = value._replace(end=value.start + 3)
        honest(ctx, caller, alert)

    app.publisher.told = told


def only_once() -> Callable[[App, Principal, Any, Any], tuple[Principal, Any, Any] | None]:
    """Return a change that lets a single call through."""
    called: list[Principal] = []

    def change(
        _app: App, to: Principal, items: Any, then: Any
    ) -> tuple[Principal, Any, Any] | None:
        called.append(to)
        return (to, items, then) if len(called) == 1 else None

    return change


def asked(
    method: str, change: Callable[[App, Principal, Any, Any], tuple[Principal, Any, Any] | None]
) -> Wrong:
    """Change the calls of one method: callee, argument and the use of the result.

    If `change` returns `None`, the call is dropped.
    """

    def send(
        app: App, honest: Any, ctx: Context, to: Principal, called: Any, *rest: Any, **named: Any
    ) -> None:
        arg, then = (*rest, None)[:2]
        if called.name == method:
            changed = change(app, to, called.value(arg), then)
            if changed is None:
                return
            to, value, then = changed
            arg = called.argument(value)
        honest(ctx, to, called, arg, then, **named)

    return around("send", send)


def argument(method: str, change: Change) -> Wrong:
    """Change the argument of the calls of one method."""
    return asked(method, lambda app, to, value, then: (to, change(app, value), then))


def events(change: Callable[[App, Event], Event], *, replayed: bool = False) -> Wrong:
    """Change each event that is published, or each that is replayed."""

    def every(app: App, batch: tuple[Event, ...]) -> tuple[Event, ...]:
        return tuple(change(app, each) if is_replayed(each) == replayed else each for each in batch)

    return argument("icrc72_publish", every)


def is_replayed(event: Event | EventNotification) -> bool:
    return any(key == REPLAY_ID for key, _ in event.headers or ())


def handling(handle: Callable[[App, EventNotification], None]) -> Wrong:
    return around("on_event", lambda app, _honest, _ctx, event: handle(app, event))


def _trust(app: App, honest: Any, ctx: Context, notifications: Any) -> Any:
    app.inbox.state.valid = {**app.inbox.state.valid, ctx.caller: None}
    return honest(ctx, notifications)


trusting = around("inbox._receive", _trust)
"""Takes everybody for a broadcaster."""


def never_asking(app: App) -> None:
    trusting(app)
    around("inbox._ask_valid", nothing)(app)


def nothing(*_given: Any) -> None:
    """Do nothing, in place of a method."""


def forgetting(change: Callable[[App], None]) -> Wrong:
    """Change the state after an upgrade, for example to lose a part of it."""

    def upgraded(app: App, honest: Any, *kept: Any) -> None:
        honest(*kept)
        change(app)

    return around("post_upgrade", upgraded)


def trapping(method: str = "") -> Wrong:
    """Trap in one method now and then, or always in each."""

    def update(_app: App, honest: Any, ctx: Context, called: str, arg: bytes) -> None:
        if (called == method and ctx.now % 3 == 0) or not method:
            raise Trap("not today")
        honest(ctx, called, arg)

    return around("update", update)


def _trap(*_given: Any) -> None:
    raise Trap("no")


upgrade_traps = around("post_upgrade", _trap)


def _tell(_app: App, honest: Any, caller: Principal, time: int, method: str, arg: bytes) -> Any:
    if method.endswith("_stats"):
        raise Trap("there is no query")
    return honest(caller, time, method, arg)


without_stats = around("query", _tell)


def elsewhere(_app: App, _to: Principal, value: Any, then: Any) -> tuple[Principal, Any, Any]:
    return ANONYMOUS, value, then


def unheeding(_app: App, to: Principal, value: Any, then: Any) -> tuple[Principal, Any, Any]:
    """Treat every event as accepted, whatever the answer is."""
    return to, value, lambda ctx, _results: then(ctx, every(())(value))


def forgetful(_app: App, to: Principal, value: Any, then: Any) -> tuple[Principal, Any, Any]:
    """Treat every event as not accepted, whatever the answer is."""
    return to, value, lambda ctx, _results: then(ctx, None)


def _twice(
    _app: App,
    honest: Any,
    ctx: Context,
    to: Principal,
    method: Any,
    arg: bytes,
    *rest: Any,
    **named: Any,
) -> None:
    if method.name == "icrc72_publish":
        honest(ctx, to, method, arg, nothing, **named)
    honest(ctx, to, method, arg, *rest, **named)


def _hasty(app: App, honest: Any, ctx: Context) -> None:
    """Publish to any valid broadcaster, before the orchestrator has named one."""
    honest(ctx)
    event = Event(
        1, None, ctx.time, namespace=NAME, data=map_({"n": nat(1)}), source=ctx.me, headers=()
    )
    app.ask(ctx, ANONYMOUS, PUBLISH, (event,), nothing)


def retold(number: int | None, name: str | None = None) -> Wrong:
    """Report another number of events, and perhaps another status, for a completed replay."""

    def change(_app: App, updates: Any) -> Any:
        return tuple(
            (
                each._replace(status=state_of(name or each.status.tag, number, ""))
                if each.status.tag == "completed"
                else each
            )
            for each in updates
        )

    return argument("icrc77_replay_status", change)


def _without(event: Event, key: str) -> Event:
    return event._replace(headers=tuple(pair for pair in event.headers or () if pair[0] != key))


def _headers(event: Event, key: str, value: Any) -> Event:
    kept = tuple((k, value if k == key else v) for k, v in event.headers or ())
    return event._replace(headers=kept if key in dict(kept) else (*kept, (key, value)))


def _restless(app: App, event: Event) -> Event:
    app.count = getattr(app, "count", 0) + 1
    return event._replace(data=map_({"n": nat(app.count)}), headers=())


def _forget_ids(app: App) -> None:
    for mine in app.publisher.state.mine.values():
        mine.last = 0


def lying(method: str, change: Callable[[Any], Any]) -> Wrong:
    """Answer one method otherwise."""

    def lie(data: bytes) -> bytes:
        rets = codec(method).rets
        return rets.encode(change(rets.decode(data)[0]))

    def updated(_app: App, honest: Any, ctx: Context, called: str, arg: bytes) -> None:
        honest(ctx, called, arg)
        if called == method and ctx.answer is not None and ctx.answer.ok:
            ctx.answer = Answer(lie(ctx.answer.data))

    def queried(
        _app: App, honest: Any, caller: Principal, time: int, called: str, arg: bytes
    ) -> Any:
        data = honest(caller, time, called, arg)
        return lie(data) if called == method else data

    def wrong(app: App) -> None:
        around("update", updated)(app)
        around("query", queried)(app)

    return wrong


def dropping(keep: Callable[[EventNotification], bool]) -> Wrong:
    """Notify of these only."""
    return argument(
        "icrc72_handle_notification", lambda _, notes: tuple(each for each in notes if keep(each))
    )


def all_ok(results: Any) -> Any:
    return tuple(ok(7) if each is not None and each.tag == "Err" else each for each in results)


def every(value: Any) -> Callable[[Any], Any]:
    """Return a function that accepts every item of `value`, whatever the results are."""
    return lambda results: tuple(ok(value) for _ in results)


def shortened(results: Any) -> Any:
    return results[:100]


def numbered() -> Callable[[Any], Any]:
    """Return a function that gives another id each time."""
    count = iter(range(10**6, 10**7))
    return lambda results: tuple(ok(next(count)) if each.tag == "Ok" else each for each in results)


def once() -> Callable[[Any], Any]:
    """Return a function that always gives its first answer again."""
    answers: list[Any] = []

    def answer(value: Any) -> Any:
        answers.append(value)
        return answers[0]

    return answer


def hearing(method: str, change: Callable[[Any], Any]) -> Wrong:
    """Change the argument of one method before the app handles it."""

    def update(_app: App, honest: Any, ctx: Context, called: str, arg: bytes) -> None:
        if called == method and arg.startswith(b"DIDL"):
            args = codec(method).args
            arg = args.encode(change(args.decode(arg)[0]))
        honest(ctx, called, arg)

    return around("update", update)


def viewing(**fields: Any) -> Wrong:
    """Change a broadcaster's view of publications.

    For each named field, a function makes the new value from the true one.
    """

    def notify(_app: App, honest: Any, *given: Any, **named: Any) -> Any:
        view = given[3]
        changed = {name: make(getattr(view, name)) for name, make in fields.items()}
        return honest(*given[:3], replace(view, **changed), **named)

    return lambda app: around("acceptance._notify", notify)(app.cores[0])


def assigning(skips: Callable[[App, Any], bool], name: str = "_add") -> Wrong:
    """Ignore some additions (`_add`) or removals (`_remove`) as a broadcaster.

    `skips` gets the state and the fact.
    """

    def assign(core: App, honest: Any, ctx: Context, fact: Any, *rest: Any) -> None:
        if not skips(core.state, fact):
            honest(ctx, fact, *rest)

    return lambda app: around(f"assignments.{name}", assign)(app.cores[0])


def _served_before() -> Callable[[App, Any], bool]:
    """Return a function that tells whether a subscriber was served and then removed."""
    seen: set[Any] = set()

    def before(_state: App, fact: Any) -> bool:
        known = fact in seen
        seen.add(fact)
        return isinstance(fact, SubscriberFact) and known

    return before


def _first_entry(_app: App, honest: Any, mine: Any, entries: Any) -> None:
    """Keep the first broadcaster, also when another one is assigned."""
    if not mine.entries:
        honest(mine, entries)


FOUND_BY = {
    **dict.fromkeys(("Drops", "AcceptsAndForgets"), "IC-43"),
    **dict.fromkeys(("Invents", "AltersData", "Repeats"), "IC-51"),
}
CONFIRM = "icrc72_confirm_notifications"


def trapping_on(wrong: Callable[[EventNotification, bytes], bool]) -> Wrong:
    """Trap on notifications of some kind, given also the whole argument."""

    def update(_app: App, honest: Any, ctx: Context, called: str, arg: bytes) -> None:
        notified = called == "icrc72_handle_notification" and arg.startswith(b"DIDL")
        given = codec(called).args.decode(arg)[0] if notified else ()
        if any(wrong(each, arg) for each in given):
            raise Trap("I cannot read this")
        honest(ctx, called, arg)

    return around("update", update)


SIX = ("Array", "Blob", "Int", "Map", "Nat", "Text")


def confirming_texts(
    _app: App, honest: Any, ctx: Context, to: Principal, method: Any, *rest: Any, **named: Any
) -> None:
    """Confirm with texts instead of numbers."""
    if method.name == CONFIRM:
        ctx.call(to, CONFIRM, Encoder(parse_types("(vec text)")).encode(("1",)))
    else:
        honest(ctx, to, method, *rest, **named)


SUBSCRIBERS: dict[str, tuple[Any, ...]] = {
    "confirms nothing": (asked(CONFIRM, lambda *_: None), "IC-44"),
    "confirms every other notification": (
        argument(CONFIRM, lambda _, ids: tuple(n for n in ids if n % 2)),
        "IC-44",
    ),
    "confirms what nobody sent": (argument(CONFIRM, lambda _, ids: (*ids, 10**6)), "IC-44 own"),
    "confirms to somebody else": (asked(CONFIRM, elsewhere), "IC-44"),
    "does not subscribe to alerts": (
        argument(
            "icrc72_register_subscription",
            lambda _, items: tuple(
                (
                    each._replace(namespace="other.name")
                    if each.namespace.startswith("icrc72:")
                    else each
                )
                for each in items
            ),
        ),
        "IC-39 alerts",
    ),
    "registers an unknown key": (
        argument(
            "icrc72_register_subscription",
            lambda _, items: tuple(
                each._replace(config=(("icrc72:nonsense", nat(1)),)) for each in items
            ),
        ),
        "IC-32",
    ),
    "registers nothing": (around("subscriber._asking.register", nothing), "IC-39 subscription"),
    "takes everybody for a broadcaster": (trusting, "IC-49b strangers"),
    "asks nobody who is valid": (never_asking, "IC-49b"),
    "handles events twice": (
        handling(lambda app, e: app.data.extend([e.eventId, e.eventId])),
        "I1 once",
    ),
    "handles events backwards": (
        handling(lambda app, e: app.data.insert(0, e.eventId)),
        "I1 order",
    ),
    "forgets what it has handled in an upgrade": (
        forgetting(lambda app: app.data.clear()),
        "IC-8 state",
    ),
    "forgets the last that it has handled in an upgrade": (
        forgetting(lambda app: app.data.pop()),
        "IC-8 state",
    ),
    "knows six variants": (trapping_on(lambda each, _: each.data.tag not in SIX), "IC-20"),
    "knows two levels of data": (
        trapping_on(lambda each, _: repr(each.data).count("Array") > 2),
        "IC-20",
    ),
    "needs headers": (trapping_on(lambda each, _: each.headers is None), "IC-22"),
    "takes no id 0": (trapping_on(lambda each, _: each.eventId == 0), "IC-25 ids"),
    "takes ids of 64 bits": (trapping_on(lambda each, _: each.eventId >= 2**64), "IC-25 ids"),
    "takes a megabyte": (trapping_on(lambda _, arg: len(arg) > 2**20), "IC-7"),
    "confirms with texts": (around("send", confirming_texts), "IC-11", "IC-44"),
    "refuses trusted notifications": (
        lying("icrc72_handle_notification_trusted", lambda _: Variant("err", "no")),
        "IC-46",
    ),
    "drops every fifth event": (
        handling(lambda app, e: app.data.extend([e.eventId] * (e.eventId % 5 > 0))),
        "I1",
    ),
    "forgets in an upgrade": (forgetting(lambda app: app.data.clear()), "I1"),
    "asks for no replay": (around("subscriber.repairs.wake", nothing), "RP-10"),
    "asks for a replay once": (asked("icrc77_register_replay", only_once()), "RP-10 again"),
    "asks for the wrong events": (
        argument(
            "icrc77_register_replay",
            lambda _, items: tuple(each._replace(range=(1, 2)) for each in items),
        ),
        "RP-10",
    ),
    "traps now and then": (trapping("icrc72_handle_notification"), "IC-4"),
    "traps in an upgrade": (upgrade_traps, "IC-8"),
    "tells no statistics": (without_stats, "IC-35d"),
}
PUBLISHERS: dict[str, tuple[Any, ...]] = {
    "another source": (events(lambda _, e: e._replace(source=ANONYMOUS)), "IC-22 source"),
    "a namespace of others": (
        events(lambda _, e: e._replace(namespace="other.name")),
        "IC-41 namespace",
    ),
    "no time": (events(lambda _, e: e._replace(timestamp=0)), "IC-22 time"),
    "a wrong former event": (events(lambda _, e: e._replace(prevEventId=10**6)), "IC-42"),
    "a broadcaster's header": (
        events(lambda _, e: _headers(e, "icrc72:broadcaster", blob(b"me"))),
        "IC-23",
    ),
    "a wrong hash": (events(lambda _, e: _headers(e, HASH, blob(bytes(32)))), "IC-21"),
    "ids that descend": (
        events(lambda _, e: e._replace(eventId=1000 - e.eventId, prevEventId=None)),
        "IC-25",
    ),
    "another event under the same id": (events(_restless), "IC-48 repeats"),
    "publishes elsewhere": (asked("icrc72_publish", elsewhere), "IC-39 entry"),
    "publishes before it is told where": (around("inbox.begin", _hasty), "IC-39 entry"),
    "heeds no answer": (asked("icrc72_publish", unheeding), "IC-48"),
    "sends accepted events again": (asked("icrc72_publish", forgetful), "IC-48 again"),
    "sends two batches at once": (around("send", _twice), "IC-48 batches"),
    "believes a stranger's alert": (trusting, "IC-49b strangers"),
    "confirms no alert": (asked(CONFIRM, lambda *_: None), "IC-44"),
    "ids begin anew after an upgrade": (forgetting(_forget_ids), "IC-48"),
    "registers no publication": (around("publisher._register", nothing), "IC-39 publication"),
    "replays other data": (events(lambda _, e: e._replace(data=map_({})), replayed=True), "RP-7"),
    "replays under another number": (
        events(lambda _, e: _headers(e, REPLAY_ID, nat(99)), replayed=True),
        "RP-7 marks",
    ),
    "tells no end": (
        events(lambda _, e: _without(e, REPLAY_END), replayed=True),
        "RP-7 marks",
    ),
    "tells a wrong end": (
        events(lambda _, e: _headers(e, REPLAY_END, nat(1)), replayed=True),
        "RP-7 marks",
    ),
    "replays other events": (
        argument(
            "icrc72_publish",
            lambda _, batch: tuple(
                each._replace(eventId=each.eventId + is_replayed(each)) for each in batch
            ),
        ),
        "RP-2",
    ),
    "ends an open replay early": (ends_early, "RP-2 open"),
    "never reports": (asked("icrc77_replay_status", lambda *_: None), "RP-5"),
    "reports too many": (retold(99), "RP-5"),
    "reports a replay as canceled": (retold(4, "canceled"), "RP-5"),
    "traps in an upgrade": (upgrade_traps, "IC-8"),
    "takes ids of the namespace's creator": (
        events(lambda _, e: e._replace(eventId=e.eventId % 2**64, prevEventId=None)),
        "IC-25 unique",
    ),
    "stays with a broadcaster that died": (
        around("publisher._assign", _first_entry),
        "IC-39 moved",
    ),
}
_UNAUTHORIZED = err("Unauthorized")


def nothing_of(_items: Any) -> tuple[Any, ...]:
    """Accept no item."""
    return ()


ORCHESTRATORS: dict[str, tuple[Any, ...]] = {
    "takes any publication": (
        lying("icrc72_register_publication", all_ok),
        *("IC-31 system", "IC-31 creator", "IC-30b keys"),
    ),
    "takes any subscription": (
        lying("icrc72_register_subscription", all_ok),
        "IC-32 system",
        "IC-26",
    ),
    "a new id for the same subscription": (
        lying("icrc72_register_subscription", numbered()),
        "IC-32",
    ),
    "answers 101 items short": (lying("icrc72_register_publication", shortened), "IC-30a"),
    "anybody changes a publication": (lying("icrc72_update_publication", every(True)), "IC-34"),
    "deletes what is not there": (lying("icrc72_delete_publication", every(True)), "IC-34 unknown"),
    "lists nothing": (lying("icrc72_get_publications", lambda _: ()), "IC-35b"),
    "lists backwards": (lying("icrc72_get_publications", lambda found: found[::-1]), "IC-35a"),
    "one page for all": (lying("icrc72_get_publications", once()), "IC-35a pages"),
    "lists no broadcaster": (lying("icrc72_get_broadcasters", lambda _: ()), "IC-35b broadcasters"),
    "replays anything to anybody": (
        lying("icrc77_register_replay", all_ok),
        "RP-3 range",
        "RP-3 who",
        "RP-3 wide",
    ),
    "anybody reports": (lying("icrc77_replay_status", all_ok), "RP-5 who"),
    "forgets replays": (lying("icrc77_get_replays", lambda _: ()), "RP-5"),
    "cancels what is over": (lying("icrc77_cancel_replay", all_ok), "RP-11"),
    "traps in an upgrade": (upgrade_traps, "IC-8"),
    "traps now and then": (trapping("icrc72_register_publication"), "IC-4"),
    "lets nobody join": (
        hearing(
            "icrc72_register_publication",
            lambda items: tuple(
                each._replace(config=tuple(p for p in each.config if "allowed" not in p[0]))
                for each in items
            ),
        ),
        "IC-33",
    ),
    "lets nobody change anything": (
        lying("icrc72_update_publication", lambda found: tuple(_UNAUTHORIZED for _ in found)),
        "IC-34 own",
    ),
    "lets everybody subscribe": (everybody_may, "IC-33 disallowed"),
    "removes nothing from lists": (
        hearing(
            "icrc72_update_publication",
            lambda items: tuple(
                each._replace(config=("other:key", nat(1)))
                if each.config[0].endswith(":remove")
                else each
                for each in items
            ),
        ),
        "IC-34 listed",
    ),
    "forgets changes of publications": (
        hearing(
            "icrc72_update_publication",
            lambda items: tuple(each._replace(config=("other:key", nat(1))) for each in items),
        ),
        "IC-34 listed",
    ),
    "forgets changes of subscriptions": (
        hearing(
            "icrc72_update_subscription",
            lambda items: tuple(each._replace(config=("other:key", nat(1))) for each in items),
        ),
        "IC-34 update",
    ),
    "deletes no subscription": (hearing("icrc72_delete_subscription", nothing_of), "IC-34 delete"),
    "deletes no publication": (hearing("icrc72_delete_publication", nothing_of), "IC-34 gone"),
}
BROADCASTERS: dict[str, tuple[Any, ...]] = {
    "answers Ok to anybody": (lying("icrc72_publish", every(())), "IC-41", "IC-41 source"),
    "answers 101 items short": (lying("icrc72_publish", shortened), "IC-30a"),
    "confirms whatever is said": (lying(CONFIRM, lambda _: Variant("allAccepted", None)), "IC-44"),
    "loses every fifth event": (dropping(lambda each: each.eventId % 5 > 0), "IC-43"),
    "loses what is replayed": (dropping(lambda each: not is_replayed(each)), "RP-8"),
    "traps in an upgrade": (upgrade_traps, "IC-8"),
    "traps now and then": (trapping("icrc72_publish"), "IC-4"),
    "loses a partition": (
        dropping(lambda each: each.namespace != "trial.parts" or each.eventId % 3 != 1),
        "IC-37 partitions",
    ),
    "loses events without order": (
        dropping(lambda each: each.namespace != "trial.loose" or each.eventId % 3 != 1),
        "IC-43 modes",
    ),
    "reverses priorities": (
        viewing(priorities=lambda ranks: {who: -rank for who, rank in ranks.items()}),
        "IC-43 priority",
    ),
    "has no trusted endpoint": (viewing(trusted=lambda _: False), "IC-46 endpoint"),
    "loses trusted events": (
        argument(
            "icrc72_handle_notification_trusted",
            lambda _, notes: tuple(each for each in notes if each.eventId % 3 != 1),
        ),
        "IC-46",
    ),
    "hears only the creator of a namespace": (
        dropping(lambda each: each.eventId < 2**64),
        "IC-41 two",
    ),
    "keeps the first filter": (
        assigning(lambda state, fact: isinstance(fact, SubscriberFact) and fact in state.facts),
        "IC-34 update",
    ),
    "never stops": (
        assigning(lambda _, fact: isinstance(fact, SubscriberFact), "_remove"),
        "IC-34 stopped",
        "IC-34 delete",
    ),
    "never goes on": (assigning(_served_before()), "IC-34 resumed"),
    "loses isolated replays": (dropping(lambda each: not is_replayed(each)), "RP-9"),
    "loses live events beside a replay": (
        dropping(lambda each: each.namespace != "trial.shared" or not 9 < each.eventId < 14),
        "RP-9 live",
    ),
}
WRONG = {
    f"{name}: {what}": (role(name, wrong), *rules)
    for name, listed in zip(
        ROLES, (SUBSCRIBERS, PUBLISHERS, BROADCASTERS, ORCHESTRATORS), strict=True
    )
    for what, (wrong, *rules) in listed.items()
} | {
    f"broadcaster: cheats: {each.name}": (
        lambda me, broker=each.broker: RoleCanister([broker(me)]),
        rule,
    )
    for each in CHEATS
    if (rule := FOUND_BY.get(each.name, ""))
}
"""What makes each wrong role, and the rules that it breaks."""

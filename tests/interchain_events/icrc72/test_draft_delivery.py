"""The drafts' own text against broadcasters, publishers and subscribers that somebody else
wrote.
"""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.icrc72.canister_apps import NAME, Lab, Source, keeping

from interchain_events.icrc72 import RoleCanister, keys
from interchain_events.icrc72.broadcaster.core import Broadcaster
from interchain_events.icrc72.client import App, EventNotification
from interchain_events.icrc72.errors import Icrc72Error
from interchain_events.icrc72.ic.candid.decode import Decoder
from interchain_events.icrc72.ic.candid.did import parse_types
from interchain_events.icrc72.ic.candid.encode import Encoder
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.canister import ONE_WAY, CallContext, Canister, Context
from interchain_events.icrc72.ic.errors import Trap
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.messages import ByPrincipal, Event
from interchain_events.icrc72.methods import CONFIRM, HANDLE, PUBLISH
from interchain_events.icrc72.namespaces import system_namespace
from interchain_events.icrc72.services import codec, interface
from interchain_events.icrc72.settings import DEFAULTS
from interchain_events.icrc72.values import Pairs, Value, array, blob, map_, nat, of, option, text


class Placing(App):
    """Publishes an event of any id: the argument is the id. What is refused is in `data`."""

    def on_call(self, ctx: Context, method: str, arg: bytes) -> None:
        self.emit(ctx, method, {"n": 1}, number=int(arg) if arg else None)
        ctx.reply(b"")

    def on_refused(self, ctx: Context, event: Event, why: str) -> None:
        del ctx
        self.data.append((event.eventId, why))


Ids = keeping(lambda note: note.eventId)


def event(
    source: Principal, number: int, prev: int | None = None, headers: Pairs | None = None
) -> Event:
    return Event(
        number, prev, 1, namespace=NAME, data=nat(number % 1000), source=source, headers=headers
    )


def bring(lab: Lab, probe: Principal, *events: Event) -> list[Any]:
    return list(lab.answer(probe, lab.broadcasters[0], "icrc72_publish", events))


IDS = (1, 2**64, 2**127 + 3, int.from_bytes(b"a blob of 25 bytes, or so", "big"))


@pytest.mark.parametrize("mode", ["fifo", "unordered"])
def test_s000_014_021_ids_of_any_size_are_delivered(mode: str, lab: Lab) -> None:
    reader = lab.install(Ids, 1, subscriptions={NAME: {}})
    source = lab.teller((keys.MODE, mode))
    for prev, number in zip((None, *IDS), IDS, strict=False):
        assert (
            bring(lab, source, event(source, number, None if mode == "unordered" else prev))[0].tag
            == "Ok"
        )
    lab.step(60)
    assert lab.app(reader).data == list(IDS)


def test_s000_014_021_an_app_gives_ids_of_any_size_and_goes_on_after_them(lab: Lab) -> None:
    source, reader = lab.source_and_sink(Ids, Placing, rounds=80)
    for arg in (b"%d" % (2**64 + 5), b"", b"%d" % 2**200, b""):
        lab.call(source, NAME, arg)
        lab.step(5)
    lab.step(60)
    assert lab.app(reader).data == [2**64 + 5, 2**64 + 6, 2**200, 2**200 + 1]


def test_an_event_that_nobody_can_place_is_an_error_of_emit(lab: Lab) -> None:
    source = lab.install(Placing, 0, publications={NAME: {}})
    lab.step(60)
    app = lab.app(source)
    ctx = Context(lab.network._hosts[source], source, source, 0)
    app.emit(ctx, NAME, 1, number=7)
    with pytest.raises(Icrc72Error, match=r"event 7 of .* does not come after"):
        app.emit(ctx, NAME, 1, number=7)
    with pytest.raises(Icrc72Error, match="only broadcasters append"):
        app.emit(ctx, NAME, 1, ((keys.RECEIVED, nat(1)),))
    with pytest.raises(Icrc72Error, match="not the hash"):
        app.emit(ctx, NAME, 1, ((keys.HASH, blob(bytes(32))),))


def test_a_permanently_refused_event_returns_to_its_author_and_others_continue(
    lab: Lab,
) -> None:
    allowed = {keys.list_key("publishers:allowed"): []}
    first_source = lab.teller(*allowed.items())
    app = lab.network.next_id(0)
    lab.system.registry.state.publications[1].config.lists["publishers:allowed"] = (app,)
    source = lab.install(Placing, 0, publications={NAME: {}})
    reader = lab.install(Ids, 1, subscriptions={NAME: {}})
    assert bring(lab, first_source, event(first_source, 5))[0].tag == "Ok"
    lab.step(80)
    for arg in (b"4", b"5", b"6", b""):
        lab.call(source, NAME, arg)
        lab.step(1)
    lab.step(120)
    ((number, why),) = lab.app(source).data
    assert (number, "ids are unique in a namespace" in why) == (5, True)
    assert lab.app(source).publisher.state.refused == [(NAME, 5, why)]
    assert sorted(lab.app(reader).data) == [4, 6, 7]


def test_s000_023_a_second_publisher_may_use_any_id_that_is_not_used(lab: Lab) -> None:
    other = lab.network.next_id(0)
    lab.probe(0)
    source = lab.teller((keys.list_key("publishers:allowed"), [bytes(other)]))
    assert lab.publish(other).tag == "Ok"
    lab.step(60)
    assert bring(lab, source, event(source, 2))[0].tag == "Ok"
    assert bring(lab, other, event(other, 1))[0].tag == "Ok"
    why = f"{source.text} has published an event with this id: ids are unique in a namespace"
    assert bring(lab, other, event(other, 2, 1))[0].value == ("ImproperId", why)
    assert bring(lab, other, event(other, 3, 1))[0].tag == "Ok"


def test_s000_025_the_former_event_is_left_to_the_publisher(lab: Lab) -> None:
    source = lab.teller()
    found = bring(lab, source, event(source, 1), event(source, 2), event(source, 3, 2))
    assert [each.tag for each in found] == ["Ok"] * 3
    assert bring(lab, source, event(source, 9, 7))[0].value.tag == "ImproperId"
    free = Lab()
    source = free.teller((keys.MODE, "unordered"))
    assert [each.tag for each in bring(free, source, event(source, 3), event(source, 2, 1))] == [
        "Ok"
    ] * 2


def test_s000_028_a_partition_needs_no_header_of_ours() -> None:
    lab = Lab(broadcasters=(0, 0, 1))
    source = lab.teller((keys.PARTITIONS, 2))
    entry = lab.system.registry.state.publications[1].entries[source][1]
    assert lab.answer(source, entry, "icrc72_publish", (event(source, 1),))[0].tag == "Ok"
    wrong: Pairs = ((keys.PARTITION, of([0, 2])),)
    assert (
        lab.answer(source, entry, "icrc72_publish", (event(source, 3, 1, wrong),))[0].value.tag
        == "ImproperId"
    )


def test_s000_127_a_relayer_brings_the_headers_of_the_draft_only(lab: Lab) -> None:
    reader = lab.install(Ids, 1, subscriptions={NAME: {}})
    source = lab.teller()
    entry, exit_ = lab.broadcasters
    headers: Pairs = (("icrc72:broadcaster:received", nat(1)), (keys.RELAY_SENT, nat(2)))
    relay = lab.network.canister(entry)
    assert isinstance(relay, RoleCanister)
    answers: list[Any] = []
    ctx = Context(lab.network._hosts[entry], entry, entry, 0)
    relay.ask(
        ctx,
        exit_,
        PUBLISH,
        (event(source, 4, None, headers),),
        lambda _ctx, found: answers.append(found),
    )
    host = lab.network._hosts[entry]
    lab.network._perform(host, CallContext(None, host.life, owes=False), ctx)
    lab.step(60)
    assert answers[0][0].tag == "Ok"
    assert lab.app(reader).data == [4]
    twice: Pairs = (*headers, (keys.RELAY_RECEIVED, nat(3)))
    ctx = Context(lab.network._hosts[exit_], exit_, entry, 0)
    (again,) = lab.system.broadcaster(exit_).publish(ctx, (event(source, 5, None, twice),))
    assert again.value.tag == "Unauthorized"


@pytest.mark.parametrize("alerts", [False, True], ids=["without alerts", "with alerts"])
def test_s000_131_who_never_confirms_gets_every_event_once_and_is_named(alerts: bool) -> None:
    lab = Lab(settings=replace(DEFAULTS, stats_check=10))
    probe = lab.probe(1)
    if alerts:
        lab.subscribe(probe, name=system_namespace("subscriber", probe))
    lab.subscribe(probe)
    source = lab.install(Source, 0, publications={NAME: {}})
    lab.step(60)
    lab.emit(source, *range(1, 11), then=300)
    came = [note.eventId for _, note in lab.probed(probe).notified if note.namespace == NAME]
    assert came == list(range(1, 11))
    queue = lab.system.broadcaster(lab.broadcasters[1]).state.queues[probe]
    assert not queue.suspended
    named = dict(lab.ask("icrc72_get_broadcaster_stats", to=lab.broadcasters[1]))
    assert named[f"icrc72:subscriber:{probe.text}:unconfirmed"] == nat(10 + alerts)
    shown = {
        each.subscriber: dict(each.stats)
        for each in lab.ask("icrc72_get_subscribers", ByPrincipal())
    }
    assert shown[probe]["icrc72:subscriber:stats:unconfirmed"] == nat(10 + alerts)
    last = lab.probed(probe).notified[-1][1].notificationId
    assert lab.answer(probe, lab.broadcasters[1], "icrc72_confirm_notifications", (last,)) == (
        "allAccepted",
        None,
    )


def test_s000_131_who_is_down_and_has_never_confirmed_loses_nothing(lab: Lab) -> None:
    probe = lab.probe(1)
    lab.subscribe(probe)
    source = lab.install(Source, 0, publications={NAME: {}})
    lab.step(60)
    lab.network.stop(probe)
    lab.step(3)
    lab.emit(source, 1, rounds=60)
    lab.network.start(probe)
    lab.step(120)
    assert [note.eventId for _, note in lab.probed(probe).notified] == [1]


def test_s000_132_a_trusted_refusal_is_read_in_both_spellings() -> None:
    value = "variant { Blob : blob; Text : text; Nat : nat; Int : int }"
    drafted = Decoder(parse_types(f"(variant {{ Ok : {value}; err : text }})"))
    rets = codec("icrc72_handle_notification_trusted").rets
    assert drafted.decode(rets.encode(Variant("err", "3 of 3 were not taken"))) == (
        ("err", "3 of 3 were not taken"),
    )
    types = interface("readings").methods["icrc72_handle_notification_trusted__capital"].results
    assert rets.decode(Encoder(types).encode(Variant("Err", "no"))) == (("Err", "no"),)


class Foreign(Canister):
    """An orchestrator that somebody else wrote: it notifies, and has no optional method."""

    heartbeat: bool = True

    def __init__(self) -> None:
        self.due: list[tuple[Principal, Value]] = []
        self.confirmed: list[int] = []
        self.sent = 0

    def on_heartbeat(self, ctx: Context) -> None:
        for to, data in self.due:
            self.sent += 1
            name = system_namespace("broadcaster", to)
            note = EventNotification(
                self.sent,
                self.sent,
                None,
                timestamp=1,
                namespace=name,
                data=data,
                headers=None,
                source=ctx.me,
                filter=None,
            )
            ctx.call(to, HANDLE.name, HANDLE.argument((note,)), kind=ONE_WAY)
        self.due.clear()

    def update(self, ctx: Context, method: str, arg: bytes) -> None:
        if method == CONFIRM.name:
            self.confirmed += CONFIRM.value(arg)
        elif method.startswith("icrc77_"):
            raise Trap(f"no method {method}")
        elif method == "icrc72_get_publications":
            ctx.reply(codec(method).rets.encode(((NAME, 1, (), ()),)))
        else:
            ctx.reply(codec(method).rets.encode((Variant("Ok", 1),)))

    def snapshot(self) -> None:
        """Nothing: it traps before it writes."""

    def restore(self, snapshot: object) -> None:
        """Nothing to undo."""


def foreign(*alerts: Value) -> tuple[Lab, Foreign, Broadcaster]:
    """A broadcaster that got alerts from an orchestrator that somebody else wrote."""
    lab = Lab()
    orchestrator = Foreign()
    there = lab.network.create(0, orchestrator)
    core = Broadcaster(there, lab.settings)
    here = lab.network.create(0, RoleCanister([core]))
    lab.step(10)
    for data in alerts:
        orchestrator.due.append((here, data))
        lab.step(12)
    return lab, orchestrator, core


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(
            array([nat(1), blob(b"x")]),
            id="a number first",
        ),
        pytest.param(
            text("x"),
            id="text alone",
        ),
        pytest.param(
            array([text(NAME)]),
            id="one part",
        ),
        pytest.param(
            array([text(NAME), blob(b"x"), nat(1), nat(1)]),
            id="too many parts",
        ),
    ],
)
def test_an_alert_with_an_unreadable_entry_is_neither_applied_nor_confirmed(
    entry: Value,
) -> None:
    good = array([text(NAME), blob(b"source")])
    _, orchestrator, core = foreign(map_({keys.RELAYER_ADD: array([good, entry])}))
    assert orchestrator.confirmed == []
    assert not core.state.relayers
    assert core.state.counts["unreadable"] == 1


def test_s001_040_s000_014_a_replay_and_a_publication_of_an_orchestrator_without_our_keys() -> None:
    source = Principal(b"source")
    parts: list[Value] = [
        nat(9),
        text(NAME),
        blob(b"me"),
        blob(b"reader"),
        text("n == 3"),
        option(None),
    ]
    adds = {
        keys.PUBLISHER_ADD: array([array([text(NAME), blob(source)])]),
        keys.REPLAY_ADD: array([array(parts)]),
    }
    lab, orchestrator, core = foreign(map_(adds))
    assert orchestrator.confirmed == [1]
    assert (core.state.delivered[9].filter, core.state.delivered[9].publisher) == ("n == 3", None)
    host = lab.network._hosts[core.role.me]
    (answer,) = core.publish(Context(host, core.role.me, source, 1), (event(source, 1),))
    assert answer.tag == "Ok"


def test_rp_2_who_hands_a_replay_over_may_be_named_before_the_replay() -> None:
    parts: list[Value] = [
        nat(9),
        text(NAME),
        blob(b"entry"),
        blob(b"reader"),
        option(None),
        option(None),
    ]
    named = array([nat(9), text(NAME), blob(b"entry")])
    _, orchestrator, core = foreign(
        map_({keys.REPLAY_RELAYER_ADD: array([named])}),
        map_({keys.REPLAY_ADD: array([array(parts)])}),
    )
    assert orchestrator.confirmed == [1, 2]
    assert core.state.delivered[9].source == Principal(b"entry")


def test_ic_49e_events_behind_a_former_exits_late_event_are_requested(
    monkeypatch: pytest.MonkeyPatch, lab: Lab
) -> None:
    source, reader = lab.source_and_sink()
    subscriber = lab.app(reader).subscriber
    assert subscriber is not None
    gaps: list[Any] = []
    monkeypatch.setattr(subscriber, "_gap", gaps.append)
    host = lab.network._hosts[reader]
    for number, prev in (
        (9, None),
        (3, 2),
    ):  # the chain began with a new exit; 3 waits for what is before it
        note = EventNotification(
            number,
            number,
            prev,
            timestamp=1,
            namespace=NAME,
            data=nat(number),
            headers=(),
            source=source,
            filter=None,
        )
        assert subscriber.take(
            Context(host, reader, lab.broadcasters[0], 1), lab.broadcasters[0], note
        )
    for now in (lab.settings.gap_wait, 2 * lab.settings.gap_wait):
        subscriber._notice(cast("Context", SimpleNamespace(now=now)))
    assert [(each.low, each.high) for each in gaps] == [(None, 3), (3, 9)]


def test_s000_133_a_subscriber_tells_its_rate_its_errors_and_what_it_holds(lab: Lab) -> None:
    source, reader = lab.source_and_sink()
    lab.emit(source, 1, rounds=20)
    shown = dict(lab.ask("icrc72_get_subscriber_stats", to=reader))
    prefix = "icrc72:subscriber:stats:"
    assert shown[f"{prefix}notifications_last_100_rounds"].value > 0
    assert {f"{prefix}held", f"{prefix}unreadable", f"{prefix}handler_failures"} <= set(shown)

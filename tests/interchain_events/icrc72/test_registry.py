"""Every key of the catalogue, registration, lists, queries, statistics, work (IC-20 to IC-38, RP-1,
RP-12).
"""

from itertools import pairwise
from typing import Any

import pytest
from support.icrc72.canister_apps import NAME, Lab, Lists, Sink, Source, keeping

from interchain_events.icrc72 import keys
from interchain_events.icrc72 import messages as m
from interchain_events.icrc72.client import FILTER, REPLAY, App, Context, EventNotification
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.messages import PublicationUpdate
from interchain_events.icrc72.orchestrator.messenger import Messenger
from interchain_events.icrc72.orchestrator.planner import Planner
from interchain_events.icrc72.services import interface
from interchain_events.icrc72.values import (
    Pairs,
    array,
    blob,
    boolean,
    first,
    nat,
    of,
    option,
    text,
)

WHO = Principal(b"\1\2\3")
LEDGER = Principal(bytes(9) + b"\1")
PRICE = Variant(
    "Class", (("perEvent", nat(5), True), ("currency", text(f"icrc2:{LEDGER.text}"), True))
)
MANY = array([blob(WHO), Variant("Principal", WHO)])

GOOD: dict[str, tuple[Variant, ...]] = {
    **{
        keys.list_key(which) + how: (array([]), MANY)
        for which in keys.LISTS
        for how in ("", ":add", ":remove")
    },
    **{keys.icrc75_key(which): (array([blob(WHO), text("friends")]),) for which in keys.LISTS},
    **{keys.icrc75_key(which) + ":remove": (nat(1), option(None)) for which in keys.LISTS},
    keys.CONTROLLERS_ADD: (MANY,),
    keys.CONTROLLERS_REMOVE: (MANY,),
    keys.MODE: tuple(text(each) for each in ("fifo", "priority", "unordered")),
    keys.PARTITIONS: (nat(1), nat(16)),
    keys.PRIORITIES: (array([]), array([array([blob(WHO), nat(9)])])),
    keys.TRUSTED: (boolean(True), boolean(False)),
    keys.REPLAY: (boolean(True),),
    keys.PRICING: (PRICE,),
    keys.MAX_RANGE: (nat(1),),
    keys.MAX_CONCURRENT: (nat(1),),
    keys.SKIP: (array([nat(3)]), array([nat(3), nat(2)]), option(None)),
    f"{keys.SKIP}:remove": (nat(1),),
    keys.FILTER: (text("a == 1"), option(None)),
    f"{keys.FILTER}:remove": (boolean(True),),
    keys.STOPPED: (boolean(True), boolean(False)),
    keys.SUBSCRIPTION_ADD: (MANY,),
    keys.SUBSCRIPTION_REMOVE: (MANY,),
    keys.REPLAY_FILTER: (text("a"), option(text("a")), option(None)),
    keys.REPLAY_SKIP: (array([nat(2), nat(1)]), option(array([nat(2)])), option(None)),
    keys.REPLAY_ISOLATED: (boolean(True),),
}
BAD: dict[str, tuple[Variant, ...]] = {
    keys.MODE: (text("lifo"), nat(1)),
    keys.PARTITIONS: (nat(0), nat(17), text("2")),
    keys.PRIORITIES: (array([nat(1)]), array([array([blob(WHO)])]), nat(1), text("x")),
    keys.PRICING: (
        nat(5),
        Variant("Class", (("perEvent", nat(5), True), ("currency", text("icp"), True))),
    ),
    keys.MAX_RANGE: (nat(0), text("1")),
    keys.MAX_CONCURRENT: (nat(0), boolean(True)),
    keys.SKIP: (
        nat(3),
        array([]),
        array([nat(0)]),
        array([nat(3), nat(1), nat(1)]),
        array([option(None)]),
    ),
    keys.FILTER: (nat(1), text("a ==")),
    keys.REPLAY_FILTER: (nat(1), option(nat(1)), text("a ==")),
    keys.REPLAY_SKIP: (nat(1), option(text("a"))),
    **{
        keys.icrc75_key(which): (array([blob(WHO)]), text("x"), array([text("x"), text("y")]))
        for which in keys.LISTS
    },
}
WRONG = (nat(7), text("x"), array([text("x")]))

TABLES = {
    "publication": keys.PUBLICATION,
    "subscription": keys.SUBSCRIPTION,
    "replay": keys.REPLAY_CONFIG,
}
NEVER = {keys.CREATOR, keys.MEMO, keys.SUBSCRIPTION_MEMO}
ANYTHING = {key.name for table in TABLES.values() for key in table if key.value == "any"}


@pytest.fixture
def desk(lab: Lab) -> "Desk":
    return Desk(lab)


class Desk:
    """A publication that can be replayed, and a subscriber, through whose methods configurations
    go.
    """

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.owner, self.reader = self.lab.probe(0), self.lab.probe(1)
        self.ask(
            self.owner,
            "icrc72_register_publication",
            m.PublicationRegistration(NAME, ((REPLAY, of(True)),)),
        )
        self.ask(self.reader, "icrc72_register_subscription", m.SubscriptionRegistration(NAME, ()))
        self.number = 0

    def ask(self, who: Principal, method: str, item: Any) -> Any:
        return self.lab.answer(who, self.lab.orchestrator, method, (item,))[0]

    def sets(self, table: str, config: Pairs) -> Any:
        self.number += 1
        if table == "publication":
            item: Any = m.PublicationRegistration(f"{NAME}{self.number}", config)
            return self.ask(self.owner, "icrc72_register_publication", item)
        if table == "subscription":
            item = m.SubscriptionRegistration(f"{NAME}{self.number}", config)
            return self.ask(self.reader, "icrc72_register_subscription", item)
        return self.ask(
            self.reader, "icrc77_register_replay", m.ReplayRegistration(NAME, (1, 2), config)
        )


@pytest.mark.parametrize("table", TABLES)
def test_ic_30b_every_key_and_alias_is_accepted_only_with_its_own_values(
    desk: Desk, table: str
) -> None:
    desk.lab.system.registry.replays.settings = desk.lab.settings.__class__(
        live_replays=1000, replay_requests=1000
    )
    for key in TABLES[table]:
        for name in (key.name, *key.aliases):
            for value in () if key.name in NEVER else GOOD[key.name]:
                assert desk.sets(table, ((name, value),)).tag == "Ok", (name, value)
            for value in () if key.name in ANYTHING else BAD.get(key.name, WRONG):
                refused = desk.sets(table, ((name, value),))
                assert refused.tag == "Err", (name, value)
                assert refused.value.tag == "ImproperConfig", (name, value)
    foreign = desk.sets(table, (("icrc72:publication:colour", nat(1)),))
    assert foreign.value == (
        "ImproperConfig",
        "the key 'icrc72:publication:colour' is not known here",
    )
    assert desk.sets(table, (("colour", nat(1)),)).tag == "Ok"


def test_ic_30b_a_long_memo_and_a_large_configuration_are_refused(desk: Desk) -> None:
    named = Variant("namespace", NAME)
    long, fits, huge = bytes(33), bytes(32), bytes((16 << 10) + 1)
    for who, method, item in (
        (desk.owner, "icrc72_register_publication", m.PublicationRegistration(NAME, (), huge)),
        (desk.owner, "icrc72_update_publication", m.PublicationUpdate(named, ("x", nat(1)), huge)),
        (desk.reader, "icrc72_register_subscription", m.SubscriptionRegistration(NAME, (), long)),
        (
            desk.reader,
            "icrc72_update_subscription",
            m.SubscriptionUpdate(named, ("x", nat(1)), None, long),
        ),
        (desk.reader, "icrc77_register_replay", m.ReplayRegistration(NAME, (1, 2), (), long)),
    ):
        assert desk.ask(who, method, item).value.tag == "ImproperConfig"
        assert desk.ask(who, method, item._replace(memo=fits)).tag == "Ok"
    for who, method, kind, memo in (
        (desk.reader, "icrc72_delete_subscription", m.SubscriptionDelete, long),
        (desk.owner, "icrc72_delete_publication", m.PublicationDelete, huge),
    ):
        deletion: Any = kind(named, memo=memo)  # type: ignore[call-arg]
        assert desk.ask(who, method, deletion).value.value.error_code == keys.TOO_LARGE
        assert desk.ask(who, method, deletion._replace(memo=fits)) == ("Ok", True)
        assert (
            desk.ask(who, method, deletion._replace(memo=fits)).value.value.error_code
            == keys.NOT_FOUND
        )
    large = (("own", text("x" * (16 << 10))),)
    assert desk.sets("publication", large).value.tag == "ImproperConfig"
    assert desk.sets("subscription", large).value.tag == "ImproperConfig"


def test_ic_34_i9_controllers_count_in_the_size_of_a_configuration(desk: Desk) -> None:
    crowd = array(blob(b"%08d" % at) for at in range(2000))
    change = m.PublicationUpdate(Variant("namespace", NAME), (keys.CONTROLLERS_ADD, crowd))
    assert desk.ask(desk.owner, "icrc72_update_publication", change).value.tag == "ImproperConfig"
    mine = m.SubscriptionUpdate(Variant("namespace", NAME), (keys.SUBSCRIPTION_ADD, crowd))
    assert desk.ask(desk.reader, "icrc72_update_subscription", mine).value.tag == "ImproperConfig"


def test_ic_31_ic_32_quotas_and_ids_that_are_never_used_again(desk: Desk) -> None:
    results = [desk.sets("publication", ()) for _ in range(100)]
    assert [each.tag for each in results[:99]] == ["Ok"] * 99
    assert results[99].value.value.error_code == keys.QUOTA
    gone = m.PublicationDelete(Variant("namespace", NAME))
    assert desk.ask(desk.owner, "icrc72_delete_publication", gone) == ("Ok", True)
    again = desk.ask(desk.owner, "icrc72_register_publication", m.PublicationRegistration(NAME, ()))
    assert again == ("Ok", 101)
    results = [desk.sets("subscription", ()) for _ in range(100)]
    assert results[99].value.value.error_code == keys.QUOTA


def test_ic_32_system_namespaces_are_for_whom_they_name_and_take_no_filter(desk: Desk) -> None:
    me = f"icrc72:subscriber:sys:{desk.reader.text}"
    for name in (
        f"icrc72:subscriber:sys:{desk.owner.text}",
        f"icrc72:broadcaster:sys:{desk.reader.text}",
        "icrc9:x",
    ):
        result = desk.ask(
            desk.reader, "icrc72_register_subscription", m.SubscriptionRegistration(name, ())
        )
        assert result.value.tag == "Unauthorized"
    for key, value in (
        (FILTER, text("a")),
        (keys.SKIP, array([nat(2)])),
        (keys.STOPPED, boolean(True)),
    ):
        item = m.SubscriptionRegistration(me, ((key, value),))
        assert (
            desk.ask(desk.reader, "icrc72_register_subscription", item).value.tag
            == "ImproperConfig"
        )
    one, two = (desk.lab.subscribe(desk.reader, name=me) for _ in range(2))
    assert one == two


def test_ic_35_pages_statistics_and_waiting_subscriptions(desk: Desk) -> None:
    lab = desk.lab
    for number in range(3):
        desk.sets("publication", ())
        desk.ask(
            desk.reader,
            "icrc72_register_subscription",
            m.SubscriptionRegistration(f"wait.{number}.**", ()),
        )
    names = [each.namespace for each in lab.ask("icrc72_get_publications", m.ByText())]
    assert names == sorted(names, key=str.encode)
    assert [
        each.namespace for each in lab.ask("icrc72_get_publications", m.ByText("org.example.a0", 2))
    ] == names[1:3]
    assert lab.ask("icrc72_get_publications", m.ByText(None, 0)) == ()
    prefix = "icrc72:publication:stats:"
    every = lab.ask("icrc72_get_publications", m.ByText())[0].stats
    assert [name for name, _ in every] == [prefix + name for name in keys.STATISTICS[prefix]]
    for wanted, shown in (
        (Variant("None"), ()),
        (Variant("All"), every),
        (Variant("List", (f"{prefix}events", "other")), ((f"{prefix}events", nat(0)),)),
    ):
        page = m.ByText(None, 1, m.OrchestrationFilter(wanted, ()))
        assert lab.ask("icrc72_get_publications", page)[0].stats == shown

    def waiting(text_: str) -> list[str]:
        slices = (Variant("ByNamespace", text_),)
        page = m.ByNat(None, None, m.OrchestrationFilter(Variant("None"), slices))
        return [each.namespace for each in lab.ask("icrc72_get_subscriptions", page)]

    assert waiting("wait.1.x") == ["wait.1.**"]  # the pattern matches the text
    assert waiting("wait.2.**") == ["wait.2.**"]  # it equals the text
    assert waiting("wait.9") == []
    assert waiting(NAME) == [NAME]


def test_rp_12_replays_are_listed_by_id_without_memos(desk: Desk) -> None:
    for _ in range(3):
        item = m.ReplayRegistration(NAME, (1, 2), (("own", nat(1)),), b"secret")
        assert desk.ask(desk.reader, "icrc77_register_replay", item).tag == "Ok"
    lab = desk.lab
    found = lab.ask("icrc77_get_replays", m.ByNat())
    assert [each.replayId for each in found] == [1, 2, 3]
    assert found[0].config == (("own", nat(1)),)
    assert [each.replayId for each in lab.ask("icrc77_get_replays", m.ByNat(1, 1))] == [2]
    for slices, count in (
        ((Variant("BySubscriber", desk.reader),), 3),
        ((Variant("BySubscriber", desk.owner),), 0),
        ((Variant("ByPublisher", desk.owner), Variant("ByNamespace", "org.**")), 3),
        ((Variant("ByBroadcaster", WHO),), 0),
    ):
        page = m.ByNat(None, None, m.OrchestrationFilter(Variant("None"), slices))
        assert len(lab.ask("icrc77_get_replays", page)) == count


def test_rp_1_replay_adds_methods_to_the_orchestrator_and_changes_none(desk: Desk) -> None:
    extra = {name for name in interface("orchestrator").methods if name.startswith("icrc77_")}
    assert extra == {
        "icrc77_register_replay",
        "icrc77_cancel_replay",
        "icrc77_replay_status",
        "icrc77_get_replays",
    }
    for service in ("broadcaster", "publisher", "subscriber"):
        assert not any(name.startswith("icrc77_") for name in interface(service).methods)
    item = m.ReplayRegistration(NAME, (1, 2), ())
    assert [desk.ask(desk.reader, "icrc77_register_replay", item).value for _ in range(2)] == [1, 2]


class Prices(App):
    def on_call(self, ctx: Context, _method: str, arg: bytes) -> None:
        self.emit(ctx, NAME, {"n": int(arg)}, headers=(("mine", nat(1)), ("mine", nat(2))))
        ctx.reply(b"")


def test_ic_20_ic_22_ic_23_a_notification_repeats_the_event_and_headers_are_only_added(
    lab: Lab,
) -> None:
    source, reader = lab.source_and_sink(keeping(tuple), Prices, **{FILTER: "n > 0"})
    lab.emit(source, 1, 2, rounds=20)
    made = [row.event for row in lab.app(source).publisher.state.log]
    got = [EventNotification(*each) for each in lab.app(reader).data]
    for event, note in zip(made, got, strict=True):
        for name in ("eventId", "prevEventId", "namespace", "data", "source"):
            assert getattr(note, name) == getattr(event, name)
        assert note.filter == "n > 0"
        assert note.timestamp > event.timestamp
        assert first(note.headers, keys.EVENT_TIMESTAMP) == nat(event.timestamp)
        assert event.headers is not None
        assert note.headers is not None
        assert note.headers[: len(event.headers)] == event.headers
        assert first(note.headers, "mine") == nat(1)  # the first of repeated keys counts


def test_ic_35d_the_orchestrator_shows_the_sums_of_what_broadcasters_say(lab: Lab) -> None:
    source, reader = lab.source_and_sink(keeping(tuple), Prices, **{FILTER: "n > 0"})
    lab.emit(source, 1, 2, 3, rounds=5, then=220)

    def shown(pairs: Pairs, prefix: str) -> dict[str, int]:
        return {name.removeprefix(prefix): value.value for name, value in pairs}

    slices = (Variant("ByNamespace", NAME),)
    page = m.OrchestrationFilter(Variant("All"), slices)
    (publication,) = lab.ask("icrc72_get_publications", m.ByText(None, None, page))
    expected = {
        "publishers": 1,
        "events": 3,
        "events:sent": 3,
        "notifications": 3,
        "confirmations": 3,
    }
    assert shown(publication.stats, "icrc72:publication:stats:") == expected
    (subscription,) = lab.ask("icrc72_get_subscriptions", m.ByNat(None, None, page))
    assert shown(subscription.stats, "icrc72:subscription:stats:") == {
        "notifications": 3,
        "confirmations": 3,
    }
    (publisher,) = lab.ask("icrc72_get_publishers", m.ByPrincipal(None, None, page))
    assert shown(publisher.stats, "icrc72:publisher:stats:") == {"publications": 1, "events": 3}
    (subscriber,) = lab.ask("icrc72_get_subscribers", m.ByPrincipal(None, None, page))
    told = {"subscriptions": 1, "notifications": 3, "confirmations": 3, "unconfirmed": 0}
    assert shown(subscriber.stats, "icrc72:subscriber:stats:") == told
    own = shown(lab.ask("icrc72_get_subscriber_stats", to=reader), "icrc72:subscriber:stats:")
    rate = own.pop("notifications_last_100_rounds")
    assert (rate, {**own, "confirmations": 3}) == (
        0,
        {**dict.fromkeys(own, 0), **told},
    )  # more than 100 rounds ago
    brokers = lab.ask("icrc72_get_broadcasters", m.ByPrincipal(None, None, page))
    assert [shown(each.stats, "icrc72:broadcaster:stats:")["events"] for each in brokers] == [3, 3]


ALLOWED = keys.icrc75_key("subscribers:allowed")


class Reader(Sink):
    subscriptions = {NAME: {}}  # noqa: RUF012 — as authors write it


def update(lab: Lab, owner: Principal, key: str, value: Any) -> Any:
    items = (PublicationUpdate(Variant("namespace", NAME), (key, of(value))),)
    return lab.answer(owner, lab.orchestrator, "icrc72_update_publication", items)[0]


def verdicts(lab: Lab) -> dict[Principal, set[bool]]:
    return {
        who: set(each.values())
        for who, each in lab.system.registry.state.publications[1].subscribers.items()
    }


@pytest.mark.parametrize(
    "other",
    [
        ("first", "others"),
        ("second", "friends"),
    ],
)
def test_ic_33a_a_new_list_is_asked_and_former_answers_do_not_count(
    other: tuple[str, str], lab: Lab
) -> None:
    first, second, owner = lab.install(Lists), lab.install(Lists), lab.probe()
    stays, goes = lab.network.next_id(1), None
    lab.publish(owner, (ALLOWED, [bytes(first), "friends"]))
    lab.app(first).data["friends"].append(stays)
    lab.install(Reader, 1)
    goes = lab.network.next_id(1)
    lab.app(first).data["friends"].append(goes)
    lab.install(Reader, 1)
    lab.step(60)
    assert verdicts(lab) == {stays: {True}, goes: {True}}
    where = {"first": first, "second": second}[other[0]]
    lab.app(where).data[other[1]].append(stays)
    assert update(lab, owner, ALLOWED, [bytes(where), other[1]]) == ("Ok", True)
    assert verdicts(lab) == {stays: {True}, goes: {False}}
    assert update(lab, owner, f"{ALLOWED}:remove", True) == ("Ok", True)
    assert verdicts(lab) == {stays: {True}, goes: {True}}


def test_ic_33a_a_list_canister_that_is_set_interrupts_nobody_whom_it_lists(lab: Lab) -> None:
    lists = lab.install(Lists)
    source, reader = lab.source_and_sink()
    publication = lab.system.registry.state.publications[1]
    controller = lab.probe()
    publication.config = type(publication.config)(source, (source, controller))
    lab.app(lists).data["friends"].append(reader)
    happened = lab.happenings()
    for number in range(40):
        lab.call(source, NAME, b"%d" % number)
        if number == 10:
            assert update(lab, controller, ALLOWED, [bytes(lists), "friends"]) == ("Ok", True)
        lab.step()
    lab.step(40)
    assert lab.app(reader).data == list(range(40))
    assert not any(keys.SUBSCRIBER_REMOVE.encode() in each.data for each in happened)


def test_ic_33b_silence_at_a_change_is_a_no_and_is_told_with_code_6(lab: Lab) -> None:
    lists, owner = lab.install(Lists), lab.probe()
    lab.publish(owner)
    reader = lab.install(Reader, 1)
    lab.step(60)
    lab.app(lists).data["silent"] = True
    assert update(lab, owner, ALLOWED, [bytes(lists), "friends"]) == ("Ok", True)
    assert verdicts(lab) == {reader: {False}}
    lab.step(60)
    assert keys.LIST_SILENT in [each.code for each in lab.app(reader).subscriber.state.errors]
    lab.app(lists).data.update(silent=False, friends=[reader])
    lab.step(30)
    assert verdicts(lab) == {reader: {True}}


def test_ic_33c_a_publisher_that_the_list_drops_ends_and_comes_back(lab: Lab) -> None:
    lists, owner = lab.install(Lists), lab.probe()
    lab.publish(owner, (keys.icrc75_key("publishers:allowed"), [bytes(lists), "friends"]))
    who = lab.network.next_id(0)
    lab.app(lists).data["friends"].append(who)
    source, reader = lab.source_and_sink(rounds=80)
    lab.emit(source, 1, rounds=40)
    lab.app(lists).data["friends"].remove(who)
    lab.step(140)
    lab.emit(source, 2, rounds=60)
    assert lab.app(reader).data == [1]
    assert [
        each.code for each in lab.app(source).publisher.state.errors if each.namespace == NAME
    ] == [0]
    lab.app(lists).data["friends"].append(who)
    lab.step(200)
    assert lab.app(reader).data == [1, 2]


def test_ic_33_a_disallow_list_canister_wins_and_asks_of_many_go_together(lab: Lab) -> None:
    lists, owner = lab.install(Lists), lab.probe()
    readers = [lab.install(Reader, 1) for _ in range(30)]
    lab.app(lists).data["others"] += readers[:3]
    lab.publish(owner)
    lab.step(60)
    happened = lab.happenings()
    update(lab, owner, keys.icrc75_key("subscribers:disallowed"), [bytes(lists), "others"])
    assert verdicts(lab) == {who: {who not in readers[:3]} for who in readers}
    asked = [each for each in happened if each.kind == "send" and each.method == "icrc75_is_member"]
    assert len(asked) == 1


def test_ic_34_to_take_from_a_list_that_is_not_there_shuts_nobody_out(lab: Lab) -> None:
    owner, other = lab.probe(), lab.probe()
    lab.publish(owner)
    assert update(lab, owner, f"{keys.list_key('subscribers:allowed')}:remove", [bytes(other)]) == (
        "Ok",
        True,
    )
    assert lab.subscribe(other).tag == "Ok"


def test_ic_33_the_aliases_add_to_a_list_and_take_from_it(lab: Lab) -> None:
    owner, one, two = lab.probe(), lab.probe(), lab.probe()
    lab.publish(owner, (keys.list_key("subscribers:allowed"), [bytes(one)]))
    key = keys.list_key("subscribers:allowed")
    listed = lab.system.registry.state.publications[1]
    update(lab, owner, f"{key}:add", [bytes(two), bytes(one)])
    assert listed.config.lists["subscribers:allowed"] == (one, two)
    update(lab, owner, f"{key}:remove", [bytes(one)])
    assert listed.config.lists["subscribers:allowed"] == (two,)
    update(lab, owner, key, [bytes(owner)])
    assert listed.config.lists["subscribers:allowed"] == (owner,)


def _work(monkeypatch: pytest.MonkeyPatch, count: int) -> int:
    """How often members were looked at and facts compared until everybody has handled an event."""
    looked = 0

    def counted(original: Any) -> Any:
        def run(*given: Any) -> Any:
            nonlocal looked
            looked += 1
            return original(*given)

        return run

    with monkeypatch.context() as patch:
        patch.setattr(Messenger, "_tell_member", counted(Messenger._tell_member))
        patch.setattr(Planner, "sure", counted(Planner.sure))
        lab = Lab()
        source = lab.install(Source, 0, publications={NAME: {}})
        readers = [lab.install(Sink, at % 2, subscriptions={NAME: {}}) for at in range(count)]
        lab.step(200)
        lab.emit(source, 1, rounds=60)
        assert [lab.app(each).data for each in readers] == [[1]] * count
    return looked


def test_ic_38_the_work_for_members_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = _work(monkeypatch, 20), _work(monkeypatch, 80)
    assert few < 25 * 20  # a member that waits is not looked at in every round
    assert many < 6 * few


def test_ic_38d_system_events_of_many_members_go_together() -> None:
    lab = Lab(broadcasters=(0,))
    happened = lab.happenings()
    lab.install(Source, 0, publications={NAME: {}})
    for _ in range(100):
        lab.install(Sink, 0, subscriptions={NAME: {}})
    lab.step(200)
    sent = [
        each.method for each in happened if each.kind == "send" and each.sender == lab.orchestrator
    ]
    assert 0 < sent.count("icrc72_publish") < 40


def test_ic_49a_an_orchestrator_that_does_not_answer_is_asked_ever_less(lab: Lab) -> None:
    lab.step(20)
    lab.network.stop(lab.orchestrator)
    happened = lab.happenings()
    lab.install(Sink, 0, subscriptions={NAME: {}})
    lab.step(400)
    asked = [
        each.round
        for each in happened
        if (each.kind, each.method) == ("send", "icrc72_get_valid_broadcasters")
    ]
    gaps = [after - before for before, after in pairwise(asked)]
    assert gaps == sorted(gaps)
    assert gaps[-1] >= 64

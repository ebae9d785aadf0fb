"""Every key of the catalogue, registration, changes, queries and statistics (IC-20 to IC-35, RP-1, RP-12)."""

from typing import Any

import pytest
from support.canister_apps import NAME, emit, subscribe

from pubsub_emulator.icrc72 import keys
from pubsub_emulator.icrc72 import messages as m
from pubsub_emulator.icrc72.client import FILTER, REPLAY, App, Context, EventNotification
from pubsub_emulator.icrc72.ic.candid.types import Variant
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.services import interface
from pubsub_emulator.icrc72.values import Pairs, array, blob, boolean, first, nat, of, option, text
from pubsub_emulator.testing.canisters import Canisters

WHO = Principal(b"\1\2\3")
LEDGER = Principal(bytes(9) + b"\1")
PRICE = Variant("Class", (("perEvent", nat(5), True), ("currency", text(f"icrc2:{LEDGER.text}"), True)))
MANY = array([blob(WHO), Variant("Principal", WHO)])

GOOD: dict[str, tuple[Variant, ...]] = {
    **{keys.list_key(which) + how: (array([]), MANY) for which in keys.LISTS for how in ("", ":add", ":remove")},
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
    keys.PRICING: (nat(5), Variant("Class", (("perEvent", nat(5), True), ("currency", text("icp"), True)))),
    keys.MAX_RANGE: (nat(0), text("1")),
    keys.MAX_CONCURRENT: (nat(0), boolean(True)),
    keys.SKIP: (
        *(nat(3), array([]), array([nat(0)]), array([nat(3), nat(3)]), array([nat(3), nat(1), nat(1)])),
        *(array([nat(5), option(nat(5))]), array([option(None)])),
    ),
    keys.FILTER: (nat(1), text("a ==")),
    keys.REPLAY_FILTER: (nat(1), option(nat(1)), text("a ==")),
    keys.REPLAY_SKIP: (nat(1), option(text("a"))),
    **{keys.icrc75_key(which): (array([blob(WHO)]), text("x"), array([text("x"), text("y")])) for which in keys.LISTS},
}
WRONG = (nat(7), text("x"), array([text("x")]))

TABLES = {"publication": keys.PUBLICATION, "subscription": keys.SUBSCRIPTION, "replay": keys.REPLAY_CONFIG}
NEVER = {keys.CREATOR, keys.MEMO, keys.SUBSCRIPTION_MEMO}
ANYTHING = {key.name for table in TABLES.values() for key in table if key.value == "any"}


class Desk:
    """A publication that can be replayed, and a subscriber, through whose methods configurations go."""

    def __init__(self) -> None:
        self.lab = Canisters()
        self.owner, self.reader = self.lab.probe(0), self.lab.probe(1)
        self.ask(self.owner, "icrc72_register_publication", m.PublicationRegistration(NAME, ((REPLAY, of(True)),)))
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
        return self.ask(self.reader, "icrc77_register_replay", m.ReplayRegistration(NAME, (1, 2), config))


@pytest.mark.parametrize("table", TABLES)
def test_ic_30b_every_key_and_alias_is_accepted_with_its_values_and_refused_with_others(table: str) -> None:
    desk = Desk()
    desk.lab.system.registry.replays.settings = desk.lab.settings.__class__(live_replays=1000, replay_requests=1000)
    for key in TABLES[table]:
        for name in (key.name, *key.aliases):
            for value in () if key.name in NEVER else GOOD[key.name]:
                assert desk.sets(table, ((name, value),)).tag == "Ok", (name, value)
            for value in () if key.name in ANYTHING else BAD.get(key.name, WRONG):
                refused = desk.sets(table, ((name, value),))
                assert refused.tag == "Err", (name, value)
                assert refused.value.tag == "ImproperConfig", (name, value)
    foreign = desk.sets(table, (("icrc72:publication:colour", nat(1)),))
    assert foreign.value == ("ImproperConfig", "the key 'icrc72:publication:colour' is not known here")
    assert desk.sets(table, (("colour", nat(1)),)).tag == "Ok"


def test_ic_30b_a_long_memo_and_a_large_configuration_are_refused() -> None:
    desk = Desk()
    named = Variant("namespace", NAME)
    long, fits, huge = bytes(33), bytes(32), bytes((16 << 10) + 1)
    for who, method, item in (
        (desk.owner, "icrc72_register_publication", m.PublicationRegistration(NAME, (), huge)),
        (desk.owner, "icrc72_update_publication", m.PublicationUpdate(named, ("x", nat(1)), huge)),
        (desk.reader, "icrc72_register_subscription", m.SubscriptionRegistration(NAME, (), long)),
        (desk.reader, "icrc72_update_subscription", m.SubscriptionUpdate(named, ("x", nat(1)), None, long)),
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
        assert desk.ask(who, method, deletion._replace(memo=fits)).value.value.error_code == keys.NOT_FOUND
    large = (("own", text("x" * (16 << 10))),)
    assert desk.sets("publication", large).value.tag == "ImproperConfig"
    assert desk.sets("subscription", large).value.tag == "ImproperConfig"


def test_ic_34_i9_controllers_count_in_the_size_of_a_configuration() -> None:
    desk = Desk()
    crowd = array(blob(b"%08d" % at) for at in range(2000))
    change = m.PublicationUpdate(Variant("namespace", NAME), (keys.CONTROLLERS_ADD, crowd))
    assert desk.ask(desk.owner, "icrc72_update_publication", change).value.tag == "ImproperConfig"
    mine = m.SubscriptionUpdate(Variant("namespace", NAME), (keys.SUBSCRIPTION_ADD, crowd))
    assert desk.ask(desk.reader, "icrc72_update_subscription", mine).value.tag == "ImproperConfig"


def test_ic_31_ic_32_quotas_and_ids_that_are_never_used_again() -> None:
    desk = Desk()
    results = [desk.sets("publication", ()) for _ in range(100)]
    assert [each.tag for each in results[:99]] == ["Ok"] * 99
    assert results[99].value.value.error_code == keys.QUOTA
    gone = m.PublicationDelete(Variant("namespace", NAME))
    assert desk.ask(desk.owner, "icrc72_delete_publication", gone) == ("Ok", True)
    again = desk.ask(desk.owner, "icrc72_register_publication", m.PublicationRegistration(NAME, ()))
    assert again == ("Ok", 101)
    results = [desk.sets("subscription", ()) for _ in range(100)]
    assert results[99].value.value.error_code == keys.QUOTA


def test_ic_32_system_namespaces_are_for_whom_they_name_and_take_no_filter() -> None:
    desk = Desk()
    me = f"icrc72:subscriber:sys:{desk.reader.text}"
    for name in (f"icrc72:subscriber:sys:{desk.owner.text}", f"icrc72:broadcaster:sys:{desk.reader.text}", "icrc9:x"):
        result = desk.ask(desk.reader, "icrc72_register_subscription", m.SubscriptionRegistration(name, ()))
        assert result.value.tag == "Unauthorized"
    for key, value in ((FILTER, text("a")), (keys.SKIP, array([nat(2)])), (keys.STOPPED, boolean(True))):
        item = m.SubscriptionRegistration(me, ((key, value),))
        assert desk.ask(desk.reader, "icrc72_register_subscription", item).value.tag == "ImproperConfig"
    one, two = (subscribe(desk.lab, desk.reader, name=me) for _ in range(2))
    assert one == two


def test_ic_35_pages_statistics_and_waiting_subscriptions() -> None:
    desk = Desk()
    lab = desk.lab
    for number in range(3):
        desk.sets("publication", ())
        desk.ask(desk.reader, "icrc72_register_subscription", m.SubscriptionRegistration(f"wait.{number}.**", ()))
    names = [each.namespace for each in lab.ask("icrc72_get_publications", m.ByText())]
    assert names == sorted(names, key=str.encode)
    assert [each.namespace for each in lab.ask("icrc72_get_publications", m.ByText("org.example.a0", 2))] == names[1:3]
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


def test_rp_12_replays_are_listed_by_id_without_memos() -> None:
    desk = Desk()
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


def test_rp_1_replay_adds_methods_to_the_orchestrator_and_changes_none() -> None:
    extra = {name for name in interface("orchestrator").methods if name.startswith("icrc77_")}
    assert extra == {"icrc77_register_replay", "icrc77_cancel_replay", "icrc77_replay_status", "icrc77_get_replays"}
    for service in ("broadcaster", "publisher", "subscriber"):
        assert not any(name.startswith("icrc77_") for name in interface(service).methods)
    desk = Desk()
    item = m.ReplayRegistration(NAME, (1, 2), ())
    assert [desk.ask(desk.reader, "icrc77_register_replay", item).value for _ in range(2)] == [1, 2]


class Source(App):
    publications = {NAME: {}}  # noqa: RUF012 — as authors write it

    def on_call(self, ctx: Context, _method: str, arg: bytes) -> None:
        self.emit(ctx, NAME, {"n": int(arg)}, headers=(("mine", nat(1)), ("mine", nat(2))))
        ctx.reply(b"")


class Keeper(App):
    subscriptions = {NAME: {FILTER: "n > 0"}}  # noqa: RUF012 — as authors write it

    def on_event(self, _ctx: Context, event: EventNotification) -> None:
        self.data.append(tuple(event))


def test_ic_20_ic_22_ic_23_a_notification_repeats_the_event_and_headers_are_only_added() -> None:
    lab = Canisters()
    source, reader = lab.install(Source, 0), lab.install(Keeper, 1)
    lab.step(60)
    emit(lab, source, 1, 2, rounds=20)
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


def test_ic_35d_the_orchestrator_shows_the_sums_of_what_broadcasters_say() -> None:
    lab = Canisters()
    source, reader = lab.install(Source, 0), lab.install(Keeper, 1)
    lab.step(60)
    emit(lab, source, 1, 2, 3, rounds=5)
    lab.step(220)

    def shown(pairs: Pairs, prefix: str) -> dict[str, int]:
        return {name.removeprefix(prefix): value.value for name, value in pairs}

    slices = (Variant("ByNamespace", NAME),)
    page = m.OrchestrationFilter(Variant("All"), slices)
    (publication,) = lab.ask("icrc72_get_publications", m.ByText(None, None, page))
    expected = {"publishers": 1, "events": 3, "events:sent": 3, "notifications": 3, "confirmations": 3}
    assert shown(publication.stats, "icrc72:publication:stats:") == expected
    (subscription,) = lab.ask("icrc72_get_subscriptions", m.ByNat(None, None, page))
    assert shown(subscription.stats, "icrc72:subscription:stats:") == {"notifications": 3, "confirmations": 3}
    (publisher,) = lab.ask("icrc72_get_publishers", m.ByPrincipal(None, None, page))
    assert shown(publisher.stats, "icrc72:publisher:stats:") == {"publications": 1, "events": 3}
    (subscriber,) = lab.ask("icrc72_get_subscribers", m.ByPrincipal(None, None, page))
    told = {"subscriptions": 1, "notifications": 3, "confirmations": 3, "unconfirmed": 0}
    assert shown(subscriber.stats, "icrc72:subscriber:stats:") == told
    own = shown(lab.ask("icrc72_get_subscriber_stats", to=reader), "icrc72:subscriber:stats:")
    rate = own.pop("notifications_last_100_rounds")
    assert (rate, {**own, "confirmations": 3}) == (0, {**dict.fromkeys(own, 0), **told})  # more than 100 rounds ago
    brokers = lab.ask("icrc72_get_broadcasters", m.ByPrincipal(None, None, page))
    assert [shown(each.stats, "icrc72:broadcaster:stats:")["events"] for each in brokers] == [3, 3]

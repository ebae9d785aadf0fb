"""The acceptance rows of ICRC-72, each by its number."""

from dataclasses import replace

import pytest
from support.icrc72.canister_apps import NAME, Lab, Lists, Sink, Source, err, keeping

from interchain_events.icrc72 import CanisterNetwork, Schedule, deploy, keys
from interchain_events.icrc72 import messages as m
from interchain_events.icrc72.client import FILTER, REPLAY, App, plain
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.canister import Context
from interchain_events.icrc72.ic.messaging import Happening
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.methods import HANDLE
from interchain_events.icrc72.services import type_codec
from interchain_events.icrc72.settings import DEFAULTS
from interchain_events.icrc72.values import as_items, blob, boolean, first, nat, of


def alerts(lab: Lab, probe: Principal) -> list[str]:
    return [
        key
        for _, note in lab.probed(probe).notified
        for key, _ in note.data.value
        if ":sys:" in note.namespace
    ]


def executed(happened: list[Happening], method: str) -> list[Happening]:
    return [each for each in happened if each.kind == "execute" and each.method == method]


@pytest.mark.parametrize("side", ["publishers", "subscribers"])
def test_row_7_ic_33_disallow_wins(side: str, lab: Lab) -> None:
    owner, other = lab.probe(), lab.probe()
    lab.publish(
        owner,
        *((keys.list_key(f"{side}:{how}"), [bytes(other)]) for how in ("allowed", "disallowed")),
    )
    if side == "publishers":
        assert err(lab.publish(other)) == "UnauthorizedPublisher"
    else:
        assert err(lab.subscribe(other)) == "UnauthorizedSubscriber"


def test_row_8_ic_33_a_silent_list_canister_is_code_6(lab: Lab) -> None:
    owner, other, dead = lab.probe(), lab.probe(), lab.probe()
    lab.network.uninstall(dead)
    lab.publish(owner, (keys.icrc75_key("subscribers:allowed"), [bytes(dead), "friends"]))
    assert err(lab.subscribe(other)) == keys.LIST_SILENT


def test_row_10_ic_39_nothing_is_published_before_the_alert_then_everything() -> None:
    lab = Lab(broadcasters=())
    source, reader = lab.source_and_sink(at=0)
    lab.emit(source, 1, 2, 3, then=20)
    assert lab.app(source).publisher.published(NAME) == 0
    lab.system.add_broadcaster(0)
    lab.step(200)
    assert lab.app(source).publisher.published(NAME) == 3
    assert lab.app(reader).data == [1, 2, 3]


def test_row_11_ic_32_a_pattern_meets_a_publication_that_comes_later(lab: Lab) -> None:
    probe = lab.member("subscriber", 1)
    lab.subscribe(probe, name="**.icrc1.transfer")
    lab.install(Source, 0, publications={"com.foo.icrc1.transfer": {}})
    lab.step(80)
    assert keys.EXIT_ADD in alerts(lab, probe)


def test_row_12_ic_40_alerts_come_in_the_order_of_the_table(lab: Lab) -> None:
    reader = lab.install(Sink, 1, subscriptions={NAME: {}})
    lab.step(40)
    source = lab.install(Source, 0, publications={NAME: {}})
    happened = lab.happenings()
    lab.step(80)
    told = [
        (note, each.receiver)
        for each in executed(happened, HANDLE.name)
        for note in HANDLE.value(each.data)
    ]
    alerted = [
        (key, value, who)
        for note, who in told
        if ":sys:" in note.namespace
        for key, value in note.data.value
    ]
    seen = [
        (key, who)
        for key, value, who in alerted
        if "subscriber:add" not in key or NAME in repr(value)
    ]
    order = [
        keys.RELAYER_ADD,
        keys.RELAY_ADD,
        keys.SUBSCRIBER_ADD,
        keys.PUBLISHER_ADD,
        keys.ENTRY_ADD,
    ]
    entry, exit_ = lab.broadcasters
    places = [
        seen.index(each) for each in zip(order, [exit_, entry, exit_, entry, source], strict=True)
    ]
    assert places == sorted(places)
    assert (keys.EXIT_ADD, reader) in seen


def test_row_15_ic_26_a_notification_names_the_filter() -> None:
    class Hosts(App):
        def on_call(self, ctx: Context, method: str, arg: bytes) -> None:
            self.emit(ctx, method, {"host": [{"name": arg.decode()}]})
            ctx.reply(b"")

    lab = Lab()
    notes = keeping(lambda note: (note.eventId, note.filter))
    source, reader = lab.source_and_sink(notes, Hosts, **{FILTER: "host[name ~= John]"})
    for name in (b"John Smith", b"Ann"):
        lab.call(source, NAME, name)
        lab.step()
    lab.step(60)
    assert lab.app(reader).data == [(1, "host[name ~= John]")]


def test_row_16_ic_43_two_matching_subscriptions_are_one_notification(lab: Lab) -> None:
    source = lab.install(Source, 0, publications={NAME: {}})
    reader = lab.install(Sink, 1, subscriptions={NAME: {}, "org.**": {}})
    lab.step(80)
    lab.emit(source, 1, 2, then=60)
    assert lab.app(reader).data == [1, 2]
    assert lab.app(reader).inbox.state.counts["notifications"] == 2


def test_row_17_ic_43_the_highest_priority_is_sent_first() -> None:
    lab = Lab(broadcasters=(0,), settings=replace(DEFAULTS, sends=1))
    priority = keeping(lambda note: first(note.headers, keys.PRIORITY))
    readers = [lab.install(priority, 0, subscriptions={NAME: {}}) for _ in range(3)]
    ranks = [[bytes(who), rank] for who, rank in zip(readers, (5, 1, 9), strict=True)]
    source = lab.install(
        Source, 0, publications={NAME: {keys.MODE: "priority", keys.PRIORITIES: ranks}}
    )
    lab.step(120)
    happened = lab.happenings()
    lab.emit(source, 1, then=64)
    mine = [each.receiver for each in executed(happened, HANDLE.name) if each.receiver in readers]
    assert list(dict.fromkeys(mine)) == [readers[2], readers[0], readers[1]]
    places = {
        who: [plain(each) for each in as_items(lab.app(who).data[0]) or ()] for who in readers
    }
    assert places == {readers[0]: [2, 3], readers[1]: [3, 3], readers[2]: [1, 3]}


def test_row_20_ic_45_a_full_store_is_busy_and_later_all_comes_in_order() -> None:
    lab = Lab(settings=replace(DEFAULTS, store_bytes=2000))
    source, reader = lab.source_and_sink()
    lab.network.stop(reader)
    lab.emit(source, *range(1, 41), then=40)
    assert lab.app(source).publisher.published(NAME) < 40
    lab.network.start(reader)
    lab.step(1500)
    assert lab.app(reader).data == list(range(1, 41))
    assert lab.system.broadcaster(lab.broadcasters[0]).state.counts["busy"] > 0


def test_row_25_ic_47_a_dead_broadcasters_assignments_move_and_the_gap_is_replayed() -> None:
    lab = Lab(broadcasters=(0, 1, 1))
    source, reader = lab.source_and_sink(publication={REPLAY: True})
    lab.emit(source, 1, 2, 3, then=30)
    state = lab.system.registry.state
    exit_ = state.exits[reader]
    assert exit_ is not None
    lab.network.uninstall(exit_)
    lab.emit(source, *range(4, 10), then=150)
    lab.emit(source, 10, then=1200)
    assert state.brokers[exit_].dead
    assert state.exits[reader] not in {None, exit_}
    assert sorted(lab.app(reader).data) == list(range(1, 11))


def test_row_26_ic_34_after_a_deletion_nothing_is_published_or_confirmed() -> None:
    lab = Lab(broadcasters=(0,))
    probe, other = lab.member("publisher"), lab.member("subscriber")
    lab.publish(probe)
    lab.subscribe(other)
    lab.confirm_all(probe, other, turns=12)
    (broadcaster,) = lab.broadcasters
    event = (m.Event(1, None, 1, namespace=NAME, data=nat(1), source=probe, headers=None),)
    assert lab.answer(probe, broadcaster, "icrc72_publish", event)[0].tag == "Ok"
    lab.step(10)
    numbers = tuple(
        note.notificationId for _, note in lab.probed(other).notified if note.namespace == NAME
    )[:1]
    gone = (m.PublicationDelete(Variant("namespace", NAME)),)
    assert lab.answer(probe, lab.orchestrator, "icrc72_delete_publication", gone) == (("Ok", True),)
    lab.step(60)
    late = (m.Event(2, 1, 1, namespace=NAME, data=nat(1), source=probe, headers=None),)
    assert err(lab.answer(probe, broadcaster, "icrc72_publish", late)[0]) == "Unauthorized"
    (answer,) = lab.answer(other, broadcaster, "icrc72_confirm_notifications", numbers).value
    assert err(answer) == "NotFound"


def test_row_28_ic_45_two_full_broadcasters_that_relay_to_each_other_drain() -> None:
    lab = Lab(settings=replace(DEFAULTS, store_bytes=1500))
    sources = [lab.install(Source, at, publications={f"org.example.n{at}": {}}) for at in (0, 1)]
    readers = [lab.install(Sink, 1 - at, subscriptions={f"org.example.n{at}": {}}) for at in (0, 1)]
    lab.step(80)
    for number in range(1, 60):
        for at, source in enumerate(sources):
            lab.call(source, f"org.example.n{at}", b"%d" % number)
        lab.step()
    lab.step(2000)
    assert [lab.app(each).data for each in readers] == [list(range(1, 60))] * 2
    for each in lab.broadcasters:
        state = lab.system.broadcaster(each).state
        assert (state.bytes_own, state.bytes_relayed) == (0, 0)


def test_row_29_ic_45_a_dead_subscribers_share_of_a_small_store_is_dropped() -> None:
    lab = Lab(broadcasters=(0,), settings=replace(DEFAULTS, store_bytes=3000))
    source, dead = lab.source_and_sink(at=0)
    living = lab.install(Sink, 0, subscriptions={NAME: {}})
    lab.step(40)
    lab.network.stop(dead)
    lab.emit(source, *range(1, 60), then=100)
    assert len(lab.app(living).data) < 59
    lab.step(1500)
    assert lab.app(living).data == list(range(1, 60))


def test_row_31_ic_40_42_a_relay_that_ends_while_another_begins_goes_on(lab: Lab) -> None:
    source, reader = lab.source_and_sink(**{FILTER: "n > 0"})
    lab.emit(source, 1, 2, then=30)
    other = lab.probe(1)
    update = (m.SubscriptionUpdate(Variant("namespace", NAME), (keys.FILTER, of(None)), reader),)
    subscription_id = lab.app(reader).subscriber.state.wanted[NAME].id
    record = lab.system.registry.state.subscriptions[subscription_id]
    record.config = replace(record.config, controllers=(reader, other))
    assert lab.answer(other, lab.orchestrator, "icrc72_update_subscription", update) == (
        ("Ok", True),
    )
    lab.emit(source, 3, 4, 5, 6, then=100)
    assert lab.app(reader).data == [1, 2, 3, 4, 5, 6]
    relays = lab.system.broadcaster(lab.broadcasters[0]).state.relays
    assert {who for relay in relays.values() for who in relay.entries} == {Principal()}


def test_row_32_ic_40_a_second_filter_misses_nothing_from_its_first_event_on(lab: Lab) -> None:
    source, _ = lab.source_and_sink(**{FILTER: "n > 1000"})
    second = lab.install(Sink, 1, subscriptions={NAME: {FILTER: "n < 1000"}})
    lab.emit(source, *range(1, 61), then=100)
    found = lab.app(second).data
    assert found == list(range(found[0], 61))


def test_row_33_ic_37_a_subnet_without_broadcasters_is_code_2_until_one_comes() -> None:
    lab = Lab(broadcasters=(0,))
    probe = lab.member("subscriber", 1)
    lab.step(30)
    caller, note = lab.probed(probe).notified[0]
    assert caller == lab.orchestrator
    (entry,) = as_items(first(note.data.value, keys.SUBSCRIBER_ERROR)) or ()
    assert plain(entry)["code"] == keys.NO_SUBNET
    lab.answer(probe, lab.orchestrator, "icrc72_confirm_notifications", (note.notificationId,))
    lab.subscribe(probe)
    lab.install(Source, 0, publications={NAME: {}})
    lab.step(30)
    new = lab.system.add_broadcaster(1)
    lab.step(120)
    assert lab.system.registry.state.exits[probe] == new
    assert keys.EXIT_ADD in alerts(lab, probe)


def test_row_34_ic_41_an_event_of_exactly_1_mib_is_relayed(lab: Lab) -> None:
    probe = lab.member("publisher")
    lab.publish(probe)
    reader = lab.install(keeping(lambda note: len(note.data.value)), 1, subscriptions={NAME: {}})
    lab.step(80)
    size = type_codec("broadcaster", "Event").size
    small = m.Event(
        1, None, 1, namespace=NAME, data=blob(bytes(1 << 20)), source=probe, headers=None
    )
    exact = small._replace(data=blob(bytes((1 << 20) - (size(small) - (1 << 20)))))
    assert size(exact) == 1 << 20
    entry = lab.broadcasters[0]
    large = exact._replace(data=blob(bytes(len(exact.data.value) + 1)))
    assert err(lab.answer(probe, entry, "icrc72_publish", (large,))[0]) == keys.TOO_LARGE
    assert lab.answer(probe, entry, "icrc72_publish", (exact,))[0].tag == "Ok"
    lab.step(60)
    assert lab.app(reader).data == [len(exact.data.value)]


def test_row_35_ic_33_a_silent_list_canister_changes_nothing_for_a_while(lab: Lab) -> None:
    lists = lab.install(Lists, 0)
    config = {keys.icrc75_key("subscribers:allowed"): [bytes(lists), "friends"]}
    source = lab.install(Source, 0, publications={NAME: config})
    lab.step(40)
    reader = lab.network.next_id(1)
    lab.app(lists).data["friends"].append(reader)
    lab.install(Sink, 1, subscriptions={NAME: {}})
    lab.step(60)
    lab.app(lists).data["silent"] = True
    lab.step(150)
    lab.emit(source, 1, then=40)
    assert lab.app(reader).data == [1]
    lab.step(400)
    lab.emit(source, 2, then=60)
    assert lab.app(reader).data == [1]
    lab.app(lists).data["silent"] = False
    lab.step(100)
    lab.emit(source, 3, then=200)
    assert 3 in lab.app(reader).data


def test_ic_35e_valid_broadcasters_may_be_those_of_a_list_canister() -> None:
    network = CanisterNetwork(2)
    lists = network.create(1, Lists(network.next_id(0)))
    system = deploy(network, broadcasters=(0, 1), valid=(lists, "friends"))
    source = network.create(
        0, Source(system.orchestrator, publications={NAME: {}}, subscriptions={})
    )
    reader = network.create(1, Sink(system.orchestrator, publications={}, subscriptions={NAME: {}}))
    network.step(60)
    network.submit(ANONYMOUS, source, NAME, b"1")
    network.step(60)
    assert system.app(reader).data == []
    assert system.app(reader).inbox.state.counts["refused_callers"] > 0
    system.app(lists).data["friends"] += system.broadcasters
    network.step(300)
    assert system.app(reader).data == [1]
    assert list(system.app(reader).inbox.state.valid) == [system.broadcasters[1]]


def test_ic_34_a_publication_changes_by_one_key_of_its_controller(lab: Lab) -> None:
    owner, other = lab.probe(), lab.probe()
    lab.publish(owner)
    change = (m.PublicationUpdate(Variant("publicationId", 1), (keys.TRUSTED, boolean(True))),)
    method = "icrc72_update_publication"
    assert err(lab.answer(other, lab.orchestrator, method, change)[0]) == "Unauthorized"
    assert lab.answer(owner, lab.orchestrator, method, change) == (("Ok", True),)
    unknown = (change[0]._replace(publication=Variant("id", 9)),)
    assert err(lab.answer(owner, lab.orchestrator, method, unknown)[0]) == keys.NOT_FOUND
    late = (change[0]._replace(config=(keys.PARTITIONS, of(2))),)
    assert err(lab.answer(owner, lab.orchestrator, method, late)[0]) == "ImproperConfig"
    last = (change[0]._replace(config=(keys.CONTROLLERS_REMOVE, of([bytes(owner)]))),)
    assert err(lab.answer(owner, lab.orchestrator, method, last)[0]) == "ImproperConfig"


def test_ic_46_trusted_batches_are_answered_for(lab: Lab) -> None:
    source, reader = lab.source_and_sink(publication={keys.TRUSTED: True})
    happened = lab.happenings()
    lab.emit(source, 1, 2, 3, then=60)
    assert lab.app(reader).data == [1, 2, 3]
    assert reader in [
        each.receiver for each in executed(happened, "icrc72_handle_notification_trusted")
    ]


@pytest.mark.parametrize(
    ("brokers", "which"),
    [
        ((0, 0, 1), "entry"),
        ((0, 1, 1), "exit"),
        ((0, 0, 1), "both"),
    ],
)
def test_ic_47b_a_broadcaster_is_retired_without_loss(brokers: tuple[int, ...], which: str) -> None:
    lab = Lab(broadcasters=brokers, schedule=Schedule(b"retire", 1, 10))
    source, reader = lab.source_and_sink(at=0 if which == "both" else 1)
    lab.step(60)
    state = lab.system.registry.state
    old = state.publications[1].entries[source][0] if which != "exit" else state.exits[reader]
    lab.emit(source, 1, 2, 3)
    assert lab.system.registry.retire(old)
    lab.emit(source, *range(4, 120), then=400)
    assert sorted(lab.app(reader).data) == list(range(1, 120))
    assert len(lab.app(reader).data) == 119
    assert not state.brokers[old].registered
    assert old not in {*state.exits.values(), *state.publications[1].entries[source]}
    lab.network.uninstall(old)
    lab.emit(source, 120, then=100)
    assert lab.app(reader).data[-1] == 120


def test_ic_47b_a_broadcaster_that_becomes_the_last_of_its_subnet_stays() -> None:
    lab = Lab(broadcasters=(0, 1, 1))
    source, reader = lab.source_and_sink(publication={REPLAY: True})
    registry = lab.system.registry
    old = registry.state.exits[reader]
    (other,) = set(lab.broadcasters[1:]) - {old}
    lab.network.uninstall(other)
    assert registry.retire(old)
    lab.emit(source, *range(1, 100), then=300)
    assert registry.state.exits[reader] == old
    assert not registry.state.brokers[old].retiring
    assert sorted(lab.app(reader).data) == list(range(1, 100))


def test_ic_47b_the_last_broadcaster_of_a_subnet_is_not_retired() -> None:
    lab = Lab(broadcasters=(0, 1))
    lab.step(20)
    assert not lab.system.registry.retire(lab.broadcasters[1])
    assert not lab.system.registry.retire(lab.orchestrator)


def test_ic_42_partitions_and_modes() -> None:
    lab = Lab(broadcasters=(0, 0, 0, 1))
    for config in ({keys.PARTITIONS: 3}, {keys.MODE: "unordered"}):
        name = f"org.example.p{len(config)}{next(iter(config))[-3:]}"
        source = lab.install(Source, 0, publications={name: config})
        reader = lab.install(Sink, 1, subscriptions={name: {}})
        lab.step(120)
        lab.emit(source, *range(1, 31), name=name, then=120)
        assert sorted(lab.app(reader).data) == list(range(1, 31)), config

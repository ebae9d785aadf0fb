"""Lists and list canisters: who may publish and subscribe, asked at registration, at changes and later (IC-33)."""

from typing import Any

import pytest
from support.canister_apps import NAME, Lists, Sink, Source, happenings, publish, subscribe

from pubsub_emulator.icrc72 import keys
from pubsub_emulator.icrc72.ic.candid.types import Variant
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.messages import PublicationUpdate
from pubsub_emulator.icrc72.values import of
from pubsub_emulator.testing.canisters import Canisters

ALLOWED = keys.icrc75_key("subscribers:allowed")


class Reader(Sink):
    subscriptions = {NAME: {}}  # noqa: RUF012 — as authors write it


def update(lab: Canisters, owner: Principal, key: str, value: Any) -> Any:
    items = (PublicationUpdate(Variant("namespace", NAME), (key, of(value))),)
    return lab.answer(owner, lab.orchestrator, "icrc72_update_publication", items)[0]


def verdicts(lab: Canisters) -> dict[Principal, set[bool]]:
    return {who: set(each.values()) for who, each in lab.system.registry.state.publications[1].subscribers.items()}


@pytest.mark.parametrize("other", [("first", "others"), ("second", "friends")])
def test_ic_33a_another_list_is_asked_when_it_is_set_and_the_answers_of_the_former_do_not_count(
    other: tuple[str, str],
) -> None:
    lab = Canisters()
    first, second, owner = lab.install(Lists), lab.install(Lists), lab.probe()
    stays, goes = lab.network.next_id(1), None
    publish(lab, owner, (ALLOWED, [bytes(first), "friends"]))
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


def test_ic_33a_a_list_canister_that_is_set_interrupts_nobody_whom_it_lists() -> None:
    lab = Canisters()
    lists = lab.install(Lists)
    source = lab.install(Source, 0, publications={NAME: {}})
    reader = lab.install(Reader, 1)
    lab.step(60)
    publication = lab.system.registry.state.publications[1]
    controller = lab.probe()
    publication.config = type(publication.config)(source, (source, controller))
    lab.app(lists).data["friends"].append(reader)
    happened = happenings(lab)
    for number in range(40):
        lab.call(source, NAME, b"%d" % number)
        if number == 10:
            assert update(lab, controller, ALLOWED, [bytes(lists), "friends"]) == ("Ok", True)
        lab.step()
    lab.step(40)
    assert lab.app(reader).data == list(range(40))
    assert not any(keys.SUBSCRIBER_REMOVE.encode() in each.data for each in happened)


def test_ic_33b_silence_at_a_change_is_a_no_and_is_told_with_code_6() -> None:
    lab = Canisters()
    lists, owner = lab.install(Lists), lab.probe()
    publish(lab, owner)
    reader = lab.install(Reader, 1)
    lab.step(60)
    lab.app(lists).data["silent"] = True
    assert update(lab, owner, ALLOWED, [bytes(lists), "friends"]) == ("Ok", True)
    assert verdicts(lab) == {reader: {False}}
    lab.step(60)
    assert keys.LIST_SILENT in [code for _, code, _, _ in lab.app(reader).subscriber.state.errors]
    lab.app(lists).data.update(silent=False, friends=[reader])
    lab.step(30)
    assert verdicts(lab) == {reader: {True}}


def test_ic_33c_a_publisher_that_the_list_drops_ends_and_comes_back() -> None:
    lab = Canisters()
    lists, owner = lab.install(Lists), lab.probe()
    publish(lab, owner, (keys.icrc75_key("publishers:allowed"), [bytes(lists), "friends"]))
    who = lab.network.next_id(0)
    lab.app(lists).data["friends"].append(who)
    source, reader = lab.install(Source, 0, publications={NAME: {}}), lab.install(Reader, 1)
    lab.step(80)
    lab.call(source, NAME, b"1")
    lab.step(40)
    lab.app(lists).data["friends"].remove(who)
    lab.step(140)
    lab.call(source, NAME, b"2")
    lab.step(60)
    assert lab.app(reader).data == [1]
    assert [code for _, code, name in lab.app(source).publisher.state.errors if name == NAME] == [0]
    lab.app(lists).data["friends"].append(who)
    lab.step(200)
    assert lab.app(reader).data == [1, 2]


def test_ic_33_a_disallow_list_canister_wins_and_asks_of_many_go_together() -> None:
    lab = Canisters()
    lists, owner = lab.install(Lists), lab.probe()
    readers = [lab.install(Reader, 1) for _ in range(30)]
    lab.app(lists).data["others"] += readers[:3]
    publish(lab, owner)
    lab.step(60)
    happened = happenings(lab)
    update(lab, owner, keys.icrc75_key("subscribers:disallowed"), [bytes(lists), "others"])
    assert verdicts(lab) == {who: {who not in readers[:3]} for who in readers}
    asked = [each for each in happened if each.kind == "send" and each.method == "icrc75_is_member"]
    assert len(asked) == 1


def test_ic_34_to_take_from_a_list_that_is_not_there_shuts_nobody_out() -> None:
    lab = Canisters()
    owner, other = lab.probe(), lab.probe()
    publish(lab, owner)
    assert update(lab, owner, f"{keys.list_key('subscribers:allowed')}:remove", [bytes(other)]) == ("Ok", True)
    assert subscribe(lab, other).tag == "Ok"


def test_ic_33_the_aliases_add_to_a_list_and_take_from_it() -> None:
    lab = Canisters()
    owner, one, two = lab.probe(), lab.probe(), lab.probe()
    publish(lab, owner, (keys.list_key("subscribers:allowed"), [bytes(one)]))
    key = keys.list_key("subscribers:allowed")
    listed = lab.system.registry.state.publications[1]
    update(lab, owner, f"{key}:add", [bytes(two), bytes(one)])
    assert listed.config.lists["subscribers:allowed"] == (one, two)
    update(lab, owner, f"{key}:remove", [bytes(one)])
    assert listed.config.lists["subscribers:allowed"] == (two,)
    update(lab, owner, key, [bytes(owner)])
    assert listed.config.lists["subscribers:allowed"] == (owner,)

"""The acceptance rows of ICRC-77, each by its number."""

from dataclasses import replace

import pytest
from support.icrc72.canister_apps import NAME, Asker, Lab, Source, err

from interchain_events.icrc72 import FILTER, REPLAY, keys
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.canister import Context
from interchain_events.icrc72.messages import ByNat, ReplayStatusUpdate
from interchain_events.icrc72.settings import DEFAULTS
from interchain_events.icrc72.values import of


def statuses(lab: Lab) -> dict[int, Variant]:
    return {each.replayId: each.status for each in lab.ask("icrc77_get_replays", ByNat())}


def test_rows_1_and_10_and_11_rp_7_rp_8_r5_the_asker_gets_the_range_its_end_and_alerts(
    lab: Lab,
) -> None:
    source = lab.published(12)
    other = lab.install(Asker, 1, subscriptions={NAME: {}})
    happened = lab.happenings()
    reader = lab.asks(b"5 10")
    lab.step(100)
    assert lab.app(reader).data == [(number, 1, 9) for number in range(5, 10)]
    assert lab.app(other).data == []
    assert statuses(lab) == {1: Variant("completed", 5)}
    alerts = (keys.REPLAY_ADD, keys.REPLAY_RELAY_ADD, keys.PUBLISHER_REPLAY_ADD)
    told = [
        each.data
        for each in happened
        if each.kind == "execute" and each.method == "icrc72_handle_notification"
    ]
    seen = [key for data in told for key in alerts if key.encode() in data]
    assert list(dict.fromkeys(seen)) == list(alerts)
    lab.step(60)
    assert source not in lab.system.registry.state.replays


def test_rows_3_and_4_and_5_rp_3_errors_come_in_the_order_of_the_table(lab: Lab) -> None:
    stranger = lab.network.next_id(1)
    banned = {keys.list_key("subscribers:disallowed"): [bytes(stranger)]}
    lab.published(1, **banned)
    probe = lab.probe(1)
    assert probe == stranger
    assert err(lab.replay(probe, 1, 1, name="icrc72:publisher:sys:aaaaa-aa")) == "Unauthorized"
    assert err(lab.replay(probe, 1, 1, name="no.such")) == "PublicationNotFound"
    assert err(lab.replay(probe, 1, 1, name="org.**")) == "PublicationNotFound"
    assert err(lab.replay(probe, 1, 1)) == "UnauthorizedSubscriber"
    other = lab.probe(1)
    assert err(lab.replay(other, 1, 1)) == "SubscriptionNotFound"
    mine = lab.follower()
    assert err(lab.replay(mine, 1, 1)) == "ImproperConfig"
    assert err(lab.replay(mine, 1, 2, (keys.REPLAY_FILTER, "a =="))) == "ImproperConfig"
    assert err(lab.replay(mine, 1, 10_002)) == "RangeTooLarge"


def test_row_6_rp_3_a_publication_that_cannot_be_replayed_is_code_8(lab: Lab) -> None:
    lab.publish(lab.probe(0))
    assert err(lab.replay(lab.follower(), 1, 2)) == keys.NO_REPLAY


def test_rp_3_live_replays_are_limited() -> None:
    lab = Lab(settings=replace(DEFAULTS, live_replays=2))
    source = lab.published(3)
    lab.network.stop(source)
    probe = lab.follower()
    assert [lab.replay(probe, 1, 3).tag for _ in range(2)] == ["Ok", "Ok"]
    assert err(lab.replay(probe, 1, 3)) == keys.QUOTA


def test_rp_3_i9_requests_count_for_a_window_and_are_then_forgotten() -> None:
    lab = Lab(settings=replace(DEFAULTS, live_replays=9, replay_requests=2, replay_window=300))
    lab.published(3)
    probes = [lab.follower() for _ in range(4)]
    for probe in probes:
        answers = [lab.replay(probe, 1, 3) for _ in range(3)]
        assert [each.tag for each in answers] == ["Ok", "Ok", "Err"]
        assert err(answers[2]) == keys.QUOTA
    requests = lab.system.registry.state.requests
    assert {who: len(those) for who, those in requests.items()} == dict.fromkeys(probes, 2)
    lab.step(300)
    assert lab.replay(probes[1], 1, 3).tag == "Ok"
    assert {who: len(those) for who, those in requests.items()} == {probes[1]: 1}


def test_row_7_rp_4_without_allowance_the_price_is_told(lab: Lab) -> None:
    ledger, token, price = lab.with_ledger()
    lab.published(3, **{keys.PRICING: price})
    probe = lab.follower()
    ledger.give(probe, 1000, 0)
    result = lab.replay(probe, 1, 101)
    assert err(result) == "PaymentRequired"
    currency = f"currency=icrc2:{token.text}"
    spender = f"spender={lab.orchestrator.text}"
    expected = f"perEvent=5;count=100;amount=500;{currency};{spender}"
    assert result.value.value == expected
    assert ledger.balances[probe] == 1000


@pytest.mark.parametrize("isolated", [False, True])
def test_row_12_rp_9_r6_live_events_go_on_meanwhile(lab: Lab, *, isolated: bool) -> None:
    source = lab.published(40)
    reader = lab.asks(b"1 41", "isolated" if isolated else "ask")
    lab.emit(source, *range(41, 61), then=200)
    data = lab.app(reader).data
    assert [n for n, replay, _ in data if replay is not None] == list(range(1, 41))
    assert [n for n, replay, _ in data if replay is None] == list(range(41, 61))


def test_rows_13_and_14_rp_11_a_replay_is_canceled_once_and_by_those_who_may() -> None:
    lab = Lab(settings=replace(DEFAULTS, replay_events=1))
    lab.published(60)
    probe, other = lab.follower(), lab.probe(1)
    assert lab.replay(probe, 1, 61) == ("Ok", 1)
    (no,) = lab.answer(other, lab.orchestrator, "icrc77_cancel_replay", (1,))
    assert err(no) == "Unauthorized"
    report = (ReplayStatusUpdate(1, Variant("completed", 60)),)
    assert (
        err(lab.answer(other, lab.orchestrator, "icrc77_replay_status", report)[0])
        == "Unauthorized"
    )
    (yes,) = lab.answer(probe, lab.orchestrator, "icrc77_cancel_replay", (1,))
    assert yes == ("Ok", 1)
    (late,) = lab.answer(probe, lab.orchestrator, "icrc77_cancel_replay", (1,))
    assert late.value == ("CannotCancel", "canceled")
    assert err(lab.answer(probe, lab.orchestrator, "icrc77_cancel_replay", (9,))[0]) == "NotFound"
    lab.confirm_all(probe)
    before = sum(1 for _, note in lab.probed(probe).notified)
    lab.step(100)
    assert sum(1 for _, note in lab.probed(probe).notified) == before


def test_row_15_rp_7_an_altered_log_is_noticed(lab: Lab) -> None:
    source = lab.published(12)
    row = lab.app(source).publisher.state.log[6]
    row.event = row.event._replace(data=of({"n": 777}))
    reader = lab.asks(b"1 12")
    lab.step(120)
    assert [each[0] for each in lab.app(reader).data] == [1, 2, 3, 4, 5, 6]
    assert statuses(lab) == {1: Variant("errored", "hash mismatch at 7")}


def test_row_17_rp_13_a_silent_publisher_ends_the_replay(lab: Lab) -> None:
    source = lab.published(5)
    probe = lab.follower()
    lab.network.uninstall(source)
    assert lab.replay(probe, 1, 6) == ("Ok", 1)
    lab.confirm_all(probe)
    lab.step(260)
    assert statuses(lab) == {1: Variant("errored", "publisher silent")}


def test_row_18_rp_5_r3_only_the_steps_of_the_table_occur() -> None:
    lab = Lab(broadcasters=(0,))
    probe, mine = lab.teller((REPLAY, True)), lab.follower(0)
    lab.confirm_all(probe)
    assert lab.replay(mine, 1, 2) == ("Ok", 1)
    lab.confirm_all(probe)
    steps = [("completed", 0), ("running", None), ("completed", 0), ("running", None)]
    found = []
    for tag, value in steps:
        update = (ReplayStatusUpdate(1, Variant(tag, value)),)
        result = lab.answer(probe, lab.orchestrator, "icrc77_replay_status", update)[0]
        found.append("Ok" if result.tag == "Ok" else err(result))
        lab.step(30)
    assert found == [keys.WRONG_STATE, "Ok", "Ok", keys.WRONG_STATE]
    unknown = (ReplayStatusUpdate(7, Variant("running")),)
    assert (
        err(lab.answer(probe, lab.orchestrator, "icrc77_replay_status", unknown)[0]) == "NotFound"
    )


def test_row_19_rp_10_what_was_handled_before_is_confirmed_only(lab: Lab) -> None:
    reader = lab.install(Asker, 1, subscriptions={NAME: {}})
    lab.published(5)
    assert [each[0] for each in lab.app(reader).data] == [1, 2, 3, 4, 5]
    lab.call(reader, "ask", b"1 6")
    lab.step(100)
    assert len(lab.app(reader).data) == 5
    assert lab.app(reader).inbox.state.counts["duplicates"] == 5
    assert statuses(lab) == {1: Variant("completed", 5)}


def test_row_21_rp_13_a_dead_subscriber_does_not_occupy_the_publisher_for_ever() -> None:
    settings = replace(
        DEFAULTS, queue_notifications=8, replay_stalled=300, silence=2000, max_concurrent=1
    )
    lab = Lab(settings=settings)
    lab.published(60)
    reader = lab.asks(b"1 61")
    lab.step(3)
    lab.network.stop(reader)
    lab.step(30)
    probe = lab.follower(0)
    assert lab.replay(probe, 1, 3) == ("Ok", 2)
    assert statuses(lab)[2] == Variant("pending")
    lab.step(700)
    found = statuses(lab)
    assert found[1] == Variant("errored", "stalled")
    assert found[2].tag in {"running", "completed"}


def test_row_22_rp_10_an_announced_replay_is_handled_before_its_id_is_known(lab: Lab) -> None:
    lab.published(5)
    reader = lab.install(Asker, 1, subscriptions={NAME: {}})
    lab.step(60)
    lab.app(reader).subscriber.state.ever_asked = True
    lab.call(reader, "ask", b"1 6")
    lab.step(2)
    lab.app(reader).subscriber.state.own = {}
    lab.step(100)
    assert len(lab.app(reader).data) == 5


def test_rp_10_a_replay_that_nobody_asked_for_is_confirmed_not_handled(lab: Lab) -> None:
    lab.published(5)
    reader = lab.install(Asker, 1, subscriptions={NAME: {}})
    lab.step(60)
    lab.call(reader, "ask", b"1 6")
    for _ in range(100):
        lab.step()
        lab.app(reader).subscriber.state.own = {}
        lab.app(reader).subscriber.state.ever_asked = False
    assert lab.app(reader).data == []
    assert lab.app(reader).inbox.state.counts["unasked"] == 5


def test_row_24_rp_5_it_is_running_until_the_entry_has_relayed_all(lab: Lab) -> None:
    lab.published(30)
    reader = lab.asks(b"1 31")
    entry, exit_ = lab.broadcasters
    for _ in range(60):
        lab.step()
        if lab.system.broadcaster(exit_).state.delivered:
            break
    lab.network.stop(exit_)
    lab.step(40)
    assert statuses(lab)[1].tag in {"pending", "running"}
    waiting = lab.system.broadcaster(entry).state.forwarded
    assert not waiting or len(waiting[1].lane.queue) in {0, 30}
    lab.network.start(exit_)
    lab.step(200)
    assert statuses(lab) == {1: Variant("completed", 30)}
    assert [each[0] for each in lab.app(reader).data] == list(range(1, 31))


def test_row_20_rp_13_a_filtered_subscriber_asks_again_when_the_exit_dies() -> None:
    lab = Lab(
        broadcasters=(0, 1, 1), settings=replace(DEFAULTS, replay_events=2, queue_notifications=8)
    )
    source, reader = lab.source_and_sink(
        Asker, publication={REPLAY: True}, rounds=80, **{FILTER: "n > 3"}
    )
    lab.network.stop(reader)
    lab.emit(source, *range(1, 60))  # more than its queue holds: it is suspended and will ask
    lab.network.start(reader)
    for _ in range(300):
        lab.step()
        if any(replay is not None for _, replay, _ in lab.app(reader).data):
            break
    assert statuses(lab)[1].tag == "running"
    exit_ = lab.system.registry.state.exits[reader]
    assert exit_ is not None
    lab.network.uninstall(exit_)
    lab.step(100)
    assert statuses(lab)[1] == Variant("errored", "broadcaster died")
    lab.emit(source, 60, rounds=2000)
    assert len(statuses(lab)) > 1
    assert sorted(each[0] for each in lab.app(reader).data) == list(range(4, 61))


def test_row_23_rp_10_a_gap_of_ten_events_over_many_ids_is_one_replay() -> None:
    class Sparse(Source):
        def on_call(self, ctx: Context, method: str, arg: bytes) -> None:
            number = int(arg)
            self.emit(ctx, method, {"n": number}, number=number << 44)
            ctx.reply(b"")

    lab = Lab(settings=replace(DEFAULTS, queue_notifications=4))
    source, reader = lab.source_and_sink(Asker, Sparse, publication={REPLAY: True}, rounds=80)
    lab.network.stop(reader)
    lab.emit(source, *range(1, 15))
    lab.network.start(reader)
    lab.step(1000)
    assert sorted(each[0] for each in lab.app(reader).data) == list(range(1, 15))
    assert {each.end for each in lab.system.registry.state.replays.values()} == {None}

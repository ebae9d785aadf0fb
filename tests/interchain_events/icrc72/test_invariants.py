"""I1 to I9, I13, I14 and R1 to R7 under schedules, refusals, crashes and upgrades that hypothesis
draws; IC-51.
"""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.icrc72.canister_apps import NAME, Asker, Lab, Ledger, Source, keeping
from support.plumbing.examples import scaled

from interchain_events.icrc72 import Audit, Schedule, keys, methods
from interchain_events.icrc72.campaign import play_plan
from interchain_events.icrc72.client import FILTER, REPLAY, SKIP, plain
from interchain_events.icrc72.ic import stable
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.canister import GUARANTEED, Answer
from interchain_events.icrc72.ic.messaging import Happening, Recorder
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.invariants import InvariantObserver
from interchain_events.icrc72.messages import PublicationUpdate
from interchain_events.icrc72.settings import DEFAULTS
from interchain_events.icrc72.stories import Plan, Surprise, begin, calm, check, finish
from interchain_events.icrc72.values import Skip, as_nat, first, of

SCHEDULES = st.builds(
    Schedule, st.binary(min_size=1, max_size=8), st.integers(0, 3), st.sampled_from([0, 10, 30])
)

PLANS = st.builds(
    Plan,
    st.binary(min_size=1, max_size=8),
    rounds=st.integers(20, 100),
    delay=st.integers(0, 3),
    refuse=st.sampled_from([0, 10, 30]),
    load=st.sampled_from([10, 30, 80]),
    deaths=st.integers(0, 1),
    pauses=st.integers(0, 1),
    downs=st.integers(0, 1),
    upgrades=st.integers(0, 2),
    churn=st.booleans(),
    retires=st.integers(0, 1),
)


@settings(max_examples=scaled(4))
@given(PLANS)
def test_i1_i2_i4_i5_i6_i7_i9_i14_r1_r2_r3_r5_r7_hold_in_every_story(plan: Plan) -> None:
    assert play_plan(plan).surprise == ""


@settings(max_examples=scaled(1))
@given(PLANS.map(lambda plan: replace(plan, rounds=min(plan.rounds, 40))))
def test_ic_12_i13_the_same_seed_gives_the_same_bytes(plan: Plan) -> None:
    traces = []
    for _ in range(2):
        recorder = Recorder()
        story = begin(plan, (recorder,))
        finish(story)
        states = [story.network.canister(each).state_bytes() for each in story.network.running()]
        traces.append((recorder.happenings, states))
    assert traces[0] == traces[1]


@given(st.integers(1, 50), st.lists(st.integers(0, 1 << 100), unique=True))
def test_row_14_i3_skips_partition_the_events(mod: int, ids: list[int]) -> None:
    passed = [number for offset in range(mod) for number in ids if Skip(mod, offset).passes(number)]
    assert sorted(passed) == sorted(ids)


# Who is notified


Reader = keeping(lambda note: (note.eventId, plain(note.data)["n"]))


@settings(max_examples=scaled(3))
@given(SCHEDULES, st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=5))
def test_i14_nobody_who_is_disallowed_is_notified(
    schedule: Schedule, changes: list[tuple[int, bool]]
) -> None:
    lab = Lab(schedule=schedule)
    owner = lab.probe()
    source = lab.install(
        Source, 0, publications={NAME: {"icrc72:publication:controllers:add": [bytes(owner)]}}
    )
    readers = [lab.install(Reader, at % 2, subscriptions={NAME: {}}) for at in range(3)]
    lab.step(80)
    banned: set[int] = set()
    due: list[set[int]] = []
    for at, (who, ban) in enumerate(changes, 1):
        banned = banned | {who} if ban else banned - {who}
        key = (
            keys.list_key("subscribers:disallowed"),
            of([bytes(readers[each]) for each in sorted(banned)]),
        )
        change = (PublicationUpdate(Variant("namespace", NAME), key),)
        while isinstance(
            lab.answer(owner, lab.orchestrator, "icrc72_update_publication", change), Answer
        ):
            pass  # the request was refused
        _settle(lab)
        lab.call(source, NAME, b"%d" % at)
        due.append({0, 1, 2} - banned)
        for _ in range(400):  # what is pending when somebody is banned is gone
            lab.step()
            if all(
                len(lab.app(readers[each]).data) == sum(each in whom for whom in due)
                for each in due[-1]
            ):
                break
    lab.step(100)
    for number, reader in enumerate(readers):
        assert lab.app(reader).data == [
            (at, at) for at, whom in enumerate(due, 1) if number in whom
        ]


def _settle(lab: Lab) -> None:
    """Until every broadcaster has confirmed what it should know."""
    for _ in range(400):
        lab.step()
        if not any(each.dirty or each.alert for each in lab.system.registry.state.brokers.values()):
            return


# Replays


Replayer = keeping(lambda note: note.eventId, Asker)
REPLAYS = st.lists(
    st.tuples(
        st.integers(0, 20),
        st.sampled_from(["isolated", "together"]),
        st.integers(1, 30),
        st.integers(1, 30),
    ),
    max_size=3,
)


def _with_replays(
    replays: Any, config: dict[str, Any], schedule: Schedule
) -> tuple[Lab, Principal, InvariantObserver]:
    """Twenty events before anybody subscribed, twenty after, and replays meanwhile."""
    lab = Lab(schedule=schedule, settings=replace(DEFAULTS, replay_events=4))
    watch = InvariantObserver(lab.system)
    lab.network.observers.append(watch)
    source = lab.install(Source, 0, publications={NAME: {REPLAY: True}})
    lab.step(60)
    lab.emit(source, *range(20), then=60)
    reader = lab.install(Replayer, 1, subscriptions={NAME: config})
    lab.step(80)
    for at in range(21):
        for when, how, start, length in replays:
            if when == at:
                lab.call(reader, how, b"%d %d" % (start, start + length))
        if at < 20:
            lab.call(source, NAME, b"%d" % at)
        lab.step()
    lab.step(400)
    assert (
        watch.finish(lab.system.logs(), {reader: list(lab.app(reader).subscriber.state.over)}) == []
    )
    return lab, reader, watch


@settings(max_examples=scaled(4))
@given(REPLAYS, st.sampled_from([{}, {FILTER: "n > 7"}, {SKIP: [2, 1]}]), SCHEDULES)
def test_r1_r2_r3_r5_a_replay_is_the_range_of_the_log_once_in_order(
    replays: Any, config: dict[str, Any], schedule: Schedule
) -> None:
    lab, reader, watch = _with_replays(replays, config, schedule)
    handled = lab.app(reader).data
    assert len(set(handled)) == len(handled)
    states = {each.state for each in lab.system.registry.state.replays.values()}
    assert states <= {"completed"}
    assert len(lab.system.registry.state.replays) <= len(replays)
    assert {
        n for _, _, note in watch.notes if (n := as_nat(first(note.headers, keys.REPLAY_ID)))
    } <= set(lab.system.registry.state.replays)


@settings(max_examples=scaled(2))
@given(REPLAYS.filter(bool), st.sampled_from([{}, {FILTER: "n > 7"}]))
def test_r6_live_chains_are_as_without_replays(replays: Any, config: dict[str, Any]) -> None:
    found = []
    for asked in ((), replays):
        _, reader, watch = _with_replays(asked, config, Schedule(b"twin"))
        live: dict[int, Any] = {}
        for _, receiver, note in watch.notes:
            if receiver == reader and first(note.headers, keys.REPLAY_ID) is None:
                prev = as_nat(first(note.headers, keys.PREV))
                live.setdefault(note.eventId, (note.prevEventId, prev, note.namespace, note.data))
        found.append(list(live.items()))
    assert found[0] == found[1]
    assert len(found[0]) >= 12


# Tokens


def _paid(
    schedule: Schedule, events: int, balance: int
) -> tuple[Lab, Ledger, Principal, Principal]:
    lab = Lab(schedule=schedule, settings=replace(DEFAULTS, replay_events=5, replay_settle=60))
    ledger, _, price = lab.with_ledger()
    source = lab.install(Source, 0, publications={NAME: {REPLAY: True, keys.PRICING: price}})
    lab.step(60)
    for number in range(events):
        lab.call(source, NAME, b"%d" % number)
    lab.step(60)
    probe = lab.member("subscriber", 1)
    ledger.give(probe, balance, balance)
    lab.subscribe(probe)
    return lab, ledger, source, probe


@settings(max_examples=scaled(4))
@given(
    SCHEDULES.map(lambda each: replace(each, refuse=0)),
    st.integers(0, 20),
    st.lists(
        st.tuples(
            st.integers(1, 20), st.integers(1, 30), st.sampled_from(["", "", "cancel", "dies"])
        ),
        max_size=3,
    ),
)
def test_r4_tokens_are_conserved_and_a_payer_pays_for_what_was_accepted(
    schedule: Schedule, events: int, replays: Any
) -> None:
    lab, ledger, source, probe = _paid(schedule, events, 1000)
    for start, length, fate in replays:
        result = lab.replay(probe, start, start + length)
        assert ledger.total() == 1000
        if result.tag != "Ok":
            continue
        if fate == "cancel":
            lab.step(start)
            lab.answer(
                probe, lab.orchestrator, "icrc77_cancel_replay", (result.value,), kind=GUARANTEED
            )
        elif fate == "dies":
            lab.network.stop(source)
    lab.confirm_all(probe, turns=60)
    if lab.network.status(source) != "running":
        lab.network.start(source)
        lab.confirm_all(probe, turns=60)
    found = list(lab.system.registry.state.replays.values())
    assert all(each.settled and not each.owed for each in found)
    paid = sum(
        each.price * min(each.done or each.reported or 0, each.paid // each.price)
        for each in found
        if each.state != "errored"
    )
    assert ledger.balances[lab.orchestrator] == 0
    assert ledger.balances[source] == paid
    assert ledger.balances[probe] == 1000 - paid


# The invariants can fail


def _story_with(change: Any) -> list[str]:
    story = begin(Plan(b"fails", rounds=30, refuse=0, delay=0))
    watch, audit = (
        InvariantObserver(story.system),
        Audit(story.system.orchestrator, story.system.broadcasters),
    )
    story.network.observers += [watch, audit]
    finish(story)
    change(story, watch, audit)
    logs = story.system.logs()
    return [
        *watch.finish(logs, {}),
        *(each.cheat for each in audit.finish(logs, story.network.running())),
    ]


def test_i4_i5_what_is_broken_is_the_senders_cheat() -> None:
    def headless(_story: Any, _watch: InvariantObserver, audit: Audit) -> None:
        at, sender, receiver, note = audit._seen[5]
        audit._seen[5] = (
            at,
            sender,
            receiver,
            note._replace(headers=tuple(reversed(note.headers or ()))),
        )

    def foreign(_story: Any, _watch: InvariantObserver, audit: Audit) -> None:
        at, _, receiver, note = audit._seen[5]
        audit._seen[5] = at, ANONYMOUS, receiver, note

    assert _story_with(headless) == ["AltersHeaders"]
    assert _story_with(foreign)[0] == "AltersHeaders"
    assert _story_with(lambda *_: None) == []


@pytest.mark.parametrize("confirms", [True, False])
def test_who_confirms_is_not_accused_where_each_confirmation_is_refused(confirms: bool) -> None:
    def again(story: Any, _watch: InvariantObserver, audit: Audit) -> None:
        _, sender, receiver, note = audit._seen[5]
        for number in range(1 << 40, (1 << 40) + 7):
            told = methods.HANDLE.argument((note._replace(notificationId=1 << 50),))
            call = Happening(
                story.network.round,
                "execute",
                number,
                sender=sender,
                receiver=receiver,
                method=methods.HANDLE.name,
                data=told,
            )
            audit.happened(call)
            confirmed = methods.CONFIRM.argument((1 << 50,))
            if confirms:
                audit.happened(
                    Happening(
                        call.round,
                        "send",
                        1,
                        sender=receiver,
                        receiver=sender,
                        method=methods.CONFIRM.name,
                        data=confirmed,
                    )
                )
                audit.happened(
                    Happening(
                        call.round,
                        "refuse",
                        1,
                        sender=receiver,
                        receiver=sender,
                        method=methods.CONFIRM.name,
                        data=b"",
                    )
                )

    assert ("NeverConfirms" in _story_with(again)) is not confirms


@pytest.mark.parametrize("rule", ["I6", "I7", "R3"])
def test_i6_i7_r3_what_is_broken_is_said_at_once(rule: str) -> None:
    def again(story: Any, watch: InvariantObserver, _audit: Audit) -> None:
        kind = {"I6": "answer", "I7": "execute"}.get(rule, "")
        if kind:
            sender, receiver = story.system.broadcasters[0], story.system.orchestrator
            number = 1 << 40 if kind == "answer" else 1
            for _ in range(2):
                watch.happened(
                    Happening(
                        story.network.round,
                        kind,
                        number,
                        sender=sender,
                        receiver=receiver,
                        method="x",
                        data=b"",
                    )
                )
        else:
            watch._states = {1: "completed"}
            replays = story.system.registry.state.replays
            replays[1] = type("R", (), {"state": "running", "subscriber": ANONYMOUS})()
            watch._step()
            del replays[1]

    assert any(each.startswith(rule) for each in _story_with(again))


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(
            Plan(b"campaign 1696", delay=1, refuse=30, load=20),
            id="campaign 1696",
        ),  # a relay became wider while it could not send
        pytest.param(
            Plan(b"campaign 2904", delay=1, refuse=30, load=20, churn=True, upgrades=2),
            id="campaign 2904",
        ),  # moved before it knew its exit
        pytest.param(
            Plan(b"campaign 3753", delay=3, refuse=30, load=50, churn=True),
            id="campaign 3753",
        ),  # moved before it was notified of anything
        pytest.param(
            Plan(b"campaign 8043", delay=3, refuse=30, load=20, pauses=1),
            id="campaign 8043",
        ),  # its entry was taken for dead at the end
        pytest.param(
            Plan(b"november 499", delay=0, refuse=30, load=50, pauses=1),
            id="november 499",
        ),  # a former exit came back behind a new one
    ],
)
def test_i1_i2_subscribers_that_begin_in_a_storm_miss_nothing(plan: Plan) -> None:
    assert play_plan(plan).surprise == ""


def test_a_role_canister_goes_on_from_its_own_state_bytes() -> None:
    story = begin(Plan(b"bytes", rounds=40))
    finish(story)
    for each in story.network.running():
        kept = story.network.canister(each).pre_upgrade()
        assert stable.encode(stable.decode(kept)) == kept


def test_a_story_can_fail() -> None:
    story = begin(Plan(b"fail", rounds=10))
    for _ in range(60):
        story.network.step()
    calm(story)
    check(story)
    who = next(iter(story.steady))
    story.system.app(who).data.pop(3)
    with pytest.raises(Surprise, match="missing"):
        check(story)

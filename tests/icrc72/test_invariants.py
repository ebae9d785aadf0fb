"""I1 to I9, I12 to I14 and R1 to R7 under schedules, refusals, crashes and upgrades that hypothesis draws."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.canister_apps import NAME, Asker, Source, confirm_all, emit, member, replay, subscribe, with_ledger

from pubsub_emulator.icrc72 import keys
from pubsub_emulator.icrc72.campaign import play_plan, watched
from pubsub_emulator.icrc72.client import FILTER, REPLAY, SKIP, App, EventNotification, plain
from pubsub_emulator.icrc72.deployment import KINDS, deploy, deploy_direct
from pubsub_emulator.icrc72.ic.candid.types import Variant
from pubsub_emulator.icrc72.ic.canister import BOUNDED, GUARANTEED, ONE_WAY, Answer, Canister, Context
from pubsub_emulator.icrc72.ic.errors import Trap
from pubsub_emulator.icrc72.ic.network import CanisterNetwork
from pubsub_emulator.icrc72.ic.principal import ANONYMOUS, Principal
from pubsub_emulator.icrc72.ic.schedule import Schedule
from pubsub_emulator.icrc72.ic.trace import Happening, Recorder
from pubsub_emulator.icrc72.invariants import InvariantObserver
from pubsub_emulator.icrc72.ledger import TokenLedger
from pubsub_emulator.icrc72.messages import Account, ApproveArgs, PublicationUpdate
from pubsub_emulator.icrc72.settings import DEFAULTS
from pubsub_emulator.icrc72.skip import Skip
from pubsub_emulator.icrc72.stories import Plan, begin, finish
from pubsub_emulator.icrc72.values import as_nat, first, of
from pubsub_emulator.testing.canisters import Canisters

SCHEDULES = st.builds(Schedule, st.binary(min_size=1, max_size=8), st.integers(0, 3), st.sampled_from([0, 10, 30]))

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


@settings(max_examples=6)
@given(PLANS)
def test_i1_i2_i4_i5_i6_i7_i9_i14_r1_r2_r3_r5_r7_hold_in_every_story(plan: Plan) -> None:
    assert play_plan(plan).surprise == ""


@settings(max_examples=2)
@given(PLANS.map(lambda plan: replace(plan, rounds=min(plan.rounds, 40))))
def test_i13_the_same_seed_gives_the_same_bytes(plan: Plan) -> None:
    traces = []
    for _ in range(2):
        recorder = Recorder()
        story = begin(plan, (recorder,))
        finish(story)
        states = [story.network.canister(each).state_bytes() for each in story.network.running()]
        traces.append((recorder.happenings, states))
    assert traces[0] == traces[1]


@given(st.integers(1, 50), st.lists(st.integers(0, 1 << 100), unique=True))
def test_i3_skips_partition_the_events(mod: int, ids: list[int]) -> None:
    passed = [number for offset in range(mod) for number in ids if Skip(mod, offset).passes(number)]
    assert sorted(passed) == sorted(ids)


class Caller(Canister):
    """Calls others as it is told: (whom, how, what they do), and counts what comes."""

    def __init__(self) -> None:
        self.served: list[int] = []
        self.responses: dict[int, int] = {}
        self.made = 0

    def update(self, ctx: Context, method: str, arg: bytes) -> None:
        if method == "order":
            for to, kind, deed in eval(arg):  # noqa: S307 — the test's own literal
                number = self.made = self.made + 1
                then = None if kind == ONE_WAY else lambda _c, _a, n=number: self._came(n)
                ctx.call(Principal(to), deed, number.to_bytes(4, "big"), then, kind=kind)
            ctx.reply(b"")
            return
        self.served.append(int.from_bytes(arg, "big"))
        if method == "trap":
            raise Trap("as told")
        if method == "silent":
            ctx.call(ctx.me, "silent", arg)
            return
        ctx.reply(b"")

    def _came(self, number: int) -> None:
        self.responses[number] = self.responses.get(number, 0) + 1

    def state_bytes(self) -> bytes:
        return repr((self.served, self.responses, self.made)).encode()


ORDERS = st.lists(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.sampled_from([GUARANTEED, BOUNDED, ONE_WAY]),
            st.sampled_from(["answer", "trap", "answer", "nothing"]),
        ),
        min_size=1,
        max_size=5,
    ),
    max_size=8,
)


class Pairs:
    """Notes in which order the requests of each pair were sent and started."""

    def __init__(self, network: CanisterNetwork) -> None:
        self.network = network
        self.sent: dict[Any, list[int]] = {}
        self.started: dict[Any, list[int]] = {}
        self.before: dict[Principal, bytes] = {}
        self.undone: list[bool] = []

    def happened(self, happening: Happening) -> None:
        pair = (happening.sender, happening.receiver)
        if happening.kind == "send":
            self.sent.setdefault(pair, []).append(happening.number)
        elif happening.kind in {"execute", "refuse"}:
            self.started.setdefault(pair, []).append(happening.number)
            self.before[happening.receiver] = self.network.canister(happening.receiver).state_bytes()
        if happening.kind in {"trap", "refuse"}:
            now = self.network.canister(happening.receiver).state_bytes()
            self.undone.append(now == self.before[happening.receiver])


@given(SCHEDULES, ORDERS)
def test_i6_i7_i8_calls_are_answered_once_in_order_and_traps_leave_no_trace(schedule: Schedule, orders: Any) -> None:
    network = CanisterNetwork(2, schedule=schedule)
    who = [network.create(at % 2, Caller()) for at in range(3)]
    pairs = Pairs(network)
    network.observers.append(pairs)
    for at, order in enumerate(orders):
        calls = [(bytes(who[to]), kind, deed) for to, kind, deed in order]
        network.submit(ANONYMOUS, who[at % 3], "order", repr(calls).encode())
        network.step()
    network.step(60)
    for each in who:
        app = network.canister(each)
        assert isinstance(app, Caller)
        assert all(count == 1 for count in app.responses.values())
    waited = sum(1 for order in orders for _, kind, _ in order if kind != ONE_WAY)
    assert sum(len(network.canister(each).__dict__["responses"]) for each in who) == waited
    for pair, sent in pairs.sent.items():
        assert pairs.started.get(pair, []) == sent
    assert all(pairs.undone)


# Deployments


class Prices(Source):
    publications = {NAME: {}}  # noqa: RUF012 — as authors write it


class Reader(App):
    def on_event(self, _ctx: Context, event: EventNotification) -> None:
        self.data.append((event.eventId, plain(event.data)["n"]))


def _handled(kind: str, schedule: Schedule, wanted: list[dict[str, Any]], rounds: list[int]) -> list[Any]:
    network = CanisterNetwork(2, schedule=schedule)
    if kind == "direct":
        system = deploy_direct(network, Prices.publications, Prices)
        publisher = system.orchestrator
    else:
        system = deploy(network, kind, broadcasters=(0, 1))
        publisher = system.install(0, Prices)
    readers = [
        network.create(at % 2, Reader(system.orchestrator, subscriptions={"org.**": config}, publications={}))
        for at, config in enumerate(wanted)
    ]
    network.step(150)
    for number, pause in enumerate(rounds):
        network.submit(ANONYMOUS, publisher, NAME, b"%d" % number)
        network.step(pause)
    network.step(300)
    return [system.app(each).data for each in readers]


WANTED: list[tuple[dict[str, Any], Callable[[int], bool]]] = [
    ({}, lambda _number: True),
    ({FILTER: "n > 3"}, lambda number: number > 3),
    ({SKIP: [2, 1]}, lambda number: number % 2 == 0),
    ({SKIP: [3]}, lambda number: number % 3 == 2),
]
"""Configurations of subscriptions, and which numbers they let pass; ids begin at 1."""


@settings(max_examples=4)
@given(
    SCHEDULES,
    st.lists(st.sampled_from(WANTED), min_size=1, max_size=3),
    st.lists(st.integers(0, 3), min_size=1, max_size=12),
)
def test_i12_the_three_deployments_agree(schedule: Schedule, wanted: Any, rounds: list[int]) -> None:
    due = [[(number + 1, number) for number in range(len(rounds)) if passes(number)] for _, passes in wanted]
    for kind in KINDS:
        assert _handled(kind, schedule, [config for config, _ in wanted], rounds) == due, kind


# Who is notified


@settings(max_examples=6)
@given(SCHEDULES, st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=5))
def test_i14_nobody_who_is_disallowed_is_notified(schedule: Schedule, changes: list[tuple[int, bool]]) -> None:
    lab = Canisters(schedule=schedule)
    owner = lab.probe()
    source = lab.install(Source, 0, publications={NAME: {"icrc72:publication:controllers:add": [bytes(owner)]}})
    readers = [lab.install(Reader, at % 2, subscriptions={NAME: {}}) for at in range(3)]
    lab.step(80)
    banned: set[int] = set()
    due: list[set[int]] = []
    for at, (who, ban) in enumerate(changes, 1):
        banned = banned | {who} if ban else banned - {who}
        key = (keys.list_key("subscribers:disallowed"), of([bytes(readers[each]) for each in sorted(banned)]))
        change = (PublicationUpdate(Variant("namespace", NAME), key),)
        while isinstance(lab.answer(owner, lab.orchestrator, "icrc72_update_publication", change), Answer):
            pass  # the request was refused
        _settle(lab)
        lab.call(source, NAME, b"%d" % at)
        due.append({0, 1, 2} - banned)
        for _ in range(400):  # what is pending when somebody is banned is gone
            lab.step()
            if all(len(lab.app(readers[each]).data) == sum(each in whom for whom in due) for each in due[-1]):
                break
    lab.step(100)
    for number, reader in enumerate(readers):
        assert lab.app(reader).data == [(at, at) for at, whom in enumerate(due, 1) if number in whom]


def _settle(lab: Canisters) -> None:
    """Until every broadcaster has confirmed what it should know."""
    for _ in range(400):
        lab.step()
        if not any(each.dirty or each.alert for each in lab.system.registry.state.brokers.values()):
            return


# Replays


class Replayer(Asker):
    """Keeps the ids that it handled."""

    def on_event(self, _ctx: Context, event: EventNotification) -> None:
        self.data.append(event.eventId)


REPLAYS = st.lists(
    st.tuples(st.integers(0, 20), st.sampled_from(["isolated", "together"]), st.integers(1, 30), st.integers(1, 30)),
    max_size=3,
)


def _with_replays(
    replays: Any, config: dict[str, Any], schedule: Schedule
) -> tuple[Canisters, Principal, InvariantObserver]:
    """Twenty events before anybody subscribed, twenty after, and replays meanwhile."""
    lab = Canisters(schedule=schedule, settings=replace(DEFAULTS, replay_events=4))
    watch = InvariantObserver(lab.system)
    lab.network.observers.append(watch)
    source = lab.install(Source, 0, publications={NAME: {REPLAY: True}})
    lab.step(60)
    emit(lab, source, *range(20))
    lab.step(60)
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
    log = {source: [row.event for row in lab.app(source).publisher.state.log]}
    assert watch.finish(log, {reader: list(lab.app(reader).subscriber.state.over)}) == []
    return lab, reader, watch


@settings(max_examples=6)
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
    assert {n for _, _, note in watch.notes if (n := as_nat(first(note.headers, keys.REPLAY_ID)))} <= set(
        lab.system.registry.state.replays
    )


@settings(max_examples=3)
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


def _paid(schedule: Schedule, events: int, balance: int) -> tuple[Canisters, TokenLedger, Principal, Principal]:
    lab = Canisters(schedule=schedule, settings=replace(DEFAULTS, replay_events=5, replay_settle=60))
    ledger, token, price = with_ledger(lab)
    source = lab.install(Source, 0, publications={NAME: {REPLAY: True, keys.PRICING: price}})
    lab.step(60)
    for number in range(events):
        lab.call(source, NAME, b"%d" % number)
    lab.step(60)
    probe = member(lab, "subscriber", 1)
    ledger.balances[probe] = balance
    subscribe(lab, probe)
    lab.answer(probe, token, "icrc2_approve", ApproveArgs(None, Account(lab.orchestrator), balance), kind=GUARANTEED)
    return lab, ledger, source, probe


@settings(max_examples=6)
@given(
    SCHEDULES.map(lambda each: replace(each, refuse=0)),
    st.integers(0, 20),
    st.lists(
        st.tuples(st.integers(1, 20), st.integers(1, 30), st.sampled_from(["", "", "cancel", "dies"])), max_size=3
    ),
)
def test_r4_tokens_are_conserved_and_a_payer_pays_for_what_was_accepted(
    schedule: Schedule, events: int, replays: Any
) -> None:
    lab, ledger, source, probe = _paid(schedule, events, 1000)
    for start, length, fate in replays:
        result = replay(lab, probe, start, start + length)
        assert ledger.total() == 1000
        if result.tag != "Ok":
            continue
        if fate == "cancel":
            lab.step(start)
            lab.answer(probe, lab.orchestrator, "icrc77_cancel_replay", (result.value,), kind=GUARANTEED)
        elif fate == "dies":
            lab.network.stop(source)
    confirm_all(lab, probe, turns=60)
    if lab.network.status(source) != "running":
        lab.network.start(source)
        confirm_all(lab, probe, turns=60)
    found = list(lab.system.registry.state.replays.values())
    assert all(each.settled and not each.owed for each in found)
    paid = sum(
        each.price * min(each.reported or 0, each.paid // each.price) for each in found if each.state != "errored"
    )
    assert ledger.balances.get(lab.orchestrator, 0) == 0
    assert ledger.balances.get(source, 0) == paid
    assert ledger.balances[probe] == 1000 - paid


# The invariants can fail


def _story_with(change: Any) -> list[str]:
    story = begin(Plan(b"fails", rounds=30, refuse=0, delay=0))
    watch = InvariantObserver(story.system)
    story.network.observers.append(watch)
    finish(story)
    change(story, watch)
    return watched(story, watch)


def test_i4_i5_i14_r1_what_is_broken_is_said() -> None:
    def headless(_story: Any, watch: InvariantObserver) -> None:
        sender, receiver, note = watch.notes[5]
        watch.notes[5] = sender, receiver, note._replace(headers=tuple(reversed(note.headers or ())))

    def foreign(_story: Any, watch: InvariantObserver) -> None:
        _, receiver, note = watch.notes[5]
        watch.notes[5] = ANONYMOUS, receiver, note

    assert any(each.startswith("I5") for each in _story_with(headless))
    assert any(each.startswith("I4") for each in _story_with(foreign))
    assert _story_with(lambda *_: None) == []


@pytest.mark.parametrize("rule", ["I6", "I7", "R3"])
def test_i6_i7_r3_what_is_broken_is_said_at_once(rule: str) -> None:
    def again(story: Any, watch: InvariantObserver) -> None:
        kind = {"I6": "answer", "I7": "execute"}.get(rule, "")
        if kind:
            sender, receiver = story.system.broadcasters[0], story.system.orchestrator
            number = 1 << 40 if kind == "answer" else 1
            for _ in range(2):
                watch.happened(Happening(story.network.round, kind, number, sender, receiver, "x", b""))
        else:
            watch._states = {1: "completed"}
            replays = story.system.registry.state.replays
            replays[1] = type("R", (), {"state": "running", "subscriber": ANONYMOUS})()
            watch._step()
            del replays[1]

    assert any(each.startswith(rule) for each in _story_with(again))

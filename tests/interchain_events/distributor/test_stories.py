"""Stories with faults of every kind: the invariants of section 7 hold at every step and once all
has settled.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.plumbing.examples import scaled

from interchain_events.distributor.core import rows
from interchain_events.distributor.core.messages import (
    Answered,
    CallNetwork,
    Due,
    Effects,
    Input,
    Noticed,
    Probed,
    Yes,
)
from interchain_events.distributor.core.rules import Rules
from interchain_events.distributor.core.step import steps
from interchain_events.distributor.event import Event, Notice, parse_notification, parse_row
from interchain_events.distributor.once import MemoryStore, Store, Transaction
from interchain_events.distributor.once.transaction import MEMBER, ROW
from interchain_events.distributor.service.adapters import ProbeAnswer
from interchain_events.distributor.service.public import shown_among
from interchain_events.distributor.simulation.network import SimulatedNetwork
from interchain_events.distributor.simulation.scenery import BEGIN, Faults
from interchain_events.distributor.simulation.stories import DistributorStory, event_of, tell
from interchain_events.distributor.simulation.world import World

NAME, EVENT = event_of(1)
DESMOS = "https://desmos.example/0"
BLOCK = "0x" + "ab" * 32
ROWS = Notice(1, 1, EVENT, id=NAME, signer="", fault="", block=BLOCK)


def _world(
    *networks: SimulatedNetwork, seed: int = 0, replicas: int = 1, run: int = 500, **rules: int
) -> World:
    """A world of two networks, unless others are given, that has run for a while."""
    given = {each.name: each for each in networks or map(SimulatedNetwork, "ab")}
    world = World(seed, given, replicas, rules=Rules((), "", **rules))  # type: ignore[arg-type]  # all are numbers
    world.start()
    world.run(run)
    return world


class _Reader:
    def __init__(self, world: World) -> None:
        self.get: Callable[[str, str], str | None] = lambda table, key: dict(
            world.store.rows(table)
        ).get(key)


@settings(max_examples=scaled(150))
@given(seed=st.integers(0, 2**32))
def test_no_story_ends_with_a_surprise(seed: int) -> None:
    assert tell(seed).surprises == []


@pytest.mark.parametrize(
    "seed", [554, 1948, 12812, 13455, 14714, 14892, 20425, 22935, 23437, 25043, 30022, 73000]
)
def test_stories_that_once_ended_with_a_surprise_do_not_any_more(seed: int) -> None:
    """The first: a notice beyond a gap when the log is taken back; the same id at the same number
    with other content; an id that a probe found, and no read, when the log is taken back; the same
    row at the last number of two branches.
    """
    assert tell(seed).surprises == []


def test_a_story_is_a_function_of_its_seed() -> None:
    assert tell(5) == tell(5)
    assert tell(5).digest != tell(6).digest


def _sets(world: World) -> object:
    published = [world.store.members(rows.published(name)) for name in world.networks]
    logs = [
        sorted(notice.id or "" for notice in network.log) for network in world.networks.values()
    ]
    notified = [sorted({found for _, found, _ in each.got}) for each in world.endpoints.values()]
    return published, logs, notified, world.dead_letters()


@pytest.mark.parametrize("seed", range(4))
def test_invariant_10_many_replicas_end_as_one_does(seed: int) -> None:
    ends = []
    for replicas in (1, 3):
        world = _world(*map(SimulatedNetwork, "abc"), seed=seed, replicas=replicas)
        world.subscribe(DESMOS)
        world.faults = Faults(lost=200, doubled=200, late=100)
        for number in range(8):
            event = event_of(number, number % 3)
            if number % 2:
                world.publish(*event)
            else:
                world.publish_on("abc"[number % 3], event[1])
            world.run(700)
        world.heal()
        assert world.settle()
        ends.append(_sets(world))
    assert ends[0] == ends[1]


def _taken_in(store: Store, rules: Rules, now: int, told: Input) -> None:
    """Take an input in at a time of the story, whatever the store's clock says."""

    def body(tx: Transaction) -> None:
        inner = Transaction(
            lambda kind, name: (tx.sets if kind == MEMBER else tx.tables)[name].value, now
        )
        steps(rules, [told], inner)
        for kind, name, buffer in inner.buffers():
            for key, row in buffer.writes.items():
                (tx.sets if kind == MEMBER else tx.tables)[name].write(key, row)

    store.transact(body)


@pytest.mark.xdist_group("databases")
def test_invariant_11_all_stores_end_alike(store: Store) -> None:
    story = DistributorStory(11)
    story.world.trace = []
    assert not story.tell().surprises
    rules, memory = replace(story.world.rules, owner="p0.1"), MemoryStore()
    for now, told in story.world.trace:
        _taken_in(memory, rules, now, told)
        _taken_in(store, rules, now, told)
    tables = {name for kind, name in memory.parts if kind == ROW}
    assert len(tables) > 5
    for table in tables:
        assert store.rows(table) == memory.rows(table)
    for name in {name for kind, name in memory.parts if kind == MEMBER}:
        assert store.members(name) == memory.members(name)
    assert store.backlog() == memory.backlog()


def test_invariant_9_interests_publish_nothing() -> None:
    """An adapter that offers no subscription to everything and shows no log feeds the interest, and
    nobody else.
    """
    world = _world(SimulatedNetwork("a", offers=()), SimulatedNetwork("b", offers=()))
    world.subscribe(DESMOS)
    world.run(500)
    world.publish_on("a", EVENT)
    world.run(1_000)
    assert len(world.endpoints[DESMOS].got) == 1
    assert not world.calls
    assert not world.networks["b"].log


def test_id40_events_of_before_a_subscription_are_not_sent() -> None:
    network = SimulatedNetwork("a")
    network.append(EVENT, BEGIN - 60_000)
    world = _world(network, SimulatedNetwork("b"))
    world.subscribe(DESMOS)
    world.run(200_000)
    assert world.networks["b"].has(event_of(1)[0])
    assert not world.endpoints[DESMOS].got


def test_id36_events_older_than_since_stay_where_they_are() -> None:
    network = SimulatedNetwork("a")
    network.append(EVENT, BEGIN - 60_000)
    network.append(event_of(2, 1)[1], BEGIN + 1_000)
    world = _world(network, SimulatedNetwork("b"), run=200_000, since=1_700_000_000)
    assert [notice.id for notice in world.networks["b"].log] == [event_of(2)[0]]


def test_id46_ids_older_than_retain_are_forgotten_and_their_replay_is_too_old() -> None:
    world = _world(retain=3_600_000)
    world.publish(NAME, EVENT)
    world.run(3_700_000)
    assert world.store.members(rows.published("a")) == []
    assert world.store.rows(rows.EVENTS) == []
    assert world.store.rows(rows.numbers("a")) == []
    late = SimulatedNetwork("c")
    late.append(event_of(1)[1], world.now - 3_700_000)
    again = World(
        1, {"a": world.networks["a"], "b": world.networks["b"], "c": late}, rules=world.rules
    )
    again.now = world.now
    again.start()
    again.run(120_000)
    assert not again.calls
    assert again.notes["too-old"] == 3


def test_id34_the_third_untrue_yes_raises_an_alarm_until_the_event_appears() -> None:
    world = _world()
    world.networks["a"].lies = True
    world.publish(NAME, EVENT)
    world.run(200_000)
    assert [key for key, _ in world.store.rows(rows.ALARMS)] == ["a|untrue-yes"]
    world.networks["a"].lies = False
    world.run(200_000)
    assert world.networks["a"].count(event_of(1)[0]) == 1
    assert world.store.rows(rows.ALARMS) == []
    assert world.store.rows(rows.REVOCATIONS) == []


def test_id36_a_log_that_seems_empty_is_believed_only_after_a_while() -> None:
    world = _world()
    world.publish(NAME, EVENT)
    world.run(70_000)
    kept = list(world.networks["a"].log)
    world.networks["a"].log.clear()
    world.run(40_000)
    world.networks["a"].log.extend(kept)
    world.run(200_000)
    assert world.notes["rewind"] == 0
    assert sum(world.calls.values()) == 2


def test_a_row_of_a_removed_network_becomes_a_dead_letter() -> None:
    world = _world()
    world.networks["b"].up = False
    world.publish(NAME, EVENT)
    world.run(1_000)
    left = replace(world.rules, networks=("a",), owner="later")
    store = world.store
    world.now += 100_000
    for row in store.due(100):
        store.transact(lambda tx, row=row: steps(left, [Due(row.table, row.key)], tx))  # type: ignore[misc]
    letters = [rows.DeadLetter(*json.loads(text)) for _, text in store.rows(rows.DEAD)]
    assert [(letter.target, letter.reason) for letter in letters] == [("n:b", "network-removed")]


# What is believed of probes, of hearsay and of adapters that show only the newest event of an
# entity.


def _tell(world: World, told: Input) -> Effects:
    found = world.tell(world.processes[0], told)
    assert found is not None
    return found[0]


def _calls(effects: Effects) -> int:
    return sum(isinstance(effect, CallNetwork) for effect in effects)


def test_id34_an_answer_to_a_probe_from_before_the_yes_revokes_nothing() -> None:
    world = _world(SimulatedNetwork("a", offers=()), SimulatedNetwork("b"))
    asked = world.now
    world.publish(NAME, EVENT)
    world.run(300)
    assert NAME in world.store.members(rows.published("a"))
    assert not _calls(_tell(world, Probed("a", NAME, there=False, asked_at=asked)))
    assert NAME in world.store.members(rows.published("a"))
    assert _calls(_tell(world, Probed("a", NAME, there=False, asked_at=world.now))) == 1


def test_id30_an_answer_to_an_earlier_leases_probe_does_not_call_again() -> None:
    world = _world(SimulatedNetwork("a", delay=50_000), SimulatedNetwork("b"))
    world.publish(NAME, EVENT)
    world.run(25_000)
    job = rows.get_job(_Reader(world), "n:a", NAME)  # type: ignore[arg-type]
    assert job is not None
    assert job.until > world.now
    begun = job.until - world.rules.lease
    assert not _calls(_tell(world, Probed("a", NAME, there=False, asked_at=begun - 1)))
    assert _calls(_tell(world, Probed("a", NAME, there=False, asked_at=begun))) == 1


def test_id34_a_probe_without_a_known_number_does_not_mark_ids_seen() -> None:
    """The log is taken back after a probe found the id and before a read did: it is published
    again.
    """
    network = SimulatedNetwork("a", offers=())
    world = _world(network, SimulatedNetwork("b"))
    world.publish(NAME, EVENT)
    world.run(300)
    _tell(world, Probed("a", NAME, there=True, asked_at=world.now))
    world.cut("a", 0)
    world.publish_on("a", event_of(2, 2)[1])
    world.run(300_000)
    assert network.count(NAME) == 1


def test_id34_an_id_that_a_log_has_twice_is_not_requested_forever() -> None:
    network = SimulatedNetwork("a", unique=False)
    world = _world(network, SimulatedNetwork("b"))
    for _ in range(2):
        world.publish_on("a", EVENT)
    world.run(100_000)
    world.cut("a", 1)
    assert world.settle(400_000)
    assert world.store.rows(rows.UNSEEN) == []


def _conflicting() -> Event:
    return EVENT._replace(entity="0x" + "77" * 32)


def _hearsay() -> World:
    """An interest was told of an event by an adapter whose log never shows it."""
    world = _world(SimulatedNetwork("a"), SimulatedNetwork("b"))
    subscription, _ = world.subscribe(DESMOS)
    world.run(500)
    interest = rows.get_interest(_Reader(world), subscription)  # type: ignore[arg-type]
    assert interest is not None
    _tell(
        world, Noticed("a", interest.key, Notice(1, 1_700_000_001, EVENT, NAME, ""), subscription)
    )
    return world


def test_id22_what_only_an_interest_told_of_fixes_no_content() -> None:
    world = _hearsay()
    world.publish_on("b", _conflicting())
    world.run(3_000)
    assert [notice.event.entity for notice in world.networks["a"].log] == [_conflicting().entity]
    assert world.notes["conflict"] == 0
    other = _hearsay()
    request = other.publish(NAME, _conflicting())
    other.run(3_000)
    assert request.status == 201
    assert other.publish(NAME, EVENT).status == 409


def test_id30_a_legacy_adapter_that_hides_an_event_leaves_a_doubt() -> None:
    """In doubt it is published again; a yes is believed."""
    notices = (Notice(2, 2, event_of(2)[1], event_of(2)[0], ""),)
    assert shown_among(notices, NAME, EVENT.order) == ProbeAnswer(there=False, hidden=True, last=2)
    assert shown_among(notices, NAME, "0x" + "77" * 32) == ProbeAnswer(there=False, last=2)
    assert shown_among(notices, event_of(2)[0], EVENT.order) == ProbeAnswer(there=True, last=2)
    assert shown_among((), NAME, EVENT.order) == ProbeAnswer(there=False)
    world = _world(
        SimulatedNetwork("a", legacy=True, unique=False, lists=False, offers=()),
        SimulatedNetwork("b"),
    )
    world.publish(NAME, EVENT)
    world.run(300)
    _tell(world, Answered("a", NAME, Yes(1)))
    world.publish_on("a", event_of(2)[1])
    assert world.settle()
    assert world.networks["a"].count(NAME) == 1
    assert world.notes["revoked"] == 0


def _lying() -> SimulatedNetwork:
    """A legacy network that accepts events and does not publish them."""
    return SimulatedNetwork("a", legacy=True, unique=False, lists=False, offers=(), lies=True)


@pytest.mark.parametrize("later", [0, 1])
def test_id30_a_legacy_adapters_yes_for_the_last_second_stays_in_doubt(
    later: int,
) -> None:
    """It may leave out events of that second until there is a later one."""
    world = _world(_lying(), SimulatedNetwork("b"))
    world.publish(NAME, EVENT)
    world.run(5_000)
    text = world.store.read_row(rows.UNSEEN, f"a|{NAME}")
    unseen = rows.read_unseen(text)
    assert unseen.time
    _tell(world, Probed("a", NAME, there=False, asked_at=world.now, last=unseen.time + later))
    assert world.notes["revoked"] == later
    assert world.store.read_row(rows.UNSEEN, f"a|{NAME}") == ("[]" if later else text)


def test_id34_the_next_event_exposes_a_lie_in_a_legacy_logs_last_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until then it is asked again, each time after as long a wait as before."""
    network = _lying()
    world = _world(network, SimulatedNetwork("b"))
    world.publish(NAME, EVENT)
    world.run(5_000)
    second = rows.read_unseen(world.store.read_row(rows.UNSEEN, f"a|{NAME}")).time
    network.append(event_of(2, 7)[1], second * 1000)
    probes: list[int] = []

    def record(*words: object) -> None:
        if words[0] == "probe":
            probes.append(world.now)

    monkeypatch.setattr(world, "record", record)
    day = world.rules.most_check
    world.run(4 * day)
    waits = [later - sooner for sooner, later in pairwise(probes)]
    assert waits[0] <= 2 * world.rules.check_after
    assert all(later >= sooner for sooner, later in pairwise(waits))
    assert day <= waits[-1] <= day + 1_000
    assert not network.has(NAME)
    network.lies = False
    network.append(event_of(3, 8)[1], world.now)
    world.run(day + 60_000)
    assert (network.count(NAME), world.notes["revoked"]) == (1, 1)


def test_id34_a_lie_is_exposed_although_the_entity_has_a_later_event() -> None:
    network = _lying()
    world = _world(network, SimulatedNetwork("b"))
    world.publish(NAME, EVENT)
    world.run(5_000)
    network.lies = False
    world.publish_on("a", event_of(2)[1])
    assert event_of(2)[1].order == EVENT.order
    assert world.settle()
    assert (network.count(NAME), world.notes["revoked"]) == (1, 1)


def test_a_row_of_an_acceptance_that_an_earlier_version_wrote_is_read() -> None:
    assert rows.read_unseen("5") == rows.Unseen(5, 5, 0)
    assert rows.read_unseen("5 3") == rows.Unseen(5, 3, 0)
    assert rows.read_unseen(rows.Unseen(5, 3, 2).text()) == rows.Unseen(5, 3, 2)


# ID-36: a log that was taken back is noticed, also where the last row read is the same on both
# branches.


def _branched(network: SimulatedNetwork, length: int, *, recheck: int = 100) -> World:
    """A network whose log lost event 1 to another branch that ends with the same rows; nobody was
    notified.
    """
    for number in range(length):
        network.append(event_of(number, number)[1], BEGIN)
    world = _world(network, SimulatedNetwork("b"), run=100_000, recheck=recheck)
    assert len(world.networks["b"].log) == length
    world.cut("a", 1)
    for number in (1000, *range(2, length)):
        network.append(event_of(number, number)[1], world.now)
    return world


@pytest.mark.parametrize("length", [3, 40])
def test_id36_a_block_s_hash_tells_of_another_branch_however_far_back_it_begins(
    length: int,
) -> None:
    world = _branched(SimulatedNetwork("a"), length, recheck=0)
    world.run(200_000)
    assert world.notes["rewind"] == 1
    assert world.networks["a"].count(event_of(1)[0]) == 1
    assert world.networks["b"].count(event_of(1000)[0]) == 1
    assert sum(world.calls.values()) == length + 2  # one event is new to each network


@pytest.mark.parametrize("notified", [False, True])
def test_id36_a_legacy_log_that_gives_a_number_again_was_taken_back(notified: bool) -> None:
    network = SimulatedNetwork("a", legacy=True, unique=False, lists=False)
    world = _world(network, SimulatedNetwork("b"))
    for number in (1, 2):
        world.publish_on("a", event_of(number, number)[1])
    assert world.settle()
    world.cut("a", 1)
    if notified:
        world.publish_on("a", event_of(3, 3)[1])
    else:
        network.append(event_of(3, 3)[1], world.now)
    assert world.settle()
    assert world.notes["rewind"] == 1
    for each in world.networks.values():
        counts = [each.count(event_of(number)[0]) for number in (1, 2, 3)]
        assert counts == [1, 1, 1], each.name
    assert sum(world.calls.values()) == 4


def test_id36_without_blocks_rows_before_the_last_are_read_again() -> None:
    world = _branched(SimulatedNetwork("a", tells_blocks=False), 40)
    world.run(200_000)
    assert world.notes["rewind"] == 1
    assert [
        world.networks["a"].count(event_of(1)[0]),
        world.networks["b"].count(event_of(1000)[0]),
    ] == [1, 1]


def test_id36_without_blocks_a_short_log_is_cut_where_it_ends() -> None:
    network = SimulatedNetwork("a", tells_blocks=False)
    for number in range(10):
        network.append(event_of(number, number)[1], BEGIN)
    world = _world(network, SimulatedNetwork("b"), run=100_000)
    world.cut("a", 7)
    world.run(300_000)
    assert world.notes["rewind"] == 1
    assert len(world.networks["a"].log) == 10
    assert sum(world.calls.values()) == 10 + 3


def test_id36_a_row_with_its_block_confirms_a_notification_without_one() -> None:
    world = _world()
    network = world.networks["a"]
    notice = network.append(EVENT, world.now)
    assert notice is not None
    world.deliver(next(iter(network.hooks.values())), notice._replace(block=""))
    world.run(100_000)
    assert world.notes["rewind"] == 0
    assert world.watch.read_row(rows.numbers("a"), "1") == rows.entry(notice)


def test_a_row_stored_before_blocks_were_kept_is_still_compared() -> None:
    older = rows.entry(ROWS).rpartition("|")[0]
    assert rows.same_entry(older, ROWS)
    assert not rows.same_entry(older, ROWS._replace(id="other"))
    assert not rows.same_entry(rows.entry(ROWS), ROWS._replace(block="0x" + "cd" * 32))


def test_blocks_are_read_from_rows_and_notifications_and_bad_hashes_are_dropped() -> None:
    notice = ROWS._replace(signer="0x" + "eb" * 20)
    assert parse_row(notice.row()) == notice
    assert parse_notification(notice.body()) == (None, notice)
    for wrong in ("0x12", 7, None, BLOCK + "00"):
        assert not parse_row({**notice.row(), "blockHash": wrong}).block
    assert parse_row({**notice.row(), "blockHash": BLOCK.upper().replace("X", "x")}).block == BLOCK

"""Stores that come back empty, as an older copy, or that are replaced by another one."""

import json
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.plumbing.examples import scaled

from interchain_events.distributor.core import continuity, rows
from interchain_events.distributor.core.continuity import (
    EMPTIED,
    MOST_EPOCHS,
    MOST_SEATS,
    NOTICED,
    OLDER,
    AnotherStore,
    Seat,
    Taken,
    take,
)
from interchain_events.distributor.core.messages import Input, Note, Start
from interchain_events.distributor.core.rows import LogState
from interchain_events.distributor.core.rules import NOW, START, Rules
from interchain_events.distributor.simulation.losses import (
    BACKS,
    LossKind,
    StoreLoss,
    another_store,
    losses,
    steps_of,
    tell_with_loss,
)
from interchain_events.distributor.simulation.network import SimulatedNetwork
from interchain_events.distributor.simulation.scenery import BEGIN
from interchain_events.distributor.simulation.stories import event_of
from interchain_events.distributor.simulation.world import CheckedStore, Copy, World


@settings(max_examples=scaled(60), deadline=None)
@given(
    seed=st.integers(0, 2**32),
    place=st.floats(0, 1, exclude_max=True),
    kind=st.sampled_from(LossKind),
    back=st.sampled_from(BACKS),
)
# The history of a log is only read to its end after the subscription.
@example(seed=54_201, place=0.0, kind=LossKind.EMPTIED, back=1)
@example(seed=1_039_371, place=0.0, kind=LossKind.SWAPPED, back=1)
def test_whatever_the_store_loses_each_event_comes_to_each_network_once(
    seed: int, place: float, kind: LossKind, back: int
) -> None:
    at = 2 + int(place * (steps_of(seed) - 1))
    loss = StoreLoss(kind, at, back if kind is LossKind.OLDER else 0)
    assert tell_with_loss(seed, loss).surprises == []


@pytest.mark.parametrize("seed", [4])
def test_a_loss_is_noticed_at_each_transaction_of_a_story(seed: int) -> None:
    """The store is emptied or swapped at some of them, and older at others."""
    told = [tell_with_loss(seed, loss) for loss in list(losses(steps_of(seed)))[::29]]
    assert [ending.surprises for ending in told if ending.surprises] == []
    assert all(ending.noticed for ending in told if ending.loss.kind is LossKind.EMPTIED)
    assert not any(ending.noticed for ending in told if ending.loss.kind is LossKind.SWAPPED)


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000_000


class Replica:
    """A process over a store."""

    def __init__(
        self,
        store: CheckedStore,
        clock: Clock,
        name: str,
        networks: str = "ab",
        since: int = START,
    ) -> None:
        self.store = store
        self.clock = clock
        self.rules = Rules(tuple(networks), name, since=since)
        self.seat = Seat({network: f"{name}-{network}" for network in networks})

    def take(self, *inputs: Input) -> Taken:
        self.clock.now += 1
        taken = self.store.transact(lambda tx: take(self.rules, self.seat, list(inputs), tx))
        self.seat = taken.entered.seat
        return taken

    def loss(self) -> str:
        return self.take().entered.loss

    def start(self) -> "Replica":
        self.take(Start(dict(self.seat.keys)))
        return self


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> CheckedStore:
    return CheckedStore(lambda: clock.now, lambda _subscription, _event: 0, lambda *_words: None)


@pytest.fixture
def replica(store: CheckedStore, clock: Clock) -> Callable[[str], Replica]:
    return lambda name: Replica(store, clock, name).start()


Make = Callable[[str], Replica]


def test_an_intact_store_has_lost_nothing(replica: Make) -> None:
    one, other = replica("one"), replica("other")
    assert [process.loss() for process in (one, other, one, one, other)] == [""] * 5


def _began(store: CheckedStore) -> int | None:
    """Return the second that the store keeps as the beginning of the distributor."""
    return store.transact(rows.get_begin)


def test_the_beginning_is_kept_over_restarts_and_losses(store: CheckedStore, clock: Clock) -> None:
    def process(name: str) -> Replica:
        return Replica(store, clock, name, since=NOW).start()

    one = process("one")
    begin = _began(store)
    assert begin == clock.now // 1000
    clock.now += 60_000
    process("two")
    assert _began(store) == begin
    store.empty()
    assert one.loss() == EMPTIED
    assert _began(store) == begin
    store.empty()
    # This one began later, and is the first with the empty store.
    clock.now += 60_000
    process("three")
    assert _began(store) == clock.now // 1000
    assert one.loss() == EMPTIED
    assert _began(store) == begin


def test_no_beginning_is_kept_where_the_settings_name_a_time(
    store: CheckedStore, replica: Make
) -> None:
    replica("one")
    assert _began(store) is None


def test_an_event_that_a_killed_process_never_read_is_not_older() -> None:
    """The process is killed before it reads the event, and starts again a minute later."""
    network = SimulatedNetwork("a")
    network.append(event_of(1)[1], BEGIN - 60_000)
    networks = {"a": network, "b": SimulatedNetwork("b")}
    world = World(1, networks, rules=Rules(("a", "b"), "", since=NOW))
    world.start()
    [process] = world.processes
    world.kill(process, back=False)
    network.append(event_of(2, 1)[1], BEGIN + 1_000)
    world.now += 60_000
    world.begin(process)
    world.run(200_000)
    assert [notice.id for notice in networks["b"].log] == [event_of(2)[0]]


def test_an_emptied_store_is_noticed_by_each_process(store: CheckedStore, replica: Make) -> None:
    one, other = replica("one"), replica("other")
    store.empty()
    assert (one.loss(), other.loss()) == (EMPTIED, NOTICED)
    assert (one.loss(), other.loss()) == ("", "")


def test_an_older_copy_is_noticed_by_each_process(store: CheckedStore, replica: Make) -> None:
    one, other = replica("one"), replica("other")
    backup = store.copy()
    one.take()
    store.restore(backup)
    assert (one.loss(), other.loss()) == (OLDER, NOTICED)
    assert (one.loss(), other.loss()) == ("", "")


def test_an_older_copy_is_noticed_by_all_also_within_one_millisecond(
    store: CheckedStore, clock: Clock, replica: Make
) -> None:
    """The store's first epoch is as old as the last transaction of the process."""
    one = replica("one")
    clock.now -= 1
    other = replica("other")
    backup = store.copy()
    clock.now -= 1
    one.take()
    store.restore(backup)
    assert (one.loss(), other.loss()) == (OLDER, NOTICED)


def test_a_copy_from_before_an_earlier_loss_counts_as_older(
    store: CheckedStore, replica: Make
) -> None:
    one = replica("one")
    backup = store.copy()
    one.take()
    for _ in range(3):
        store.restore(backup)
        assert one.loss() == OLDER
    store.empty()
    assert one.loss() == EMPTIED
    store.restore(backup)
    assert one.loss() == OLDER


def test_a_transaction_whose_answer_was_lost_is_no_loss(replica: Make) -> None:
    """The process does not know that it was stored, so the store is ahead of its memory."""
    one = replica("one")
    before = one.seat
    one.take()
    one.seat = before
    assert one.loss() == ""


def test_an_emptied_store_used_first_by_a_new_process_is_taken_over(
    store: CheckedStore, replica: Make
) -> None:
    one = replica("one")
    store.empty()
    other = replica("other")
    assert one.loss() == EMPTIED
    assert one.loss() == ""
    assert other.loss() == ""


def test_another_store_is_refused_and_nothing_is_written_to_it(
    store: CheckedStore, replica: Make
) -> None:
    one = replica("one")
    # It began earlier.
    other = another_store(1)
    mine = store.copy()
    store.restore(other)
    one.seat = one.seat._replace(time=one.seat.time + 10**9)
    with pytest.raises(AnotherStore, match="restart the distributor"):
        one.take()
    assert store.copy() == other
    store.restore(mine)
    assert one.loss() == ""


def test_after_a_loss_nothing_is_published_before_the_logs_were_read(
    store: CheckedStore, clock: Clock, replica: Make
) -> None:
    one = replica("one")
    store.transact(lambda tx: [tx.put(rows.STATES, name, LogState.READY) for name in "ab"])
    backup = store.copy()
    one.take()
    store.restore(backup)
    taken = one.take()
    assert [effect for effect in taken.entered.effects if isinstance(effect, Note)] == [
        Note("store-lost", "store", "", OLDER)
    ]
    for name in "ab":
        assert store.read_row(rows.STATES, name) == LogState.REREAD
        loss = store.transact(lambda tx, name=name: rows.get_loss(tx, name))  # type: ignore[misc]
        assert loss == rows.NetworkLoss(until=clock.now + one.rules.lease)


def test_a_process_that_starts_after_a_pause_reads_the_logs_first(
    store: CheckedStore, clock: Clock, replica: Make
) -> None:
    """The store may have been restored meanwhile, and nobody remembers what it had."""
    replica("one")
    store.transact(lambda tx: tx.put(rows.STATES, "a", LogState.READY))
    clock.now += continuity.IN_USE // 2
    replica("soon")
    assert store.read_row(rows.STATES, "a") == LogState.READY
    clock.now += continuity.IN_USE + 10
    replica("late")
    assert store.read_row(rows.STATES, "a") == LogState.REREAD


def test_seats_and_epochs_are_bounded(store: CheckedStore, replica: Make) -> None:
    first = replica("first")
    for number in range(MOST_SEATS + 5):
        replica(f"r{number}")
    listed = store.rows(rows.CONTINUITY)
    assert len([key for key, _ in listed if key.startswith("seat|")]) == MOST_SEATS
    # Its seat was dropped, so it cannot know whether the store is complete.
    assert first.loss() == OLDER
    assert first.loss() == ""
    for _ in range(MOST_EPOCHS + 5):
        store.empty()
        assert first.loss() == EMPTIED
    assert len(first.seat.epochs) == MOST_EPOCHS


def test_a_rolled_back_distributor_asks_before_it_publishes_again() -> None:
    """On a network that accepts ids twice: the copy of the store still has the job."""
    world = World(3)
    for network in world.networks.values():
        network.unique = False
    world.start()
    world.run(500)
    copies: list[Copy] = []
    world.before_step = lambda _number: copies.append(world.watch.copy())
    name, event = event_of(1)
    world.publish(name, event)
    world.run(5_000)
    with_job = next(copy for copy in copies if ("r", rows.JOBS) in copy)
    world.lose(with_job)
    for process in world.processes:
        world.tell(process)
    assert world.losses == 1
    world.before_step = None
    world.settle()
    assert [network.count(name) for network in world.networks.values()] == [1, 1]


def test_a_network_is_asked_before_each_call_of_a_pre_loss_job() -> None:
    """Also for a job that the copy has as not begun: it may have begun and ended since."""
    world = World(3)
    world.start()
    world.run(500)
    events = [event_of(number, entity=1) for number in (1, 2)]
    for name, event in events:
        world.publish(name, event)
    jobs = dict(world.store.rows(rows.JOBS))
    assert [rows.Job(*json.loads(text)).doubt for text in jobs.values()] == [1, 0] * 2
    backup = world.watch.copy()
    for process in world.processes:
        world.kill(process, back=False)
    world.lose(backup)
    world.now += continuity.IN_USE + 1_000
    seen: list[tuple[object, ...]] = []
    record = world.record
    world.record = lambda *words: (seen.append(words), record(*words))[1]  # type: ignore[method-assign]
    world.start()
    world.settle()
    for name, _ in events:
        for network in world.networks:
            assert seen.index(("probe", network, name)) < seen.index(("call", network, name))
            assert world.networks[network].count(name) == 1

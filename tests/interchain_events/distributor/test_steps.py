"""Single steps of the state machine: the effects of an input, and the state after it."""

from collections.abc import Sequence

import pytest

from interchain_events.distributor.core import jobs, rows
from interchain_events.distributor.core.messages import (
    Answered,
    CallNetwork,
    Due,
    Effect,
    Effects,
    Input,
    LogPage,
    No,
    Note,
    Noticed,
    Paged,
    Post,
    Posted,
    Probed,
    ProbeNetwork,
    Publish,
    ReadLog,
    Reply,
    Start,
    Subscribe,
    Turn,
    Unknown,
    Yes,
)
from interchain_events.distributor.core.rules import NOW, Rules
from interchain_events.distributor.core.states import NetworkState, Whereabouts, whereabouts
from interchain_events.distributor.core.step import step
from interchain_events.distributor.event import Event, Notice
from interchain_events.distributor.once import MemoryStore
from interchain_events.distributor.once.claims import commit
from interchain_events.distributor.simulation.stories import event_of

NAME, EVENT = event_of(1)
SECOND = 1_700_000_000
"""The second in which a machine starts."""


class Machine:
    """The state machine over a store in memory, with a clock that a test moves."""

    def __init__(self, networks: str = "ab", **rules: int | frozenset[str]) -> None:
        self.rules = Rules(tuple(networks), "one", **rules)  # type: ignore[arg-type]  # all fit
        self.now = SECOND * 1000
        self.store = MemoryStore(lambda: self.now)
        self.tell(Start({network: f"key {network}" for network in networks}))

    def tell(self, told: Input) -> Effects:
        """Apply an input a millisecond later."""
        self.now += 1
        return self.store.transact(lambda tx: step(self.rules, tx, told))

    def read(
        self, network: str, *notices: Notice, after: int = 0, complete: bool = True
    ) -> Effects:
        """Apply a page of a network's log."""
        return self.tell(Paged(network, after, LogPage(notices, complete)))

    def ready(self) -> "Machine":
        """Read the log of each network, all of which are empty."""
        for network in self.rules.networks:
            self.read(network)
        return self

    def subscribe(self, name: str = "sub", types: tuple[str, ...] = ("*",)) -> Effects:
        """Subscribe at an endpoint of the subscription's own."""
        endpoint = f"https://desmos.example/{name}"
        return self.tell(Subscribe(types, (), endpoint, None, fresh=name, key="key"))

    def where(self, name: str = NAME) -> Whereabouts:
        """Return the states of an id."""
        return self.store.transact(lambda tx: whereabouts(self.rules, tx, name))

    def cursor(self, network: str) -> rows.LogCursor:
        """Return the cursor of a network."""
        return self.store.transact(lambda tx: rows.get_cursor(tx, network))


def notice(
    number: int, time: int = SECOND, *, event: Event | None = None, block: str = ""
) -> Notice:
    """A row of a log: the event with this number, unless another one is given."""
    name, own = event_of(number, number)
    return Notice(number, time, own if event is None else event, name, "", block=block)


def of(kind: type, effects: Effects) -> list[Effect]:
    """The effects of one kind."""
    return [effect for effect in effects if isinstance(effect, kind)]


def notes(effects: Effects) -> list[tuple[str, ...]]:
    return [tuple(effect) for effect in effects if isinstance(effect, Note)]


# Publications


def test_id10_an_event_is_waited_for_until_a_network_answers() -> None:
    machine = Machine().ready()
    assert machine.where() == Whereabouts(
        known=False, time=0, networks=[NetworkState("a", "absent"), NetworkState("b", "absent")]
    )
    assert len(of(CallNetwork, machine.tell(Publish(NAME, EVENT)))) == 2
    waiting = [NetworkState(network, "claimed", waiting=True) for network in "ab"]
    assert machine.where() == Whereabouts(known=True, time=0, networks=waiting)
    machine.tell(Answered("a", NAME, Yes(SECOND + 5)))
    machine.tell(Answered("b", NAME, Unknown("no answer")))
    assert machine.where() == Whereabouts(
        known=True,
        time=SECOND + 5,
        networks=[NetworkState("a", "published"), NetworkState("b", "claimed", "no answer")],
    )
    # The first known time remains.
    machine.tell(Answered("b", NAME, Yes(SECOND + 9)))
    assert machine.where().time == SECOND + 5


def test_id36_an_event_for_an_unread_network_is_not_waited_for() -> None:
    machine = Machine("a")
    assert of(CallNetwork, machine.tell(Publish(NAME, EVENT))) == []
    [state] = machine.where().networks
    assert (state.state, state.waiting, state.refused) == ("absent", False, False)
    assert state.error == "the network's log is not read yet"
    assert len(of(CallNetwork, machine.read("a"))) == 1


def test_id30_a_repeated_publication_tries_refused_networks_again() -> None:
    machine = Machine().ready()
    machine.tell(Publish(NAME, EVENT))
    machine.tell(Answered("a", NAME, Yes(SECOND)))
    machine.tell(Answered("b", NAME, No("because")))
    assert machine.where().networks[1] == NetworkState("b", "absent", "because", refused=True)
    effects = machine.tell(Publish(NAME, EVENT))
    assert [effect.network for effect in effects if isinstance(effect, CallNetwork)] == ["b"]
    assert of(Reply, effects) == [Reply(value=NAME, new=True)]
    assert machine.where().networks[1] == NetworkState("b", "claimed", waiting=True)
    machine.tell(Answered("b", NAME, Yes(SECOND)))
    assert of(Reply, machine.tell(Publish(NAME, EVENT))) == [Reply(value=NAME, new=False)]


def test_id22_other_content_for_a_known_id_is_a_conflict() -> None:
    machine = Machine().ready()
    machine.tell(Publish(NAME, EVENT))
    other = EVENT._replace(entity="0x" + "77" * 32)
    assert machine.tell(Publish(NAME, other)) == [
        Note("conflict", "publish", NAME),
        Reply("conflict", NAME),
    ]


def test_id30_an_unclear_call_is_probed_after_its_lease_and_ever_longer_waits() -> None:
    """An unclear probe makes the waits longer, too."""
    machine = Machine("a", most_retry=5_000).ready()
    machine.tell(Publish(NAME, EVENT))
    target = rows.on_network("a")
    tell: list[Input] = [
        Answered("a", NAME, Unknown("no answer")),
        *[Probed("a", NAME, there=None, asked_at=machine.now)] * 3,
    ]
    for number, (told, wait) in enumerate(zip(tell, (1, 2, 4, 5), strict=True), start=1):
        machine.tell(told)
        job = machine.store.transact(lambda tx: rows.get_job(tx, target, NAME))
        assert job is not None
        assert job.tries == number
        assert job.due == job.until + wait * 1000 > machine.now
        assert job.reason == ("no answer" if number == 1 else "probe failed")
        machine.now = job.due
        effects = machine.tell(Due(rows.JOBS, f"{target}|{NAME}"))
        assert [effect.id for effect in effects if isinstance(effect, ProbeNetwork)] == [NAME]
        assert of(CallNetwork, effects) == []


def test_a_legacy_network_is_called_for_one_event_at_a_time() -> None:
    machine = Machine(legacy=frozenset("b")).ready()
    events = [event_of(number, number) for number in (1, 2)]
    calls = [of(CallNetwork, machine.tell(Publish(*event))) for event in events]
    assert [[call.network for call in group] for group in calls] == [["a", "b"], ["a"]]  # type: ignore[union-attr]
    [call] = of(CallNetwork, machine.tell(Answered("b", NAME, Yes(SECOND))))
    assert (call.network, call.id) == ("b", events[1][0])  # type: ignore[union-attr]


def test_id34_repeated_untrue_acceptances_raise_an_alarm_that_names_the_event() -> None:
    machine = Machine("a", alarm_after=2).ready()
    machine.tell(Publish(NAME, EVENT))
    told = []
    for _ in range(2):
        machine.tell(Answered("a", NAME, Yes(SECOND)))
        machine.now += 1
        effects = machine.tell(Probed("a", NAME, there=False, asked_at=machine.now))
        assert len(of(CallNetwork, effects)) == 1
        told += notes(effects)
    assert told == [
        ("revoked", "a", NAME, "1"),
        ("revoked", "a", NAME, "2"),
        ("alarm", "a", NAME, ""),
    ]
    assert machine.store.rows(rows.ALARMS) == [("a|untrue-yes", f"{NAME}: 2 times")]


# Arrivals


def test_id40_an_event_of_the_history_from_before_a_subscription_is_not_told() -> None:
    """Block times are whole seconds, so an event of the same second is told."""
    machine = Machine("a")
    machine.subscribe()
    history = notice(1, SECOND - 1), notice(2, SECOND), notice(3, SECOND + 1)
    effects = machine.read("a", *history)
    told = [effect.id for effect in effects if isinstance(effect, Post)]
    assert told == [event_of(number)[0] for number in (2, 3)]
    live = machine.read("a", *history, notice(4, SECOND - 1))
    assert [effect.id for effect in live if isinstance(effect, Post)] == [event_of(4)[0]]


def test_id36_the_stored_beginning_decides_which_history_is_replicated() -> None:
    """A process that starts later must not take what it has not read yet for old."""
    machine = Machine(since=NOW)
    machine.store.transact(lambda tx: rows.put_begin(tx, SECOND - 50))
    machine.read("a", notice(1, SECOND - 51), notice(2, SECOND - 50))
    machine.read("b")
    wanted = [name for name, _ in machine.store.rows(rows.JOBS)]
    assert wanted == [f"n:b|{event_of(2)[0]}"]


def test_id46_an_old_id_is_forgotten_once_nothing_waits_for_it() -> None:
    machine = Machine("a", retain=60_000).ready()
    machine.subscribe()
    [post] = of(Post, machine.read("a", notice(1)))
    expiry = Due(rows.EXPIRY, NAME)
    machine.now += 120_000
    assert machine.tell(expiry) == []
    assert machine.where().known
    machine.tell(Posted("sub", post.id, 200))  # type: ignore[union-attr]
    assert machine.store.members(rows.notified("sub")) == [NAME]
    assert machine.tell(expiry) == [Note("expired", "", NAME)]
    assert not machine.where().known
    assert machine.store.members(rows.notified("sub")) == []
    assert machine.store.members(rows.published("a")) == []
    assert machine.store.rows(rows.numbers("a")) == []
    # A row about an id that is not known is only removed.
    machine.store.transact(lambda tx: tx.put(rows.EXPIRY, NAME, "1", due=0))
    assert machine.tell(expiry) == []
    assert machine.store.rows(rows.EXPIRY) == []


# Notifications


def _failing(machine: Machine, failures: int) -> str:
    """Let notifications of the first event fail. Returns the name of the job."""
    target = rows.to_subscription("sub")
    machine.read("a", notice(1))
    for number in range(1, failures + 1):
        machine.tell(Posted("sub", NAME, 500))
        job = machine.store.transact(lambda tx: rows.get_job(tx, target, NAME))
        if job is None:
            break
        turn: Turn = machine.store.transact(lambda tx: Turn(machine.rules, tx, machine.now))
        wait = jobs.post_backoff(turn, "sub", NAME, number)
        assert 2**number * 1000 <= wait <= 2**number * 1100
        assert job.due == machine.now + wait
        machine.now = job.due
        assert len(of(Post, machine.tell(Due(rows.JOBS, f"{target}|{NAME}")))) == 1
    return f"{target}|{NAME}"


def test_id41_waits_double_and_are_prolonged_by_the_names() -> None:
    machine = Machine("a").ready()
    machine.subscribe()
    _failing(machine, 4)
    turn: Turn = machine.store.transact(lambda tx: Turn(machine.rules, tx, machine.now))
    waits = {jobs.post_backoff(turn, name, NAME, 3) for name in ("sub", "other", "third")}
    assert len(waits) > 1


def test_id41_a_late_acknowledgement_removes_the_dead_letter() -> None:
    machine = Machine("a", most_failures=2).ready()
    machine.subscribe()
    _failing(machine, 2)
    assert len(machine.store.rows(rows.DEAD)) == 1
    machine.tell(Posted("sub", NAME, 204))
    assert machine.store.rows(rows.DEAD) == []
    assert machine.store.members(rows.notified("sub")) == [NAME]


def test_id41_the_status_410_ends_a_subscription_and_is_noted() -> None:
    machine = Machine("a").ready()
    machine.subscribe()
    machine.read("a", notice(1))
    told = notes(machine.tell(Posted("sub", NAME, 410)))
    assert told[0] == ("subscription-ended", "sub", "", "")
    assert [words[0] for words in told] == ["subscription-ended", "dead-letter"]
    assert of(Post, machine.read("a", notice(1), notice(2))) == []


def test_a_job_whose_work_is_done_is_finished_and_not_repeated() -> None:
    """Another process has acknowledged it, after the lease of this one had lapsed."""
    machine = Machine("a").ready()
    machine.subscribe()
    machine.read("a", notice(1))
    machine.store.transact(lambda tx: commit(tx, rows.notified("sub"), NAME))
    machine.now += 100_000
    assert machine.tell(Due(rows.JOBS, f"{rows.to_subscription('sub')}|{NAME}")) == []
    assert machine.store.rows(rows.JOBS) == []


@pytest.mark.parametrize("limits", [{"most_subscriptions": 1}, {"most_index_bytes": 40}])
def test_id40_a_subscription_beyond_a_limit_is_refused(limits: dict[str, int]) -> None:
    machine = Machine("a", **limits)
    [first] = of(Reply, machine.subscribe("s"))
    [again] = of(Reply, machine.subscribe("s"))
    [second] = machine.subscribe("other")
    assert (first, again) == (Reply(value="s"), Reply(value="s", new=False))
    assert isinstance(second, Reply)
    assert second.code == "too-many"
    assert [name for name, _ in machine.store.rows(rows.SUBSCRIPTIONS)] == ["s"]


# Logs


def test_id33_a_legacy_event_waits_only_beyond_a_gap() -> None:
    machine = Machine("a", legacy=frozenset("a"))
    machine.read("a", notice(1), notice(3))
    cursor = machine.cursor("a")
    assert (cursor.last, cursor.parked) == (1, [3])
    machine.read("a", notice(2))
    cursor = machine.cursor("a")
    assert (cursor.last, cursor.parked, cursor.short) == (3, [], 0)
    assert [machine.where(event_of(number)[0]).networks[0].state for number in (1, 2, 3)] == [
        "seen"
    ] * 3


def test_id33_each_notice_beyond_a_gap_is_parked_once_up_to_a_limit() -> None:
    machine = Machine("a", most_parked=2).ready()
    for number in (5, 3, 5, 7, 3):
        assert of(Reply, machine.tell(Noticed("a", "key a", notice(number)))) == [Reply()]
    assert machine.cursor("a").parked == [3, 5]
    assert set(machine.store.members(rows.published("a"))) == {
        event_of(number)[0] for number in (3, 5)
    }
    machine.read("a", notice(1), notice(2), notice(3), notice(4))
    assert (machine.cursor("a").last, machine.cursor("a").parked) == (5, [])


def test_id36_a_legacy_log_may_show_the_content_of_an_id_differently() -> None:
    """Only the id at a number counts. The content that arrived first stays."""
    machine = Machine("a", legacy=frozenset("a"))
    machine.read("a", notice(1))
    kept = machine.store.rows(rows.numbers("a"))
    other = notice(1, event=EVENT._replace(entity="0x" + "77" * 32))
    assert notes(machine.read("a", other)) == []
    assert machine.store.rows(rows.numbers("a")) == kept


@pytest.mark.parametrize("common", range(1, 8))
def test_id36_a_search_finds_the_last_number_of_both_branches(common: int) -> None:
    machine = Machine("a")
    old = [notice(number, block=f"0x{number:064x}") for number in range(1, 9)]
    machine.read("a", *old)
    new = [*old[:common], *(each._replace(block="0x" + "ab" * 32) for each in old[common:])]
    found = _follow(machine, new)
    assert ("rewind", "a", "", f"8 to {common}") in notes(found)


def _follow(machine: Machine, log: Sequence[Notice]) -> Effects:
    """Read a network's log as it is now, until no read is emitted any more."""
    told: Effects = []
    effects = machine.tell(Due(rows.CURSORS, "a"))
    while reads := [effect for effect in effects if isinstance(effect, ReadLog)]:
        [read] = reads
        page = [each for each in log if each.number > read.after][: read.limit]
        is_complete = not page or page[-1] == log[-1]
        effects = machine.read("a", *page, after=read.after, complete=is_complete)
        told += effects
    return told


def test_id36_a_rewind_ends_the_doubt_about_an_acceptance() -> None:
    """The log showed the accepted event too late to count as seen, and then lost it."""
    machine = Machine("a", retain=60_000).ready()
    machine.tell(Publish(NAME, EVENT))
    machine.tell(Answered("a", NAME, Yes(SECOND)))
    old = notice(1, SECOND - 100)._replace(event=EVENT, block="0x" + "01" * 32)
    assert notes(machine.read("a", old)) == [("too-old", "a", NAME, "")]
    assert [key for key, _ in machine.store.rows(rows.UNSEEN)] == [f"a|{NAME}"]
    other = notice(2)._replace(number=1, block="0x" + "02" * 32)
    _follow(machine, [other])
    assert machine.store.rows(rows.UNSEEN) == []


# Rows


def test_rows_are_read_back_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoded rows are cached by their texts, in two generations."""
    monkeypatch.setattr(rows, "_GENERATION", 4)
    store = MemoryStore()
    table = rows.Rows("table", rows.Unseen)
    unseen = {f"{number}": rows.Unseen(number, number + 1) for number in range(30)}
    for key, row in unseen.items():
        store.transact(lambda tx, key=key, row=row: table.put(tx, key, row))  # type: ignore[misc]
    for reader in (table, rows.Rows("table", rows.Unseen)):
        for _ in range(2):
            found = {
                key: store.transact(lambda tx, key=key: reader.get(tx, key))  # type: ignore[misc]  # noqa: B023
                for key in unseen
            }
            assert found == unseen
            assert all(isinstance(row, rows.Unseen) for row in found.values())
    assert store.transact(lambda tx: table.get(tx, "30")) is None

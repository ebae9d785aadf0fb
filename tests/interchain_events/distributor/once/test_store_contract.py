"""The same calls have the same results in memory, SQLite, PostgreSQL and Redis (EV-30, ID-4)."""

import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.plumbing.examples import scaled
from support.plumbing.redis_server import running_redis

from interchain_events.database.errors import StoreError
from interchain_events.distributor.once import (
    Claim,
    DueRow,
    MemoryStore,
    Store,
    Transaction,
    claim,
    commit,
    open_store,
    release,
    revoke,
)
from interchain_events.distributor.once import beliefs as beliefs_module
from interchain_events.distributor.once.beliefs import Attempt, Beliefs
from interchain_events.distributor.once.transaction import MEMBER, ROW

CALLS: dict[str, Callable[..., object]] = {
    "claim": claim,
    "commit": commit,
    "release": release,
    "revoke": revoke,
}
WORKER = Path(__file__).parents[3] / "support" / "distributor" / "claimer.py"
LONG = 60_000


pytestmark = pytest.mark.xdist_group("databases")


def do(
    store: Store,
    call: str,
    who: str = "",
    member: str = "x",
    *,
    in_set: str = "s",
    lease: int = LONG,
) -> object:
    """One call of a claim's rules, as a step of its own."""
    more = {"claim": (who, lease), "release": (who,)}.get(call, ())
    return store.transact(lambda tx: CALLS[call](tx, in_set, member, *more))


def test_ev30_an_id_is_claimed_once_then_in_flight_then_done(any_store: Store) -> None:
    assert do(any_store, "claim", "mine") is Claim.CLAIMED
    assert do(any_store, "claim", "theirs") is Claim.IN_FLIGHT
    assert do(any_store, "claim", "mine") is Claim.IN_FLIGHT
    assert do(any_store, "claim", "theirs", in_set="other") is Claim.CLAIMED
    do(any_store, "commit")
    assert do(any_store, "claim", "theirs") is Claim.DONE
    assert any_store.members("s") == ["x"]


def test_ev30_only_the_owner_releases_and_not_what_is_done(any_store: Store) -> None:
    do(any_store, "claim", "mine")
    assert not do(any_store, "release", "theirs")
    assert do(any_store, "claim", "theirs") is Claim.IN_FLIGHT
    assert do(any_store, "release", "mine")
    assert do(any_store, "claim", "theirs") is Claim.CLAIMED
    do(any_store, "commit")
    assert not do(any_store, "release", "theirs")
    assert do(any_store, "claim", "mine") is Claim.DONE


def test_ev30_a_lapsed_lease_frees_the_id_and_late_commits_count(
    any_store: Store,
) -> None:
    do(any_store, "claim", "mine", lease=1)
    until = any_store.now() + 2
    while any_store.now() < until:
        time.sleep(0.001)
    assert do(any_store, "claim", "theirs") is Claim.CLAIMED
    assert not do(any_store, "release", "mine")
    do(any_store, "commit")
    assert do(any_store, "claim", "theirs") is Claim.DONE


def test_ev30_a_commit_needs_no_claim_and_a_revoked_one_is_claimable(any_store: Store) -> None:
    do(any_store, "commit")
    assert do(any_store, "claim", "mine") is Claim.DONE
    assert do(any_store, "revoke")
    assert not do(any_store, "revoke")
    assert do(any_store, "claim", "mine") is Claim.CLAIMED


def test_ev30_concurrent_claimers_get_one_claim_for_each_id(address: str) -> None:
    ids = [f"id{number}" for number in range(20)]

    def claims(owner: str) -> list[str]:
        mine = open_store(address)
        won = [name for name in ids if do(mine, "claim", owner, name) is Claim.CLAIMED]
        mine.close()
        return won

    with ThreadPoolExecutor(4) as pool:
        won = [name for part in pool.map(claims, "abcd") for name in part]
    assert sorted(won) == sorted(ids)


def test_ev30_what_a_killed_process_did_is_whole_and_its_claims_lapse(
    address: str, store: Store
) -> None:
    worker = subprocess.Popen(
        [sys.executable, str(WORKER), address, "2000"], stdout=subprocess.PIPE, text=True
    )
    assert worker.stdout is not None
    told = [worker.stdout.readline().strip() for _ in range(15)]
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    told += [line.strip() for line in worker.stdout if line.endswith("\n")]
    worker.stdout.close()
    done = store.members("s")
    logged = [key for key, _ in store.rows("log")]
    assert set(told) <= set(done), "a commit that was told of is kept"
    assert done == logged, "the two writes of one step are both there or both not"
    last = f"id{len(done):05}"
    until = time.monotonic() + 20
    while do(store, "claim", "heir", last) is not Claim.CLAIMED:
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_step_that_fails_applies_nothing(any_store: Store) -> None:
    def step(tx: Transaction) -> None:
        tx.put("t", "k", "v")
        tx.add("s", "x")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        any_store.transact(step)
    assert (any_store.rows("t"), any_store.members("s")) == ([], [])


def test_what_a_failed_step_would_have_written_is_not_believed() -> None:
    """A believed value that is not stored costs every later step over it a run and a question to
    the store.
    """
    stored = {"kept": "stored"}

    def step(tx: Transaction) -> None:
        assert tx.get("t", "kept") == "stored"
        tx.put("t", "kept", "written")
        tx.put("t", "new", "written")
        raise ZeroDivisionError

    attempt = Attempt(step, lambda _kind, _name: stored.get, now=0)
    assert attempt.tx.writes() == {}
    assert (attempt.tx.get("t", "kept"), attempt.tx.get("t", "new")) == ("stored", None)
    beliefs = Beliefs()
    beliefs.learn_all(attempt.tx)
    believed = beliefs.reader(ROW, "t")
    assert (believed("kept"), believed("new")) == ("stored", None)
    with pytest.raises(ZeroDivisionError):
        attempt.end()


def _believed(beliefs: Beliefs, table: str, count: int) -> list[int]:
    """The keys of a table of which something is believed, among the first so many."""
    read = beliefs.reader(ROW, table)
    return [at for at in range(count) if read(str(at)) is not None]


def test_of_too_many_beliefs_the_older_half_of_each_table_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A process that runs for months does not grow, and keeps what it met last."""
    monkeypatch.setattr(beliefs_module, "BELIEVED", 10)
    beliefs = Beliefs()
    for at in range(6):
        beliefs.learn((ROW, "one", str(at)), "v")
    for at in range(4):
        beliefs.learn((ROW, "two", str(at)), "v")
        beliefs.learn((ROW, "two", str(at)), "again")
    assert (_believed(beliefs, "one", 6), _believed(beliefs, "two", 4)) == (
        [*range(6)],
        [*range(4)],
    )
    beliefs.learn((ROW, "two", "4"), "v")
    assert (_believed(beliefs, "one", 6), _believed(beliefs, "two", 5)) == ([4, 5], [3, 4])
    for at in range(6, 12):
        beliefs.learn((ROW, "one", str(at)), "v")
    assert _believed(beliefs, "one", 12) == [4, 5, *range(6, 12)], "ten are kept"
    beliefs.learn((MEMBER, "one", "x"), None)
    assert _believed(beliefs, "one", 12) == [9, 10, 11]
    beliefs.clear()
    assert _believed(beliefs, "one", 12) == []
    for at in range(10):
        beliefs.learn((ROW, "one", str(at)), "v")
    assert _believed(beliefs, "one", 10) == [*range(10)], "the count begins anew"


def test_a_row_is_due_at_its_millisecond_even_if_the_clock_leaps() -> None:
    now = [1_000]
    store = MemoryStore(lambda: now[0])
    assert store.next_due() is None
    store.transact(
        lambda tx: (tx.put("t", "b", "1", due=1_002, lane=1), tx.put("t", "a", "1", due=1_003))
    )
    assert store.next_due() == 1_002
    now[0] = 1_001
    assert store.due(9) == []
    now[0] = 1_002
    assert store.due(9) == [DueRow("t", "b")]
    now[0] = 1_003
    assert store.due(9) == [DueRow("t", "a"), DueRow("t", "b")]
    assert store.trips() == 4


def test_a_step_reads_its_own_writes_and_what_others_wrote(address: str, store: Store) -> None:
    other = open_store(address)

    def write(tx: Transaction) -> tuple[str | None, bool]:
        tx.put("t", "k", "v" * 100)
        tx.add("s", "x")
        tx.delete("t", "gone")
        return tx.get("t", "k"), tx.has("s", "x")

    assert store.transact(write) == ("v" * 100, True)
    assert other.transact(lambda tx: (tx.get("t", "k"), tx.has("s", "x"))) == ("v" * 100, True)
    other.transact(lambda tx: (tx.put("t", "k", "new"), tx.remove("s", "x")))
    assert store.transact(lambda tx: (tx.get("t", "k"), tx.has("s", "x"))) == ("new", False)
    other.close()


def test_counting_from_many_connections_loses_nothing(address: str) -> None:
    def bump(tx: Transaction) -> None:
        tx.put("t", "n", str(int(tx.get("t", "n") or "0") + 1))

    def count(_number: int) -> None:
        mine = open_store(address)
        for _ in range(15):
            mine.transact(bump)
        mine.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(count, range(4)))
    last = open_store(address)
    assert last.rows("t") == [("n", "60")]
    last.close()


def test_due_lists_what_is_due_lower_lanes_first(any_store: Store) -> None:
    now = any_store.now()

    def step(tx: Transaction) -> None:
        tx.put("t", "late", "1", due=now + LONG)
        tx.put("t", "history", "1", due=now - 30, lane=1)
        tx.put("t", "second", "1", due=now - 10)
        tx.put("t", "first", "1", due=now - 20)
        tx.put("t", "never", "1")

    any_store.transact(step)
    assert any_store.due(9) == [DueRow("t", "first"), DueRow("t", "second"), DueRow("t", "history")]
    assert any_store.due(1) == [DueRow("t", "first")]
    assert any_store.backlog() == 4
    any_store.transact(lambda tx: (tx.put("t", "first", "1"), tx.delete("t", "second")))
    any_store.transact(lambda tx: tx.put("t", "history", "1", due=now - 30, lane=0))
    assert any_store.due(9) == [DueRow("t", "history")]


@pytest.mark.parametrize("lane", [0, 1])
def test_a_row_due_before_1970_is_due_now_in_its_own_lane(any_store: Store, lane: int) -> None:
    """Redis keeps lane and time in one number: a time below 0 must not reach into another lane or
    below all of them.
    """
    any_store.transact(
        lambda tx: (
            tx.put("t", "old", "1", due=-5, lane=lane),
            tx.put("t", "new", "1", due=1, lane=0),
        )
    )
    first, second = ("old", "new") if lane == 0 else ("new", "old")
    assert any_store.due(9) == [DueRow("t", first), DueRow("t", second)]


def test_tables_and_sets_are_paged_in_order(any_store: Store) -> None:
    names = [f"n{number}" for number in (3, 1, 2)]
    any_store.transact(lambda tx: [(tx.put("t", name, "v"), tx.add("s", name)) for name in names])
    assert any_store.rows("t", limit=2) == [("n1", "v"), ("n2", "v")]
    assert any_store.rows("t", after="n2") == [("n3", "v")]
    assert any_store.members("s", after="n1", limit=1) == ["n2"]


def test_a_step_may_be_about_thousands_of_rows(any_store: Store) -> None:
    names = [f"n{number:04}" for number in range(2_100)]

    def write(tx: Transaction) -> None:
        for name in names:
            tx.put("t", name, f"v{name}", due=1 if name.endswith("0") else None)
            tx.add("s", name)

    def swap(tx: Transaction) -> list[str | None]:
        found = [tx.get("t", name) for name in names]
        assert all(tx.has("s", name) for name in names)
        for name in names[:2_050]:
            tx.delete("t", name)
            tx.remove("s", name)
        return found

    any_store.transact(write)
    assert any_store.backlog() == 210
    assert any_store.transact(swap) == [f"v{name}" for name in names]
    assert [key for key, _ in any_store.rows("t")] == any_store.members("s") == names[2_050:]
    assert any_store.backlog() == 5
    other = names[2_060]
    assert any_store.transact(lambda tx: (tx.get("t", other), tx.get("t", names[0]))) == (
        f"v{other}",
        None,
    )


def test_text_of_strangers_is_stored_as_it_is(any_store: Store) -> None:
    strange = ["'; DROP TABLE once_places; --", "#" + "0" * 40, "é\U0001f600", "%s|{}", '"\\n']
    any_store.transact(
        lambda tx: [(tx.put("t", text, text), tx.add("s", text)) for text in strange]
    )
    assert any_store.rows("t") == sorted((text, text) for text in strange)
    assert any_store.members("s") == sorted(strange)
    assert any_store.transact(lambda tx: [tx.get("t", text) for text in strange]) == strange


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["claim", "commit", "release", "revoke", "put", "delete"]),
        st.sampled_from(["a", "b"]),
        st.sampled_from(["x", "y"]),
    ),
    max_size=12,
)


@settings(
    max_examples=scaled(25),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(stories=st.lists(STEPS, min_size=1, max_size=3))
def test_any_calls_have_the_results_that_memory_has(
    stories: list[list[tuple[str, str, str]]], store: Store
) -> None:
    for story in stories:
        model = MemoryStore()
        store.transact(_clean)
        for call, who, name in story:
            assert _do(store, call, who, name) == _do(model, call, who, name)
        assert store.members("s") == model.members("s")
        assert store.rows("t") == model.rows("t")
        assert store.backlog() == model.backlog()


def _clean(tx: Transaction) -> None:
    for name in "xy":
        tx.remove("s", name)
        tx.delete("claims", f"s|{name}")
        tx.delete("t", name)


def _do(store: Store, call: str, who: str, name: str) -> object:
    if call == "put":
        return store.transact(lambda tx: tx.put("t", name, who, due=1, lane=1))
    if call == "delete":
        return store.transact(lambda tx: tx.delete("t", name))
    return do(store, call, who, name)


@pytest.mark.parametrize(
    "address",
    ["", "sqlite", "sqlite:", "mysql://h/d", "memory:x", "postgresql:x", "redis://127.0.0.1:1/0"],
)
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(StoreError):
        open_store(address)


# What a store refuses: data that would be lost, files of others, data of a newer version, a server
# that is away.


def test_id45_a_redis_that_evicts_is_refused() -> None:
    with (
        running_redis("--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru") as server,
        pytest.raises(StoreError, match="maxmemory-policy is allkeys-lru"),
    ):
        open_store(server.url)


def test_id45_on_redis_a_set_has_its_own_name(redis_url: str) -> None:
    store = open_store(redis_url)
    store.transact(lambda tx: tx.add("publishedEvents:alastria", "0x1"))
    client = redis.Redis.from_url(redis_url)
    assert client.smembers("publishedEvents:alastria") == {b"0x1"}
    client.close()
    store.close()


def test_a_redis_that_went_away_and_came_back_is_used_again() -> None:
    with running_redis("--appendfsync", "always") as server:
        store = open_store(server.url)
        store.transact(lambda tx: tx.put("t", "k", "1"))
        server.stop()
        with pytest.raises(StoreError):
            store.transact(lambda tx: tx.put("t", "k", "2"))
        server.start()
        assert store.transact(lambda tx: tx.get("t", "k")) == "1"
        store.close()


def test_ev6_newer_data_is_refused_in_one_line(
    tmp_path: Path, postgres_url: str, redis_url: str
) -> None:
    path = tmp_path / "once.db"
    for address in (f"sqlite:{path}", postgres_url, redis_url):
        open_store(address).close()
    newer = "UPDATE migrations SET version = 99 WHERE component = 'once'"
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(newer)
    with psycopg.connect(postgres_url) as connection:
        connection.execute(newer)
    client = redis.Redis.from_url(redis_url)
    client.set("ied:version", 99)
    client.close()
    for address in (f"sqlite:{path}", postgres_url):
        with pytest.raises(
            StoreError,
            match=r"tables have version 99, this program knows 1; open it with a newer pubsub$",
        ):
            open_store(address)
    with pytest.raises(StoreError, match=r"newer version \(schema 99, this one knows 1\)$"):
        open_store(redis_url)


def test_ev6_a_file_of_an_earlier_version_is_taken_over_with_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "once.db"
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(
            "CREATE TABLE places (kind TEXT NOT NULL, tbl TEXT NOT NULL, key TEXT NOT NULL, value"
            " TEXT NOT NULL, due INTEGER, lane INTEGER NOT NULL, PRIMARY KEY (tbl, kind, key))"
            " WITHOUT ROWID"
        )
        file.execute("CREATE INDEX places_due ON places (lane, due) WHERE due IS NOT NULL")
        file.executemany(
            "INSERT INTO places VALUES (?, ?, ?, ?, ?, ?)",
            [("r", "t", "k", "v", 1, 0), ("s", "s", "x", "1", None, 0)],
        )
        file.execute(f"PRAGMA application_id = {0x1ED0_0CE1}")
        file.execute("PRAGMA user_version = 1")
    _has_its_rows(f"sqlite:{path}")
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA user_version").fetchone() == (2,), (
            "an earlier version refuses the file"
        )


def test_ev6_a_postgres_of_an_earlier_version_is_taken_over_with_its_rows(
    postgres_url: str,
) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE once_schema (version integer NOT NULL)")
        connection.execute("INSERT INTO once_schema VALUES (1)")
        connection.execute(
            'CREATE TABLE once_places (kind text COLLATE "C" NOT NULL, tbl text COLLATE "C" NOT'
            ' NULL, key text COLLATE "C" NOT NULL, value text NOT NULL, due bigint, lane smallint'
            " NOT NULL, PRIMARY KEY (tbl, kind, key))"
        )
        connection.execute(
            "CREATE INDEX once_places_due ON once_places (lane, due) WHERE due IS NOT NULL"
        )
        connection.execute(
            "INSERT INTO once_places VALUES ('r', 't', 'k', 'v', 1, 0), ('s', 's', 'x', '1',"
            " NULL, 0)"
        )
    _has_its_rows(postgres_url)
    with psycopg.connect(postgres_url) as connection:
        found = connection.execute("SELECT version FROM once_schema").fetchall()
    assert found == [(2,)], "an earlier version refuses the database"


def _has_its_rows(address: str) -> None:
    for _ in range(2):
        store = open_store(address)
        assert (store.rows("t"), store.members("s"), store.due(9)) == (
            [("k", "v")],
            ["x"],
            [DueRow("t", "k")],
        )
        store.close()


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE bookmarks (url TEXT)")
    file.close()
    with pytest.raises(StoreError, match="not a database of this program"):
        open_store(f"sqlite:{path}")
    path.write_bytes(b"no database at all, and longer than a header" * 100)
    with pytest.raises(StoreError):
        open_store(f"sqlite:{path}")


def test_a_postgres_whose_connection_was_cut_is_used_again(postgres_url: str) -> None:
    store = open_store(postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    with pytest.raises(StoreError):
        store.transact(lambda tx: tx.put("t", "k", "1"))
    store.transact(lambda tx: tx.put("t", "k", "2"))
    assert store.rows("t") == [("k", "2")]
    store.close()


def test_beliefs_are_bounded_in_characters_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients decide how long values are, so that their number alone bounds no memory."""
    monkeypatch.setattr(beliefs_module, "BELIEVED_BYTES", 10_000)
    beliefs = Beliefs()

    def held() -> int:
        return sum(
            len(key) + len(value or "")
            for part in beliefs._parts.values()
            for key, value in part.items()
        )

    for number in range(300):
        beliefs.learn((ROW, "t", str(number)), "x" * (number % 7) * 100)
        assert held() <= 10_000 + 700
    assert beliefs.reader(ROW, "t")("299") is not None
    # One value that is longer than all may be is not kept.
    beliefs.learn((ROW, "t", "long"), "x" * 20_000)
    assert held() <= 10_000

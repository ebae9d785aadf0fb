"""Real stores that are emptied, replaced, rolled back or evict keys under a running process."""

import contextlib
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
import redis
from support.plumbing.redis_server import RedisServer, running_redis

from interchain_events.database.errors import StoreError, StoreUnavailable
from interchain_events.database.opening import open_database
from interchain_events.database.sqlite import _SqliteSession
from interchain_events.distributor.core.continuity import (
    EMPTIED,
    NOTICED,
    OLDER,
    AnotherStore,
    Seat,
    enter,
)
from interchain_events.distributor.core.rules import Rules
from interchain_events.distributor.once import Store, open_store
from interchain_events.distributor.once import redis as redis_store

pytestmark = pytest.mark.xdist_group("databases")


class Replica:
    """A process over a store."""

    def __init__(self, address: str, name: str = "one") -> None:
        self.store: Store = open_store(address)
        self.rules = Rules(("a", "b"), name)
        self.seat = Seat({"a": f"{name}-a", "b": f"{name}-b"})

    def loss(self) -> str:
        entered = self.store.transact(lambda tx: enter(self.rules, self.seat, tx))
        self.seat = entered.seat
        return entered.loss


@pytest.fixture
def start() -> Iterator[Callable[..., Replica]]:
    """Start processes over stores, which are closed after the test."""
    with contextlib.ExitStack() as stores:

        def start_one(address: str, name: str = "one") -> Replica:
            replica = Replica(address, name)
            stores.callback(replica.store.close)
            return replica

        yield start_one


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "d.db"


def copy_of(file: Path, place: Path) -> Path:
    """A backup as SQLite makes it."""
    source, target = sqlite3.connect(file), sqlite3.connect(place)
    source.backup(target)
    source.close()
    target.close()
    return place


def remove(file: Path) -> None:
    for each in file.parent.glob(f"{file.name}*"):
        each.unlink()


def test_sqlite_a_removed_file_is_noticed_at_once(
    file: Path, start: Callable[..., Replica]
) -> None:
    """Otherwise the process would go on in a file that nobody finds any more."""
    one = start(f"sqlite:{file}")
    assert [one.loss(), one.loss()] == ["", ""]
    remove(file)
    assert one.loss() == EMPTIED
    assert one.loss() == ""
    assert file.exists()
    other = start(f"sqlite:{file}", "other")
    assert (other.loss(), one.loss()) == ("", "")


def test_sqlite_a_restored_backup_is_noticed(
    file: Path, tmp_path: Path, start: Callable[..., Replica]
) -> None:
    one = start(f"sqlite:{file}")
    one.loss()
    backup = copy_of(file, tmp_path / "backup")
    assert one.loss() == ""
    remove(file)
    shutil.copy(backup, file)
    assert one.loss() == OLDER
    assert one.loss() == ""


def test_sqlite_another_distributors_file_is_refused(
    file: Path, tmp_path: Path, start: Callable[..., Replica]
) -> None:
    other = start(f"sqlite:{tmp_path / 'other.db'}", "other")
    other.loss()
    one = start(f"sqlite:{file}")
    one.loss()
    one.loss()
    copy_of(tmp_path / "other.db", tmp_path / "copy.db")
    remove(file)
    shutil.copy(tmp_path / "copy.db", file)
    with pytest.raises(AnotherStore):
        one.loss()


def test_sqlite_reads_outside_of_steps_continue_with_the_current_file(
    file: Path, start: Callable[..., Replica]
) -> None:
    one = start(f"sqlite:{file}")
    one.store.transact(lambda tx: tx.put("t", "k", "v", due=1))
    assert one.store.backlog() == 1
    remove(file)
    assert one.store.due(10) == []
    assert one.store.rows("t") == []


def test_sqlite_a_file_that_cannot_be_recreated_is_an_error_until_then(
    file: Path, start: Callable[..., Replica]
) -> None:
    one = start(f"sqlite:{file}")
    one.loss()
    folder = file.parent
    folder.rename(folder.with_name("away"))
    for _ in range(2):
        with pytest.raises(StoreError, match=r"d\.db"):
            one.loss()
    folder.with_name("away").rename(folder)
    assert one.loss() == ""


def test_sqlite_files_are_readable_by_their_owner_only(file: Path) -> None:
    """They have the secrets of web hooks."""
    store = open_store(f"sqlite:{file}")
    store.transact(lambda tx: tx.put("subscriptions", "x", "whsec_c2VjcmV0"))
    modes = {
        each.name: stat.S_IMODE(each.stat().st_mode) for each in file.parent.glob(f"{file.name}*")
    }
    assert modes == dict.fromkeys(("d.db", "d.db-wal", "d.db-shm"), 0o600)
    store.close()


def test_sqlite_the_mode_of_a_file_that_is_there_is_kept(file: Path) -> None:
    file.touch(0o640)
    file.chmod(0o640)
    open_store(f"sqlite:{file}").close()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_postgres_tables_that_were_emptied_or_made_anew(
    postgres_url: str, start: Callable[..., Replica]
) -> None:
    one = start(postgres_url)
    assert [one.loss(), one.loss()] == ["", ""]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("TRUNCATE once_places")
        assert one.loss() == EMPTIED
        connection.execute("DROP TABLE once_places")
        connection.execute("DROP TABLE migrations")
        assert one.loss() == EMPTIED
    assert one.loss() == ""


def test_postgres_a_table_that_was_dropped_alone_is_made_anew(
    postgres_url: str, start: Callable[..., Replica]
) -> None:
    """The version of the tables is still recorded, and somebody else may make them first."""
    one, other = start(postgres_url), start(postgres_url)
    assert [one.loss(), other.loss()] == ["", ""]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP TABLE once_places")
    assert [one.loss(), other.loss(), one.loss()] == [EMPTIED, NOTICED, ""]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP TABLE once_places")
    again = start(postgres_url)
    assert [again.loss(), one.loss()] == ["", EMPTIED]


def test_postgres_a_newer_version_without_the_table_is_refused(
    postgres_url: str, start: Callable[..., Replica]
) -> None:
    one = start(postgres_url)
    one.loss()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("UPDATE migrations SET version = 99 WHERE component = 'once'")
        connection.execute("DROP TABLE once_places")
    with pytest.raises(StoreError, match="open it with a newer pubsub"):
        one.loss()


def test_sqlite_a_table_that_was_dropped_alone_is_made_anew(
    file: Path, start: Callable[..., Replica]
) -> None:
    one = start(f"sqlite:{file}")
    one.loss()
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("DROP TABLE once_places")
    assert [one.loss(), one.loss()] == [EMPTIED, ""]


def test_sqlite_a_disk_error_during_a_steps_read_is_a_store_error(
    file: Path, monkeypatch: pytest.MonkeyPatch, start: Callable[..., Replica]
) -> None:
    one = start(f"sqlite:{file}")
    one.loss()

    def fails(*_: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patch:
        patch.setattr(_SqliteSession, "run", fails)
        with pytest.raises(StoreUnavailable, match=r"d\.db: disk I/O error"):
            one.loss()
    assert one.loss() == ""


def test_postgres_the_cause_of_an_error_is_its_message_alone(postgres_url: str) -> None:
    database = open_database(postgres_url)
    with pytest.raises(StoreError, match=r'relation "none" does not exist$'):
        database.select("SELECT 1 FROM none")
    database.close()


def test_postgres_a_restored_backup_is_noticed(
    postgres_url: str, start: Callable[..., Replica]
) -> None:
    one = start(postgres_url)
    one.loss()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE backup AS TABLE once_places")
        one.loss()
        connection.execute("TRUNCATE once_places")
        connection.execute("INSERT INTO once_places TABLE backup")
    assert one.loss() == OLDER
    assert one.loss() == ""


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with running_redis() as made:
        yield made


def test_redis_a_server_that_comes_back_empty(
    server: RedisServer, start: Callable[..., Replica]
) -> None:
    one = start(server.url)
    assert [one.loss(), one.loss()] == ["", ""]
    redis.Redis.from_url(server.url).flushall()
    assert one.loss() == EMPTIED
    assert one.loss() == ""


def test_redis_a_replica_that_lagged(server: RedisServer, start: Callable[..., Replica]) -> None:
    """After a failover, the newest transactions are missing."""
    one = start(server.url)
    one.loss()
    client = redis.Redis.from_url(server.url)
    backup = {key: client.dump(key) for key in client.scan_iter()}
    one.loss()
    client.flushall()
    for key, dumped in backup.items():
        client.restore(key, 0, dumped)  # type: ignore[arg-type]  # the client types it so
    assert one.loss() == OLDER
    assert one.loss() == ""


def test_redis_a_policy_that_changes_while_it_runs_stops_the_store(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch, start: Callable[..., Replica]
) -> None:
    one = start(server.url)
    one.loss()
    client = redis.Redis.from_url(server.url)
    client.config_set("maxmemory-policy", "allkeys-lru")
    monkeypatch.setattr(redis_store, "CHECK_SECONDS", 0.0)
    monkeypatch.setattr(redis_store, "CHECK_AGAIN_SECONDS", 0.0)
    with pytest.raises(StoreError, match="allkeys-lru, which drops ids"):
        one.loss()
    with pytest.raises(StoreError, match="allkeys-lru"):
        one.store.due(1)
    client.config_set("maxmemory-policy", "noeviction")
    assert one.loss() == ""


def test_redis_the_policy_is_checked_at_each_connection(
    server: RedisServer, start: Callable[..., Replica]
) -> None:
    one = start(server.url)
    one.loss()
    client = redis.Redis.from_url(server.url)
    client.config_set("maxmemory-policy", "allkeys-random")
    # The process keeps its connection, and checks only now and then.
    assert one.loss() == ""
    for each in client.client_list():
        if each["id"] != str(client.client_id()):
            client.client_kill_filter(_id=each["id"])

    def again() -> None:
        # The first call may only find that the connection is closed.
        with contextlib.suppress(StoreError):
            one.loss()
        one.loss()

    with pytest.raises(StoreError, match="allkeys-random"):
        again()


def test_redis_evicted_keys_stop_the_store_until_it_is_emptied(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch, start: Callable[..., Replica]
) -> None:
    monkeypatch.setattr(redis_store, "CHECK_SECONDS", 0.0)
    monkeypatch.setattr(redis_store, "CHECK_AGAIN_SECONDS", 0.0)
    one = start(server.url)
    one.loss()
    client = redis.Redis.from_url(server.url)
    client.set("filler", "x" * 2_000_000)
    used = int(client.info("memory")["used_memory"])
    client.config_set("maxmemory-policy", "allkeys-random")
    client.config_set("maxmemory", str(used - 1_000_000))
    for number in range(100):
        client.set(f"more{number}", "y" * 10_000)
    client.config_set("maxmemory", "0")
    client.config_set("maxmemory-policy", "noeviction")
    assert int(client.info("stats")["evicted_keys"]) > 0
    client.set("ied:evictions", f"{client.info('server')['run_id']} 0")
    with pytest.raises(StoreError, match=r"has evicted \d+ keys"):
        one.loss()
    client.flushall()
    assert one.loss() == EMPTIED
    assert one.loss() == ""

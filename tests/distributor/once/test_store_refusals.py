"""What a store refuses: data that would be lost, files of others, data of a newer version, a server that is away."""

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
import redis
from support.redis_server import running_redis

from pubsub_emulator.database.errors import StoreError
from pubsub_emulator.distributor.once import DueRow, open_store


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


def test_ev6_newer_data_is_refused_in_one_line(tmp_path: Path, postgres_url: str, redis_url: str) -> None:
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
            StoreError, match=r"tables have version 99, this program knows 1; open it with a newer pubsub$"
        ):
            open_store(address)
    with pytest.raises(StoreError, match=r"newer version \(schema 99, this one knows 1\)$"):
        open_store(redis_url)


def test_ev6_a_file_of_an_earlier_version_is_taken_over_with_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "once.db"
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(
            "CREATE TABLE places (kind TEXT NOT NULL, tbl TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,"
            " due INTEGER, lane INTEGER NOT NULL, PRIMARY KEY (tbl, kind, key)) WITHOUT ROWID"
        )
        file.execute("CREATE INDEX places_due ON places (lane, due) WHERE due IS NOT NULL")
        file.executemany(
            "INSERT INTO places VALUES (?, ?, ?, ?, ?, ?)", [("r", "t", "k", "v", 1, 0), ("s", "s", "x", "1", None, 0)]
        )
        file.execute(f"PRAGMA application_id = {0x1ED0_0CE1}")
        file.execute("PRAGMA user_version = 1")
    _has_its_rows(f"sqlite:{path}")
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA user_version").fetchone() == (2,), "an earlier version refuses the file"


def test_ev6_a_postgres_of_an_earlier_version_is_taken_over_with_its_rows(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE once_schema (version integer NOT NULL)")
        connection.execute("INSERT INTO once_schema VALUES (1)")
        connection.execute(
            'CREATE TABLE once_places (kind text COLLATE "C" NOT NULL, tbl text COLLATE "C" NOT NULL,'
            ' key text COLLATE "C" NOT NULL, value text NOT NULL, due bigint, lane smallint NOT NULL,'
            " PRIMARY KEY (tbl, kind, key))"
        )
        connection.execute("CREATE INDEX once_places_due ON once_places (lane, due) WHERE due IS NOT NULL")
        connection.execute("INSERT INTO once_places VALUES ('r', 't', 'k', 'v', 1, 0), ('s', 's', 'x', '1', NULL, 0)")
    _has_its_rows(postgres_url)
    with psycopg.connect(postgres_url) as connection:
        found = connection.execute("SELECT version FROM once_schema").fetchall()
    assert found == [(2,)], "an earlier version refuses the database"


def _has_its_rows(address: str) -> None:
    for _ in range(2):
        store = open_store(address)
        assert (store.rows("t"), store.members("s"), store.due(9)) == ([("k", "v")], ["x"], [DueRow("t", "k")])
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

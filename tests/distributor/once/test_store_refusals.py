"""What a store refuses: data that would be lost, files of others, data of a newer version, a server that is away."""

import sqlite3
from pathlib import Path

import psycopg
import pytest
import redis
from support.redis_server import running_redis

from pubsub_emulator.eventplane.once import StoreError, open_store


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
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA user_version = 99")
    file.close()
    with psycopg.connect(postgres_url) as connection:
        connection.execute("UPDATE once_schema SET version = 99")
    client = redis.Redis.from_url(redis_url)
    client.set("ied:version", 99)
    client.close()
    for address in (f"sqlite:{path}", postgres_url, redis_url):
        with pytest.raises(StoreError, match=r"newer version \(schema 99, this one knows 1\)$"):
            open_store(address)


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

"""Histories and audits by address: folders, and an object store that is reached over HTTP
(AU-12).
"""

import io
import os
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import obstore.store
import pytest
from click.testing import CliRunner
from pyspark import SparkContext
from pyspark.sql import SparkSession
from support.plumbing.object_store import s3_server
from support.spark_audit.audits import drop_a_node, write_history

from pubsub_emulator.cli.commands.report import make_report
from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.files.errors import InputError
from pubsub_emulator.spark_audit.audit.run import AuditFailed, audit
from pubsub_emulator.spark_audit.history import object_store, schema, storage
from pubsub_emulator.spark_audit.history.address import StorageError, canonical_uri
from pubsub_emulator.spark_audit.history.reader import History
from pubsub_emulator.spark_audit.history.storage import Store, open_store
from pubsub_emulator.spark_audit.judge.results import Results
from pubsub_emulator.spark_audit.spark.masters import SparkUnavailable
from pubsub_emulator.spark_audit.spark.session import register


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch, s3_server(patch) as address:
        storage._remote.cache_clear()
        yield address
    storage._remote.cache_clear()


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "folder":
        return open_store(tmp_path / "place")
    return open_store(f"{request.getfixturevalue('bucket')}/{tmp_path.name}")


def test_a_file_is_there_whole_and_is_not_written_twice(store: Store) -> None:
    assert store.put_new("a/b/c", b"first")
    assert not store.put_new("a/b/c", b"second")
    assert store.read("a/b/c") == b"first"
    store.put("a/b/c", b"third")
    assert store.read("a/b/c") == b"third"
    with store.open("a/b/c") as file:
        file.seek(1)
        assert file.read(2) == b"hi"
    stamp = store.stamp("a/b/c")
    assert stamp is not None
    assert stamp.size == 5
    assert (store.walk(), store.walk("a/b"), store.names("a/b")) == (
        {"a/b/c": stamp},
        {"a/b/c": stamp},
        ["c"],
    )
    store.remove("a/b/c")
    assert (store.walk(), store.names("a/b"), store.stamp("a/b/c")) == ({}, [], None)
    store.remove("a/b/c")


def test_an_interrupted_write_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_paths: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "link", interrupt)
    folder = open_store(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        folder.put_new("a/b", b"data")
    assert folder.walk() == {}


def test_what_is_not_there_is_an_os_error(store: Store) -> None:
    with pytest.raises(OSError, match="nothing"):
        store.read("nothing")
    store.put("long", b"long")
    with pytest.raises(OSError, match="more than 3 bytes"):
        store.read("long", 3)
    assert (store.walk("none"), store.names("none"), store.exists("none")) == ({}, [], False)


def test_an_audit_of_an_object_store_into_another_place_of_it(bucket: str, tmp_path: Path) -> None:
    """The same rows and digest as in folders, by three ways to run it, and nothing written on this
    machine.
    """
    local = write_history(tmp_path / "history", 8, cheats={3: drop_a_node})
    write_history(f"{bucket}/one/history", 8, cheats={3: drop_a_node})  # type: ignore[arg-type]
    plain = audit(local, tmp_path / "out", engine="python")
    before = set(tmp_path.rglob("*"))
    remote = audit(f"{bucket}/one/history", f"{bucket}/one/audit", engine="pool")
    assert (remote.digest, remote.exit_code, remote.head) == (
        plain.digest,
        plain.exit_code,
        plain.head,
    )
    again = audit(f"{bucket}/one/history", f"{bucket}/one/audit", engine="python")
    assert (again.units_judged, again.digest) == (0, plain.digest)
    mixed = audit(
        f"{bucket}/one/history".replace("s3:", "s3a:"), tmp_path / "mixed", engine="python"
    )
    assert mixed.digest == plain.digest
    assert {path.relative_to(tmp_path).parts[0] for path in set(tmp_path.rglob("*")) - before} == {
        "mixed"
    }
    assert list(remote.results.rows(schema.FINDINGS)) == list(plain.results.rows(schema.FINDINGS))
    assert "do-not-show-me" not in str(remote.report)


def test_a_lost_object_is_named_and_one_that_changed_is_judged_again(bucket: str) -> None:
    address = f"{bucket}/two/history"
    write_history(address, 6, segment_length=3)  # type: ignore[arg-type]
    first = audit(address, f"{bucket}/two/audit", engine="python")
    place, entry = open_store(address), History.open(address).files(schema.BLOCKS, None, 2000, 1)[0]
    kept = place.read(entry.path)
    place.remove(entry.path)
    lost = audit(address, f"{bucket}/two/audit", engine="python")
    assert lost.exit_code == 3
    assert entry.path in {row["path"] for row in lost.results.rows(schema.READ_ERRORS)}
    place.put(entry.path, kept)
    assert audit(address, f"{bucket}/two/audit", engine="python").digest == first.digest


@pytest.mark.spark
def test_spark_without_the_package_for_object_stores_says_so_in_one_line(
    bucket: str, spark: SparkContext
) -> None:
    write_history(f"{bucket}/three/history", 2)  # type: ignore[arg-type]
    audit(f"{bucket}/three/history", f"{bucket}/three/audit", engine="python")
    with pytest.raises(
        SparkUnavailable, match=r"three/audit: Spark here cannot read S3; .* hadoop-aws$"
    ):
        register(SparkSession(spark), Results.open(f"{bucket}/three/audit"))


def test_a_server_that_is_away_is_an_infrastructure_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    storage._remote.cache_clear()
    for name, value in {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ACCESS_KEY_ID": "k",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_MAX_ATTEMPTS": "1",
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(AuditFailed) as failure:
        audit("s3://gone/history", tmp_path / "out", engine="python")
    assert failure.value.exit_code == 4
    storage._remote.cache_clear()


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("ftp://host/history", "unknown storage ftp:"),
        ("abc:/history", "unknown storage abc:"),
        ("s3://key:secret@bucket/history", "must not contain credentials"),
        ("s3://bucket/history?access_key=k", "must not contain credentials or options"),
        ("s3://bucket", "needs a bucket or host, and a path in it"),
        ("s3://bucket/a/../b", "no empty parts"),
        ("s3a:bucket", "needs a bucket or host, and a path in it"),
        ("file:folder", "a file's URI is file:/// and its whole path"),
    ],
)
def test_an_address_that_names_no_place_is_refused(address: str, reason: str) -> None:
    with pytest.raises(StorageError, match=reason) as refused:
        canonical_uri(address)
    assert "secret" not in str(refused.value)


def test_an_output_that_is_not_a_place_is_refused_without_showing_secrets(tmp_path: Path) -> None:
    address = "s3://key:secret@bucket/history"
    out = CliRunner().invoke(
        pubsub, ["audit", str(write_history(tmp_path / "h", 2)), "--out", address]
    )
    assert out.exit_code == 2
    assert "secret" not in out.output
    assert [path.name for path in tmp_path.iterdir()] == ["h"]


def test_a_google_storage_that_does_not_answer_is_not_asked_for_minutes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    def connect(name: str, **options: Any) -> object:
        asked.append((name, options))
        return object()

    monkeypatch.setattr(obstore.store, "GCSStore", connect)
    storage._remote.cache_clear()
    assert storage.open_store("gs://bucket/history").uri == "gs://bucket/history"
    storage._remote.cache_clear()
    ((name, options),) = asked
    assert name == "bucket"
    assert options["retry_config"]["retry_timeout"] <= timedelta(seconds=15)


def test_a_file_too_large_for_memory_is_read_in_ranges(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "MOST_HELD", 4)
    monkeypatch.setattr(storage, "MOST_HELD", 4)
    place = open_store(f"{bucket}/ranges")
    place.put("large", b"0123456789")
    place.put("small", b"0123")
    for store in (place, place.holding()):
        with store.open("large") as file:
            assert file.read() == b"0123456789"
            file.seek(-3, io.SEEK_END)
            assert (file.read(2), file.tell(), file.read(9), file.read(1)) == (b"78", 9, b"9", b"")
    held = place.holding()
    with held.open("small") as file:
        assert file.read() == b"0123"
    place.remove("small")
    assert held.read("small") == b"0123"


def test_a_file_uri_is_a_folder(tmp_path: Path) -> None:
    history = write_history(tmp_path / "with space", 2)
    uri = history.as_uri()
    assert History.open(uri).head == History.open(history).head
    shutil.rmtree(history)


def test_the_command_line_takes_addresses(bucket: str, tmp_path: Path) -> None:
    write_history(f"{bucket}/four/history", 4, cheats={2: drop_a_node})  # type: ignore[arg-type]
    ran: Any = CliRunner().invoke(
        pubsub,
        ["audit", f"{bucket}/four/history", "--out", f"{bucket}/four/audit", "--engine", "python"],
    )
    assert ran.exit_code == 1, ran.output
    assert f"{bucket}/four/audit/run_report.json" in ran.output
    listed = CliRunner().invoke(pubsub, ["evidence", f"{bucket}/four/audit"])
    assert "OmittedBelowBudget" in listed.output
    with pytest.raises(InputError, match="name one with --out"):
        make_report(f"{bucket}/four/audit")
    assert tmp_path.is_dir()

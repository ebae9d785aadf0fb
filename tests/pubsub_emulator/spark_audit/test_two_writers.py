"""Of two writers of one exclusive name, one is told that its file was written: in a folder, in a
folder whose file system has no hard links, and in an object store.
"""

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any, NoReturn

import pytest
from support.plumbing.object_store import s3_server

from pubsub_emulator.spark_audit.history import object_store, schema, storage
from pubsub_emulator.spark_audit.history.address import StorageError
from pubsub_emulator.spark_audit.history.commit import HistoryPart, write_commit
from pubsub_emulator.spark_audit.history.manifest import COMMITS, CommitError
from pubsub_emulator.spark_audit.history.reader import read_commits
from pubsub_emulator.spark_audit.history.storage import Store, open_store
from pubsub_emulator.spark_audit.tables.delta import DeltaError

TURNS = 20


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch, s3_server(patch) as address:
        storage._remote.cache_clear()
        yield address
    storage._remote.cache_clear()


def _no_links(*_given: object) -> NoReturn:
    raise OSError("the file system has no hard links")


@pytest.fixture(params=["folder", "no links", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    if request.param == "s3":
        pytest.importorskip("obstore")
        return open_store(f"{request.getfixturevalue('bucket')}/{tmp_path.name}")
    if request.param == "no links":
        monkeypatch.setattr(os, "link", _no_links)
    return open_store(tmp_path / "place")


def _together(*works: Callable[[], Any]) -> list[Any]:
    """The results of functions that begin at the same time, or the errors that they raised."""
    gate = Barrier(len(works))

    def run(work: Callable[[], Any]) -> Any:
        gate.wait()
        try:
            return work()
        except (CommitError, DeltaError) as error:
            return error

    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(run, works))


def test_exactly_one_of_two_writers_of_a_name_is_told_it_wrote(store: Store) -> None:
    for turn in range(TURNS):
        path = f"t/_delta_log/{turn:020d}.json"
        said = _together(
            lambda: store.put_new(path, b"a"),  # noqa: B023  # it ends within the iteration
            lambda: store.put_new(path, b"b"),  # noqa: B023
        )
        assert sorted(said) == [False, True]
        assert store.read(path) == (b"a" if said[0] else b"b")
    assert len(store.walk("t")) == TURNS, "no temporary file is left"


def _commit(store: Store, segment: int, content: bytes) -> None:
    rows = [{"network": "dev", "segment": segment, "number": 0, "hash": bytes(32), "data": content}]
    part = HistoryPart(schema.NODES, rows, f"{segment:08d}")
    write_commit(store, "dev", segment, [part], {}, None)


def test_at_most_one_of_two_writers_commits_a_segment(store: Store) -> None:
    for segment in range(TURNS // 2):
        said = _together(
            lambda: _commit(store, segment, b"a"),  # noqa: B023  # it ends within the iteration
            lambda: _commit(store, segment, b"b"),  # noqa: B023
        )
        assert sum(each is None for each in said) <= 1
        commits, _ = read_commits(store, store.names(COMMITS))
        kept = [each for each in commits if each.segment == segment]
        assert len(kept) == sum(each is None for each in said)


def test_an_error_of_the_server_is_one_line(bucket: str) -> None:
    pytest.importorskip("obstore")
    place = open_store(f"{bucket}-that-is-not-there/place")
    with pytest.raises(OSError, match=r"^a/b: ") as raised:
        place.put_new("a/b", b"data")
    assert "\n" not in str(raised.value)
    assert "do-not-show-me" not in str(raised.value)


def test_a_profile_needs_boto3(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("obstore")
    monkeypatch.setitem(sys.modules, "obstore.auth.boto3", None)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.setenv("AWS_PROFILE", "mine")
    with pytest.raises(StorageError, match="need boto3"):
        object_store.ObjectStore.connect("s3://other/place")

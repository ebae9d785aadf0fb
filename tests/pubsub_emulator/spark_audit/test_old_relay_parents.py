"""Relay blocks of earlier segments, which a candidate may claim as its relay parent."""

from pathlib import Path

import pytest
from support.spark_audit.audits import write_history

from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.manifest import COMMITS
from pubsub_emulator.spark_audit.history.reader import History
from pubsub_emulator.spark_audit.judge import shared
from pubsub_emulator.spark_audit.judge.shared import Shared
from pubsub_emulator.spark_audit.judge.task import make_tasks

SEGMENTS = 9


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("relay") / "history"
    return write_history(path, 2 * SEGMENTS, segment_length=2)


def _last(path: Path) -> Shared:
    return Shared.of(make_tasks(str(path), History.open(path).commits)[-1])


def _roots(path: Path) -> dict[int, bytes]:
    opened = History.open(path)
    return {
        row["number"]: row["storage_root"]
        for row in opened.rows(opened.files(schema.RELAY_HEADERS), [])
    }


def test_every_relay_block_is_found_and_few_segments_stay_in_memory(
    history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "MOST_SEGMENTS", 2)
    roots = _roots(history)
    assert len(roots) == 2 * SEGMENTS + 1
    known = _last(history)
    for number in (*roots, *reversed(roots)):
        found = known.relay(number)
        assert found is not None
        assert found.root == roots[number]
        assert len(known._headers) <= 2
    assert known.faults == []


@pytest.mark.parametrize("number", [2 * SEGMENTS + 1, 10**6, 2**32 - 1])
def test_a_relay_block_that_never_was_is_not_found(history: Path, number: int) -> None:
    known = _last(history)
    assert known.relay(number) is None
    # It was looked for by halves.
    assert len(known._headers) <= 4


@pytest.mark.parametrize("lost", [0, 3, SEGMENTS - 3])
def test_blocks_are_found_beside_a_segment_that_is_lost(tmp_path: Path, lost: int) -> None:
    path = write_history(tmp_path / "history", 2 * SEGMENTS, segment_length=2)
    roots = _roots(path)
    sorted((path / COMMITS).glob("*.json"))[lost].unlink()
    left = _roots(path)
    known = _last(path)
    for number in roots:
        found = known.relay(number)
        assert (None if found is None else found.root) == left.get(number)


def test_blocks_are_found_beside_headers_that_are_damaged(tmp_path: Path) -> None:
    path = write_history(tmp_path / "history", 2 * SEGMENTS, segment_length=2)
    roots = _roots(path)
    files = History.open(path).files(schema.RELAY_HEADERS)
    (path / files[SEGMENTS // 2].path).write_bytes(b"damaged")
    left = _roots(path)
    assert 0 < len(left) < len(roots)
    known = _last(path)
    for number in roots:
        found = known.relay(number)
        assert (None if found is None else found.root) == left.get(number)
    assert known.has_fault(schema.RELAY_HEADERS)

"""What cannot be read is named with its place and reason; everything else is still read and judged (AU-5)."""

import io
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest
from support.audits import flip, write_history
from support.history_forgery import load, rewrite_manifests, store

from pubsub_emulator.spark_audit.audit.run import AuditResult, audit
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.commit import HistoryPart, write_commit
from pubsub_emulator.spark_audit.history.manifest import COMMITS
from pubsub_emulator.spark_audit.history.reader import MOST_OUTSIDE, Fault, History, read_file
from pubsub_emulator.spark_audit.history.schema import Table
from pubsub_emulator.spark_audit.history.storage import LocalStore


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_history(tmp_path_factory.mktemp("pristine") / "history", 12, subscribers=2)


@pytest.fixture
def history(pristine: Path, tmp_path: Path) -> Path:
    return shutil.copytree(pristine, tmp_path / "history")


def _audit(history: Path) -> AuditResult:
    return audit(history, history.parent / "out", engine="python")


def _file(history: Path, table: Table, chain: int | None, segment: int) -> Path:
    return history / History.open(history).files(table, "dev", chain, segment)[0].path


def _statuses(result: AuditResult) -> dict[int, str]:
    return {row["chain"]: row["status"] for row in result.chains}


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-40]), "bytes, not the"),
        (lambda path: path.write_bytes(b""), "the file has 0 bytes"),
        (lambda path: path.unlink(), "the file is missing"),
        (lambda path: (path.unlink(), os.mkfifo(path)), "is not a regular file"),
        (lambda path: (path.unlink(), path.mkdir()), "is not a regular file"),
        (lambda path: flip(path, -20), "header or footer differ"),
        (lambda path: flip(path, 0), "header or footer differ"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(history: Path, damage: Callable[[Path], object], reason: str) -> None:
    (entry,) = History.open(history).files(schema.BLOCKS, "dev", 2000, 1)
    damage(history / entry.path)
    (unit,) = read_file(history, entry)
    assert isinstance(unit, Fault)
    assert reason in unit.error


def test_a_damaged_file_of_blocks_costs_its_own_segment_only(history: Path) -> None:
    path = _file(history, schema.BLOCKS, 2000, 1)
    flip(path, 0)
    result = _audit(history)
    assert result.exit_code == 3
    rows = list(result.results.rows(schema.QUARANTINE))
    assert {(row["chain"], row["segment"]) for row in rows} == {(chain, 1) for chain in _statuses(result)}
    assert {row["path"] for row in rows} == {path.relative_to(history).as_posix()}
    assert set(_statuses(result).values()) == {"not verified"}
    assert {(row["segments"], row["complete"]) for row in result.chains} == {(3, 2)}


def test_a_damaged_row_group_costs_its_chain_and_segment_only(history: Path) -> None:
    (entry,) = History.open(history).files(schema.BLOCKS, "dev", 2000, 1)
    flip(history / entry.path, entry.row_groups[0].offset + 5)
    result = _audit(history)
    assert result.exit_code == 3
    rows = list(result.results.rows(schema.QUARANTINE))
    assert {(row["path"], row["chain"], row["segment"]) for row in rows} == {(entry.path, 2000, 1)}
    assert any("the row group differs" in row["error"] for row in rows)
    assert _statuses(result) == {1000: "verified", 2000: "not verified", 2001: "verified", 2100: "verified"}
    chain = next(row for row in result.chains if row["chain"] == 2000)
    assert (chain["segments"], chain["complete"]) == (3, 2)


def test_a_flipped_bit_is_noticed_wherever_it_is(history: Path, pristine: Path) -> None:
    """No byte of a committed file is outside of what a manifest digests."""
    entry = History.open(history).files(schema.RELAY_HEADERS)[0]
    path = history / entry.path
    good = (pristine / entry.path).read_bytes()
    for at in range(0, len(good), max(len(good) // 80, 1)):
        path.write_bytes(good[:at] + bytes((good[at] ^ 1,)) + good[at + 1 :])
        assert all(isinstance(unit, Fault) for unit in read_file(history, entry))
    path.write_bytes(good)
    assert not any(isinstance(unit, Fault) for unit in read_file(history, entry))


def test_the_row_groups_beside_a_damaged_one_are_still_read(tmp_path: Path) -> None:
    rows = [
        {"network": "dev", "segment": 0, "number": at, "hash": bytes([at]) * 32, "data": b"%d" % at} for at in range(9)
    ]
    commit = write_commit(tmp_path, "dev", 0, [HistoryPart(schema.NODES, rows, "n", rows_per_group=3)], {})
    entry = commit.files[0]
    flip(tmp_path / entry.path, entry.row_groups[1].offset + 5)
    units = list(read_file(tmp_path, entry))
    assert [isinstance(unit, Fault) for unit in units] == [False, True, False]
    assert units[1] == Fault(entry.path, "the row group differs from what was committed", 1, "dev", None, 0)


class _ReadOnce(LocalStore):
    """Storage that gives each byte of a file as it is once, and other bytes from then on."""

    def open(self, path: str) -> IO[bytes]:
        return _Once((self.folder / path).read_bytes())


class _Once(io.BytesIO):
    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.given: set[int] = set()

    def read(self, size: int | None = -1) -> bytes:
        at = self.tell()
        data = bytearray(super().read(size))
        for place in range(at, at + len(data)):
            data[place - at] ^= place in self.given
            self.given.add(place)
        return bytes(data)


def test_what_is_parsed_is_what_was_compared_with_the_manifest(history: Path) -> None:
    """Each byte is read once, so storage whose files change has no second chance (AU-11), and costs half (AU-17)."""
    for entry in (entry for commit in History.open(history).commits for entry in commit.files):
        assert list(read_file(_ReadOnce(history), entry)) == list(read_file(history, entry))


def test_a_column_that_a_footer_places_outside_of_its_row_group_is_not_read(tmp_path: Path) -> None:
    """A manifest and a footer that agree on nothing else, both with good digests."""
    rows = [{"network": "dev", "segment": 0, "number": at, "hash": bytes(32), "data": b"%d" % at} for at in range(9)]
    entry = write_commit(tmp_path, "dev", 0, [HistoryPart(schema.NODES, rows, "n", rows_per_group=3)], {}).files[0]
    data = (tmp_path / entry.path).read_bytes()
    # The manifest exchanges the first two row groups; the digests of their bytes are right.
    groups = (entry.row_groups[1], entry.row_groups[0], entry.row_groups[2])
    units = list(read_file(tmp_path, replace(entry, row_groups=groups)))
    assert [isinstance(unit, Fault) for unit in units] == [True, True, False]
    assert "unreadable" in str(units[0])
    # All of the file is said to be outside of row groups, which is more than a footer has.
    (tmp_path / entry.path).write_bytes(data[:4] + bytes(MOST_OUTSIDE) + data[4:])
    large = replace(entry, size=len(data) + MOST_OUTSIDE)
    assert ["outside of its row groups" in str(unit) for unit in read_file(tmp_path, large)] == [True]


@pytest.mark.parametrize("table", [schema.NODES, schema.RELAY_HEADERS], ids=lambda table: table.name)
def test_a_lost_file_of_all_chains_is_told_once_and_stops_those_that_need_it(history: Path, table: Table) -> None:
    path = _file(history, table, None, 2)
    path.unlink()
    result = _audit(history)
    assert result.exit_code == 3
    rows = [(row["path"], row["segment"]) for row in result.results.rows(schema.QUARANTINE)]
    assert rows == [(str(path.relative_to(history)), 2)]
    assert set(_statuses(result).values()) == {"not verified"}
    assert all("segment 2 was not judged to its end" in row["reasons"] for row in result.chains)


def test_lost_checkpoints_are_told_once_for_each_chain(history: Path) -> None:
    path = _file(history, schema.CHECKPOINTS, 2000, 1)
    path.unlink()
    result = _audit(history)
    rows = list(result.results.rows(schema.QUARANTINE))
    assert {row["path"] for row in rows} == {str(path.relative_to(history))}
    assert sorted(row["chain"] for row in rows) == sorted(_statuses(result))


def test_a_segment_without_the_one_before_says_so_once_for_all_chains(history: Path) -> None:
    next((history / COMMITS).glob("dev-00000001-*.json")).unlink()
    rows = list(_audit(history).results.rows(schema.QUARANTINE))
    assert len(rows) == 2
    assert {row["chain"] for row in rows} == {None}


def test_a_node_that_no_manifest_lost_is_told_with_its_block(history: Path, tmp_path: Path) -> None:
    segments = load(history)
    key = ("nodes", None)
    segments[2].parts[key] = [row for row in segments[2].parts[key] if row["number"] != 0]
    rows = list(_audit(store(segments, tmp_path / "forged")).results.rows(schema.QUARANTINE))
    assert any("proof node 0" in row["error"] and row["position"] is not None for row in rows)


def test_an_unknown_schema_version_is_quarantined(history: Path) -> None:
    entry = History.open(history).files(schema.BLOCKS)[0]
    later = replace(entry, version=9)
    said = "blocks version 9 is not known, only versions 2 to 7 are"
    assert list(read_file(history, later)) == [Fault(entry.path, said, None, "dev", entry.chain, entry.segment)]


def test_a_manifest_that_names_an_unknown_table_is_quarantined(history: Path) -> None:
    rewrite_manifests(history, lambda body: body["files"][0].update(table="riddles"))
    faults = History.open(history).faults
    assert {fault.error for fault in faults} == {"a table named 'riddles' is not known"}


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: path.write_bytes(b"{"), "not JSON"),
        (lambda path: path.write_bytes(b"[]"), "manifest format None"),
        (lambda path: path.write_bytes(path.read_bytes().replace(b'"segment":1', b'"segment":3')), "digest"),
        (lambda path: path.write_bytes(path.read_bytes().replace(b'"format":3', b'"format":9')), "format 9"),
    ],
)
def test_a_damaged_manifest_is_named(history: Path, damage: Callable[[Path], object], reason: str) -> None:
    path = next((history / COMMITS).glob("dev-00000001-*.json"))
    damage(path)
    faults = History.open(history).faults
    assert any(fault.path == f"{COMMITS}/{path.name}" and reason in fault.error for fault in faults)


def test_a_manifest_without_its_fields_is_quarantined(history: Path) -> None:
    rewrite_manifests(history, lambda body: body.pop("files"))
    assert {fault.error for fault in History.open(history).faults} == {"the manifest lacks or does not know 'files'"}


def test_rows_of_an_unknown_chain_are_quarantined(history: Path, tmp_path: Path) -> None:
    """Blocks of a chain that no checkpoint starts cannot be judged, and stop nothing else."""
    segments = load(history)
    segments[0].parts["blocks", 4000] = [{**row, "chain": 4000} for row in segments[0].parts["blocks", 2000]]
    result = _audit(store(segments, tmp_path / "forged"))
    assert result.exit_code == 3
    assert _statuses(result)[4000] == "not verified"
    assert _statuses(result)[2000] == "verified"
    found = {row["error"] for row in result.results.rows(schema.QUARANTINE) if row["segment"] == 0}
    assert found == {"the segment's checkpoint is not in the history"}


def test_a_file_is_judged_again_once_it_is_mended(history: Path, pristine: Path) -> None:
    path = _file(history, schema.BLOCKS, 2000, 1)
    path.unlink()
    assert _audit(history).exit_code == 3
    shutil.copy(pristine / path.relative_to(history), path)
    mended = _audit(history)
    assert (mended.exit_code, mended.units_judged) == (0, 1)


def test_files_that_no_manifest_names_are_no_part_of_the_history(history: Path) -> None:
    stray = history / "blocks" / "network=dev" / "stray.parquet"
    stray.write_bytes(b"left by a writer that was killed")
    result = _audit(history)
    assert result.exit_code == 0
    assert result.report["uncommitted_files"] == 1


def test_two_nodes_of_one_number_are_neither(history: Path, tmp_path: Path) -> None:
    """A second row of a number would change which node a proof means."""
    segments = load(history)
    rows = segments[1].parts["nodes", None]
    segments[1].parts["nodes", None] = rows + [{**row, "number": (row["number"] + 1) % len(rows)} for row in rows]
    result = _audit(store(segments, tmp_path / "forged"))
    assert result.exit_code == 3
    assert any("there are two nodes" in row["error"] for row in result.results.rows(schema.QUARANTINE))
    assert not result.codes, "nobody is accused"

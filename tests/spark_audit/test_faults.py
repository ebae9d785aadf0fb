"""Whatever breaks under an audit, nothing is lost and nothing is called clean that was not verified (AU-5, AU-6)."""

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from support.audits import SUBSCRIBER, drop_a_node, small_network, write_history
from support.history_forgery import load, rewrite_manifests, store

from pubsub_emulator.emulator.network import Network
from pubsub_emulator.spark_audit.audit.ledger import LEDGER
from pubsub_emulator.spark_audit.audit.run import AuditFailed, AuditResult, audit
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.commit import HistoryPart, write_commit
from pubsub_emulator.spark_audit.history.manifest import COMMITS
from pubsub_emulator.spark_audit.history.reader import History
from pubsub_emulator.spark_audit.history.schema import Table
from pubsub_emulator.spark_audit.history.storage import open_store
from pubsub_emulator.spark_audit.history.store import HistoryWriter
from pubsub_emulator.spark_audit.judge.results import RECEIPT, REPORT, files_are_whole, read_receipt

TABLES = (
    schema.RELAY_HEADERS,
    schema.AUTHORITIES,
    schema.SUBSCRIPTIONS,
    schema.CHECKPOINTS,
    schema.BLOCKS,
    schema.DELIVERIES,
    schema.NODES,
)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pristine") / "history"
    return write_history(path, 6, segment_length=3, cheats={2: drop_a_node})


@pytest.fixture(scope="module")
def whole(pristine: Path) -> AuditResult:
    return _audit(pristine)


@pytest.fixture
def history(pristine: Path, tmp_path: Path) -> Path:
    return shutil.copytree(pristine, tmp_path / "history")


def _audit(history: Path, out: str = "out") -> AuditResult:
    return audit(history, history.parent / out, engine="python")


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _flip(at: Callable[[Path], int]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[at(path)] ^= 0x04
        path.write_bytes(data)

    return damage


DAMAGES: dict[str, Callable[[Path], None]] = {
    "truncated": _truncate,
    "a bit flipped in a value page": _flip(lambda path: path.stat().st_size // 3),
    "a bad footer": _flip(lambda path: path.stat().st_size - 12),
    "gone": Path.unlink,
}


@pytest.mark.parametrize(("table", "damage"), list(zip(TABLES, cycle(DAMAGES), strict=False)))
def test_a_damaged_file_of_any_table_is_named_and_no_audit_of_it_is_clean(
    history: Path, whole: AuditResult, table: Table, damage: str
) -> None:
    """Damages in turn: what is wrong with a file makes no difference to those who need it."""
    entry = History.open(history).files(table)[-1]
    DAMAGES[damage](history / entry.path)
    result = _audit(history)
    assert result.exit_code in {3, 5}
    assert entry.path in {row["path"] for row in result.results.rows(schema.QUARANTINE)}
    assert result.candidates <= whole.candidates
    assert set(result.codes) <= set(whole.codes), "damage is nobody's cheat"
    needing = {row["status"] for row in result.chains if entry.chain in {None, row["chain"]}}
    assert needing == {"not verified"}


@pytest.mark.parametrize("segment", [0, 1])
def test_a_segment_whose_manifest_is_damaged_is_nobodys_cheat(history: Path, whole: AuditResult, segment: int) -> None:
    """What the relay headers of a lost segment would vouch for is not known; it is not denied either."""
    path = next((history / COMMITS).glob(f"dev-{segment:08d}-*.json"))
    _flip(lambda path: path.stat().st_size // 2)(path)
    result = _audit(history)
    assert result.exit_code in {3, 5}
    assert {row["status"] for row in result.chains} == {"not verified"}
    assert set(result.codes) <= {*whole.codes, "UntrustedStart"}


def test_a_relay_parent_in_a_lost_segment_is_nobodys_cheat(tmp_path: Path) -> None:
    """The headers that would vouch for it are gone: the block cannot be judged, and is not accused."""
    config = small_network(segment_length=1).config
    slow = tuple(replace(chain, pace=replace(chain.pace, lag=4)) for chain in config.parachains)
    network = Network(replace(config, parachains=slow))
    with HistoryWriter(tmp_path / "history", "dev") as writer:
        network.observe(writer)
        network.step(9)
        network.finish()
    DAMAGES["truncated"](next((tmp_path / "history" / COMMITS).glob("dev-00000002-*.json")))
    result = _audit(tmp_path / "history")
    assert not {"RelayRootMismatch", "RelayParentMismatch"} & result.codes.keys(), result.codes
    found = [row["error"] for row in result.results.rows(schema.QUARANTINE)]
    assert "relay block 3 is not readable" in found


def test_a_file_of_a_later_schema_version_is_not_read(history: Path) -> None:
    """Its manifest is as it should be: the file's own word is what counts."""
    later = replace(schema.BLOCKS, version=schema.BLOCKS.wider.version + 1, added=())
    rows = list(History.open(history).rows(History.open(history).files(schema.BLOCKS, "dev", SUBSCRIBER, 1), []))
    commit = write_commit(history, "other", 0, [HistoryPart(later, rows, "later", SUBSCRIBER)], {})

    def restate(body: dict[str, Any]) -> None:
        if body["network"] == commit.network:
            body["files"][0]["version"] = schema.BLOCKS.version

    rewrite_manifests(history, restate)
    result = _audit(history)
    errors = [row["error"] for row in result.results.rows(schema.QUARANTINE) if row["network"] == "other"]
    assert any(
        f"version '{later.version}' is not version {schema.BLOCKS.version}, the one known here" in error
        for error in errors
    )


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("status", "pending", "the status 'pending' is not known"),
        ("included_at", None, "has no included_at"),
        ("header", b"\x00", "the header does not decode"),
        ("chain", 77, "blocks has a row of dev, chain 77"),
    ],
)
def test_a_row_that_makes_no_candidate_ends_its_segment_only(
    pristine: Path, tmp_path: Path, column: str, value: object, reason: str
) -> None:
    """Files and digests are as they should be; whoever wrote them was wrong."""
    segments = load(pristine)
    segments[1].parts["blocks", SUBSCRIBER][0][column] = value
    store(segments, tmp_path / "history")
    result = _audit(tmp_path / "history")
    rows = list(result.results.rows(schema.QUARANTINE))
    assert any(reason in row["error"] for row in rows)
    assert {(row["chain"], row["segment"]) for row in rows} == {(SUBSCRIBER, 1)}
    assert {row["chain"] for row in result.chains if row["status"] == "verified"} == {1000, 2100}


# A full disk


def _whole_or_absent(out: Path) -> None:
    """Every result in `out` is what was written; beside them there are at most a report and a ledger."""
    place = open_store(out)
    for receipt in out.rglob(RECEIPT):
        found = read_receipt(place, receipt.parent.relative_to(out).as_posix())
        assert found is not None
        assert files_are_whole(place, found, place.walk())
    assert {path.name for path in out.glob("*") if path.is_file()} <= {REPORT, LEDGER}


def _outcome(history: Path) -> str:
    """The digest of an audit, or exit code and reason."""
    try:
        return _audit(history).digest
    except AuditFailed as failure:
        return f"{failure.exit_code}: {str(failure).split(': ')[-1]}"


@pytest.mark.parametrize("call", ["fsync", "mkdir", "replace"])
def test_a_disk_that_is_full_at_any_moment_fails_the_run_and_keeps_what_was_whole(
    history: Path, whole: AuditResult, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ENOSPC is injected into the calls that an audit's output goes through, a later one each time."""
    out = history.parent / "out"
    owner: Any = os if call == "fsync" else Path
    real = getattr(owner, call)
    failures, outcome = 0, ""
    for allowed in (0, 1, 13, 1000):
        left = [allowed]

        def refuse(*args: Any, left: list[int] = left, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(*args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(owner, call, refuse)
            outcome = _outcome(history)
        if outcome == whole.digest:
            break
        failures += 1
        assert outcome == "4: No space left on device"
        assert not (out / REPORT).exists()
        _whole_or_absent(out)
    assert failures >= 2
    assert outcome == whole.digest
    _whole_or_absent(out)


def test_a_failed_run_leaves_the_last_report_and_what_it_names(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = _audit(history)
    report = (first.out / REPORT).read_bytes()
    rows = list(first.results.rows(schema.FINDINGS))
    os.utime(history / History.open(history).files(schema.BLOCKS)[0].path)

    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(AuditFailed, match="No space left"):
        _audit(history)
    assert (first.out / REPORT).read_bytes() == report
    assert list(first.results.rows(schema.FINDINGS)) == rows

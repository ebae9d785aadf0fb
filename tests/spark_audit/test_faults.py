"""Whatever breaks under an audit, nothing is lost and nothing is called clean that was not verified (AU-5, AU-6)."""

import errno
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.audits import SUBSCRIBER, drop_a_node, small_network, write_history
from support.history_forgery import load, rewrite_manifests, store
from support.processes import python

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


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_damaged_file_of_any_table_is_named_and_no_audit_of_it_is_clean(
    history: Path, whole: AuditResult, table: Table, damage: str
) -> None:
    entry = History.open(history).files(table)[-1]
    DAMAGES[damage](history / entry.path)
    result = _audit(history)
    assert result.exit_code in {3, 5}
    assert entry.path in {row["path"] for row in result.results.rows(schema.QUARANTINE)}
    assert result.candidates <= whole.candidates
    assert set(result.codes) <= set(whole.codes), "damage is nobody's cheat"


@pytest.mark.parametrize("table", ["blocks", "checkpoints", "nodes", "relay_headers", "authorities", "subscriptions"])
def test_a_missing_partition_costs_the_chains_that_need_it(history: Path, table: str) -> None:
    partition = f"{table}/network=dev"
    shutil.rmtree(history / partition)
    result = _audit(history)
    assert result.exit_code in {3, 5}
    assert result.quarantined
    assert {row["chain"]: row["status"] for row in result.chains} == dict.fromkeys((1000, 2000, 2100), "not verified")
    paths = {row["path"] for row in result.results.rows(schema.QUARANTINE)}
    assert any(path.startswith(partition) for path in paths)


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
    for allowed in (0, 1, 4, 13, 30, 1000):
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


_LIMITED = """
import resource, signal, sys
from pathlib import Path
from pubsub_emulator.spark_audit.audit.run import AuditFailed, audit
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
try:
    audit(Path(sys.argv[1]), Path(sys.argv[2]), engine="python")
except AuditFailed as failure:
    print(failure)
    sys.exit(failure.exit_code)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
@pytest.mark.parametrize("room", [0, 12_000])
def test_an_output_without_room_is_an_infrastructure_failure(history: Path, whole: AuditResult, room: int) -> None:
    """The file size limit of the process stands in for the disk: writes fail below Python, as on a full disk."""
    out = history.parent / "out"
    run = python("-c", _LIMITED, history, out, room)
    assert run.returncode == 4, run.stdout + run.stderr
    assert "File too large" in run.stdout
    assert not (out / REPORT).exists()
    _whole_or_absent(out)
    assert _audit(history).digest == whole.digest


# A killed driver

_KILLED = """
import os, signal, sys
from pathlib import Path
from pubsub_emulator.spark_audit.audit.run import audit

def counted(real, left):
    def wrapper(*args, **kwargs):
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)
    return wrapper

def run(calls):
    left = [calls]
    os.link, Path.replace, os.fsync = (counted(real, left) for real in (os.link, Path.replace, os.fsync))
    audit(Path(sys.argv[1]), Path(sys.argv[2]), engine="python")

starts = 0
code = -signal.SIGKILL
while code == -signal.SIGKILL:
    starts += 1
    child = os.fork()
    if not child:
        run(int(sys.argv[3]) + starts)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(starts, code)
"""
"""Audits again and again, killed one call later each time; counted are the calls that the order of things on the disk
rests on."""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_an_audit_that_is_killed_again_and_again_comes_to_the_same_end(history: Path, whole: AuditResult) -> None:
    out = history.parent / "out"
    run = python("-c", _KILLED, history, out, 9)
    starts, code = map(int, run.stdout.split())
    assert code == 0
    assert starts > 5
    _whole_or_absent(out)
    assert json.loads((out / REPORT).read_bytes())["digest"] == whole.digest
    assert not list(out.rglob(".*")), "what the killed runs were at is swept"


def test_a_killed_audit_has_no_report_and_the_next_one_goes_on_where_it_was(history: Path, whole: AuditResult) -> None:
    code = _KILLED.replace("while code == -signal.SIGKILL:", "if True:")
    run = python("-c", code, history, history.parent / "out", 18)
    assert run.stdout.split() == ["1", str(-signal.SIGKILL)]
    assert not (history.parent / "out" / REPORT).exists()
    result = _audit(history)
    assert (result.digest, result.candidates) == (whole.digest, whole.candidates)
    assert 0 < result.units_judged < whole.units_judged

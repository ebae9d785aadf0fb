"""Whatever breaks, an audit is never quietly wrong: it names what it could not read and judges all
else.

AU-5, AU-6, AU-7, AU-11, AU-14, AU-16.
"""

import errno
import io
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import IO, Any

import pytest
from support.runtime.world import SEEDS, Chain, Relay, filled, make_spec, numbered
from support.spark_audit import pool_units
from support.spark_audit.audits import (
    SUBSCRIBER,
    Slip,
    drop_a_node,
    flip,
    small_network,
    write_history,
)
from support.spark_audit.history_forgery import load, rewrite_manifests, store

from pubsub_emulator.emulator.network import Network
from pubsub_emulator.emulator.network.records import CheckpointRecord
from pubsub_emulator.primitives import ed25519
from pubsub_emulator.primitives.header import turn_of
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.pallet_subscriber.storage import PROCESSED_ROOTS, PROCESSING_CURSOR
from pubsub_emulator.runtime.parachain.storage import AUTHORITIES, LAST_DMQ_MQC_HEAD
from pubsub_emulator.spark_audit.audit.ledger import LEDGER
from pubsub_emulator.spark_audit.audit.run import AuditFailed, AuditResult, audit
from pubsub_emulator.spark_audit.choice import choose_engine
from pubsub_emulator.spark_audit.engine import pool
from pubsub_emulator.spark_audit.engine.engine import EngineLost
from pubsub_emulator.spark_audit.engine.pool import PoolMapper
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.commit import HistoryPart, write_commit
from pubsub_emulator.spark_audit.history.manifest import COMMITS, HISTORY_TABLES
from pubsub_emulator.spark_audit.history.reader import MOST_OUTSIDE, Fault, History, read_file
from pubsub_emulator.spark_audit.history.schema import Table
from pubsub_emulator.spark_audit.history.storage import LocalStore, open_store
from pubsub_emulator.spark_audit.history.store import HistoryWriter
from pubsub_emulator.spark_audit.judge import check, findings
from pubsub_emulator.spark_audit.judge.evidence import equivocation_evidence, judge
from pubsub_emulator.spark_audit.judge.finding_file import check_finding, finding_text
from pubsub_emulator.spark_audit.judge.results import RECEIPT, REPORT, files_are_whole, read_receipt
from pubsub_emulator.spark_audit.simulate.score import NoTruth, score


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pristine") / "history"
    return write_history(path, 9, subscribers=2, segment_length=3, cheats={2: drop_a_node})


@pytest.fixture
def history(pristine: Path, tmp_path: Path) -> Path:
    return shutil.copytree(pristine, tmp_path / "history")


def _audit(history: Path, **options: Any) -> AuditResult:
    return audit(history, history.with_name("out"), engine="python", **options)


@pytest.fixture(scope="module")
def whole(pristine: Path) -> AuditResult:
    return _audit(pristine)


def _statuses(result: AuditResult) -> dict[int, str]:
    return {row["chain"]: row["status"] for row in result.chains}


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        pytest.param(
            lambda path: path.write_bytes(path.read_bytes()[:-40]), "bytes, not the", id="cut off"
        ),
        pytest.param(lambda path: path.write_bytes(b""), "the file has 0 bytes", id="empty"),
        pytest.param(lambda path: path.unlink(), "the file is missing", id="missing"),
        pytest.param(
            lambda path: (path.unlink(), os.mkfifo(path)), "is not a regular file", id="a pipe"
        ),
        pytest.param(
            lambda path: (path.unlink(), path.mkdir()), "is not a regular file", id="a folder"
        ),
        pytest.param(
            lambda path: flip(path, -20), "header or footer differ", id="an altered footer"
        ),
        pytest.param(lambda path: flip(path, 0), "header or footer differ", id="an altered header"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(
    history: Path, damage: Callable[[Path], object], reason: str
) -> None:
    (entry,) = History.open(history).files(schema.BLOCKS, "dev", 2000, 1)
    damage(history / entry.path)
    (unit,) = read_file(history, entry)
    assert isinstance(unit, Fault)
    assert reason in unit.error


def test_a_damaged_row_group_costs_its_chain_and_segment_only(history: Path) -> None:
    (entry,) = History.open(history).files(schema.BLOCKS, "dev", 2000, 1)
    flip(history / entry.path, entry.row_groups[0].offset + 5)
    result = _audit(history)
    assert result.exit_code == 5
    rows = list(result.results.rows(schema.READ_ERRORS))
    assert {(row["path"], row["chain"], row["segment"]) for row in rows} == {(entry.path, 2000, 1)}
    assert any("the row group differs" in row["error"] for row in rows)
    assert _statuses(result) == {
        1000: "verified",
        2000: "not verified",
        2001: "verified",
        2100: "verified",
    }
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
        {"network": "dev", "segment": 0, "number": at, "hash": bytes([at]) * 32, "data": b"%d" % at}
        for at in range(9)
    ]
    commit = write_commit(
        tmp_path, "dev", 0, [HistoryPart(schema.NODES, rows, "n", rows_per_group=3)], {}
    )
    entry = commit.files[0]
    flip(tmp_path / entry.path, entry.row_groups[1].offset + 5)
    units = list(read_file(tmp_path, entry))
    assert [isinstance(unit, Fault) for unit in units] == [False, True, False]
    assert units[1] == Fault(
        entry.path, "the row group differs from what was committed", 1, "dev", None, 0
    )


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
    """Each byte is read once, so storage whose files change has no second chance (AU-11), and costs
    half (AU-17).
    """
    for entry in (entry for commit in History.open(history).commits for entry in commit.files):
        assert list(read_file(_ReadOnce(history), entry)) == list(read_file(history, entry))


def test_a_column_placed_outside_of_its_row_group_is_not_read(tmp_path: Path) -> None:
    """A manifest and a footer that agree on nothing else, both with good digests."""
    rows = [
        {"network": "dev", "segment": 0, "number": at, "hash": bytes(32), "data": b"%d" % at}
        for at in range(9)
    ]
    entry = write_commit(
        tmp_path, "dev", 0, [HistoryPart(schema.NODES, rows, "n", rows_per_group=3)], {}
    ).files[0]
    data = (tmp_path / entry.path).read_bytes()
    # The manifest exchanges the first two row groups; the digests of their bytes are right.
    groups = (entry.row_groups[1], entry.row_groups[0], entry.row_groups[2])
    units = list(read_file(tmp_path, replace(entry, row_groups=groups)))
    assert [isinstance(unit, Fault) for unit in units] == [True, True, False]
    assert "unreadable" in str(units[0])
    # All of the file is said to be outside of row groups, which is more than a footer has.
    (tmp_path / entry.path).write_bytes(data[:4] + bytes(MOST_OUTSIDE) + data[4:])
    large = replace(entry, size=len(data) + MOST_OUTSIDE)
    assert ["outside of its row groups" in str(unit) for unit in read_file(tmp_path, large)] == [
        True
    ]


def test_a_node_that_no_manifest_lost_is_told_with_its_block(history: Path, tmp_path: Path) -> None:
    segments = load(history)
    key = ("nodes", None)
    segments[2].parts[key] = [row for row in segments[2].parts[key] if row["number"] != 0]
    rows = list(_audit(store(segments, tmp_path / "forged")).results.rows(schema.READ_ERRORS))
    assert any("proof node 0" in row["error"] and row["position"] is not None for row in rows)


def test_an_unknown_schema_version_is_a_read_error(history: Path) -> None:
    entry = History.open(history).files(schema.BLOCKS)[0]
    later = replace(entry, version=9)
    said = "blocks version 9 is not known, only versions 2 to 8 are"
    assert list(read_file(history, later)) == [
        Fault(entry.path, said, None, "dev", entry.chain, entry.segment)
    ]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        pytest.param(lambda path: path.write_bytes(b"{"), "not JSON", id="not JSON"),
        pytest.param(lambda path: path.write_bytes(b"[]"), "manifest format None", id="a list"),
        pytest.param(
            lambda path: path.write_bytes(
                path.read_bytes().replace(b'"segment":1', b'"segment":3')
            ),
            "digest",
            id="another segment",
        ),
        pytest.param(
            lambda path: path.write_bytes(path.read_bytes().replace(b'"format":3', b'"format":9')),
            "format 9",
            id="another format",
        ),
    ],
)
def test_a_damaged_manifest_is_named(
    history: Path, damage: Callable[[Path], object], reason: str
) -> None:
    path = next((history / COMMITS).glob("dev-00000001-*.json"))
    damage(path)
    faults = History.open(history).faults
    assert any(fault.path == f"{COMMITS}/{path.name}" and reason in fault.error for fault in faults)


def test_rows_of_an_unknown_chain_are_read_errors(history: Path, tmp_path: Path) -> None:
    """Blocks of a chain that no checkpoint starts cannot be judged, and stop nothing else."""
    segments = load(history)
    segments[0].parts["blocks", 4000] = [
        {**row, "chain": 4000} for row in segments[0].parts["blocks", 2000]
    ]
    result = _audit(store(segments, tmp_path / "forged"))
    assert result.exit_code == 5
    assert _statuses(result)[4000] == "not verified"
    assert _statuses(result)[2000] == "verified"
    found = {row["error"] for row in result.results.rows(schema.READ_ERRORS) if row["segment"] == 0}
    assert found == {"the segment's checkpoint is not in the history"}


def test_two_nodes_of_one_number_are_neither(
    history: Path, whole: AuditResult, tmp_path: Path
) -> None:
    """A second row of a number would change which node a proof means."""
    segments = load(history)
    rows = segments[1].parts["nodes", None]
    segments[1].parts["nodes", None] = rows + [
        {**row, "number": (row["number"] + 1) % len(rows)} for row in rows
    ]
    result = _audit(store(segments, tmp_path / "forged"))
    assert result.exit_code == 5
    assert any(
        "there are two nodes" in row["error"] for row in result.results.rows(schema.READ_ERRORS)
    )
    assert result.codes == whole.codes, "nobody is accused"


DAMAGES: dict[str, Callable[[Path], None]] = {
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2),
    "a bit flipped in a value page": lambda path: flip(path, path.stat().st_size // 3),
    "a bad footer": lambda path: flip(path, -12),
    "gone": Path.unlink,
}
TABLES = [HISTORY_TABLES[name] for name in HISTORY_TABLES if name not in {"events", "truth"}]


@pytest.mark.parametrize(("table", "damage"), list(zip(TABLES, cycle(DAMAGES), strict=False)))
def test_a_damaged_file_of_any_table_is_named_and_never_clean(
    history: Path, whole: AuditResult, table: Table, damage: str
) -> None:
    """Damages in turn: what is wrong with a file makes no difference to those who need it."""
    files = History.open(history).files(table)
    entry = next(
        each for each in reversed(files) if table is not schema.CHECKPOINTS or each.segment == 1
    )
    DAMAGES[damage](history / entry.path)
    result = _audit(history)
    assert result.exit_code in {3, 5}
    rows = [
        (row["chain"], row["segment"])
        for row in result.results.rows(schema.READ_ERRORS)
        if row["path"] == entry.path
    ]
    assert len(rows) == len(set(rows)) > 0, "it is told once of each chain that lost something"
    assert {segment for _, segment in rows} == {entry.segment}
    assert result.candidates <= whole.candidates
    assert set(result.codes) <= set(whole.codes), "damage is nobody's cheat"
    needing = [row for row in result.chains if entry.chain in {None, row["chain"]}]
    complete = 1 if table is schema.CHECKPOINTS else 2  # it ends one segment, and begins another
    assert {(row["status"], row["segments"], row["complete"]) for row in needing} == {
        ("not verified", 3, complete)
    }


@pytest.mark.parametrize("segment", [0, 1])
def test_a_segment_whose_manifest_is_damaged_is_nobodys_cheat(
    history: Path, whole: AuditResult, segment: int
) -> None:
    """What the relay headers of a lost segment would vouch for is not known; it is not denied
    either.
    """
    path = next((history / COMMITS).glob(f"dev-{segment:08d}-*.json"))
    flip(path, path.stat().st_size // 2)
    result = _audit(history)
    assert result.exit_code in {3, 5}
    assert {row["chain"] for row in result.results.rows(schema.READ_ERRORS)} == {None}, (
        "once for all chains"
    )
    assert result.read_errors == 3, "the manifest, the segment, and what stands on it"
    assert {row["status"] for row in result.chains} == {"not verified"}
    assert set(result.codes) <= {*whole.codes, "UntrustedStart"}


def test_a_relay_parent_in_a_lost_segment_is_nobodys_cheat(tmp_path: Path) -> None:
    """The headers that would vouch for it are gone: the block cannot be judged, and is not
    accused.
    """
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
    found = [row["error"] for row in result.results.rows(schema.READ_ERRORS)]
    assert "relay block 3 is not readable" in found


def test_a_file_of_a_later_schema_version_is_not_read(history: Path) -> None:
    """Its manifest is as it should be: the file's own word is what counts."""
    later = replace(schema.BLOCKS.wider, version=schema.BLOCKS.wider.version + 1)
    rows = list(
        History.open(history).rows(
            History.open(history).files(schema.BLOCKS, "dev", SUBSCRIBER, 1), []
        )
    )
    commit = write_commit(history, "other", 0, [HistoryPart(later, rows, "later", SUBSCRIBER)], {})

    def restate(body: dict[str, Any]) -> None:
        if body["network"] == commit.network:
            body["files"][0]["version"] = schema.BLOCKS.version

    rewrite_manifests(history, restate)
    result = _audit(history)
    errors = [
        row["error"] for row in result.results.rows(schema.READ_ERRORS) if row["network"] == "other"
    ]
    assert any(
        f"version '{later.version}' is not version {schema.BLOCKS.version}, the one known here"
        in error
        for error in errors
    )


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("status", "pending", "the status 'pending' is not known"),
        ("included_at", None, "has no included_at"),
        ("header", b"\x00", "the header does not decode"),
        ("chain", 77, "blocks has a row of dev, chain 77"),
        ("max_pov", 2**63 - 1, ""),  # figures that fit no table
        ("unpruned", [{"publisher": 1000, "bytes": 2**63 - 1}] * 2, ""),
        ("slot", 2**63 - 1, ""),
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
    assert result.exit_code == 5, "there are findings, and not everything could be read (AU-7)"
    rows = list(result.results.rows(schema.READ_ERRORS))
    assert any(reason in row["error"] for row in rows)
    assert {(row["chain"], row["segment"]) for row in rows} == {(SUBSCRIBER, 1)}
    assert {row["chain"] for row in result.chains if row["status"] == "verified"} == {
        1000,
        2001,
        2100,
    }


# A full disk


def _whole_or_absent(out: Path) -> None:
    """Every result in `out` is what was written; beside them there are at most a report and a
    ledger.
    """
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
def test_a_full_disk_fails_the_run_at_any_moment_and_keeps_files(
    history: Path, whole: AuditResult, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ENOSPC is injected into the calls that an audit's output goes through, a later one each
    time.
    """
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


def test_a_failed_run_leaves_the_last_report_and_what_it_names(
    history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


Rows = dict[bytes, bytes]


# A checkpoint that is consistent and makes no sense (AU-5)


def _put(key: bytes, value: bytes) -> Callable[[Rows], object]:
    return lambda rows: rows.__setitem__(key, value)


SENSELESS: dict[str, Callable[[Rows], object]] = {
    "no collators": _put(AUTHORITIES.key, b"\x00"),
    "collators gone": lambda rows: rows.pop(AUTHORITIES.key),
    "collators undecodable": _put(AUTHORITIES.key, b"\x04ab"),
    "a message head of 31 bytes": _put(LAST_DMQ_MQC_HEAD.key, bytes(31)),
    "cursor undecodable": _put(PROCESSING_CURSOR.key, b"x"),
    "roots undecodable": _put(PROCESSED_ROOTS.key, b"\xff"),
}


@pytest.mark.parametrize("label", SENSELESS)
def test_a_senseless_checkpoint_costs_its_segment_and_nothing_else(
    tmp_path: Path, label: str
) -> None:
    def spoil(record: CheckpointRecord) -> CheckpointRecord:
        if (record.chain, record.segment) != (SUBSCRIBER, 1):
            return record
        rows = dict(record.state.top_entries())
        SENSELESS[label](rows)
        state = State.from_entries(rows.items())
        return replace(record, state=state, header=replace(record.header, state_root=state.root()))

    result = _audit(
        write_history(tmp_path / "history", 6, subscribers=2, segment_length=3, checkpoints=spoil)
    )
    assert result.exit_code in {3, 5}
    statuses = {row["chain"]: row["status"] for row in result.chains}
    assert statuses == {1000: "verified", 2000: "not verified", 2001: "verified", 2100: "verified"}
    read_errors = list(result.results.rows(schema.READ_ERRORS))
    assert {(row["chain"], row["segment"]) for row in read_errors} == {(SUBSCRIBER, 1)}
    assert set(result.codes) <= {"SeamMismatch"}, "the seam is open, and no collator is accused"


# Equivocation across chains


def test_one_key_sealing_blocks_on_two_chains_does_not_prove_equivocation(
    tmp_path: Path,
) -> None:
    keys = numbered(3)
    relay = Relay(1, {1000: filled(keys)})
    chains = [
        Chain(replace(make_spec({1000: keys}), para_id=ParaId(para))) for para in (3000, 3001)
    ]
    headers = [chain.author(relay).header for chain in chains]
    slot = headers[0].aura_slot() or 0
    author = ed25519.public_key(turn_of(slot, SEEDS))
    evidence = equivocation_evidence(author, headers[0].encode(), headers[1].encode())
    shown = judge(evidence)
    assert any("of one chain" in line for line in shown.rests_on)
    row = {
        "network": "any",
        "chain": 3000,
        "code": findings.EQUIVOCATION,
        "severity": "info",
        "detail": shown.detail,
        "verifier": "0",
        "segment": None,
        "position": None,
        "number": headers[1].number,
        "block": headers[1].hash(),
        "collator": author,
        "evidence": evidence,
    }
    row["id"] = findings.finding_id(
        "any", 3000, findings.EQUIVOCATION, slot.to_bytes(8, "little") + author
    )
    path = tmp_path / "finding.json"
    path.write_text(finding_text(row))
    assert not check_finding(path).proven


# What a result rests on


def test_a_read_that_failed_is_tried_again_and_never_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that is away for a minute and comes back untouched."""
    history = write_history(tmp_path / "history", 6, segment_length=3, cheats={2: drop_a_node})
    whole = audit(history, tmp_path / "whole", engine="python")
    real = LocalStore.open
    failing = [True]

    def away(place: LocalStore, path: str) -> Any:
        if failing[0] and path.startswith("blocks/"):
            raise OSError(5, "Input/output error")
        return real(place, path)

    monkeypatch.setattr(LocalStore, "open", away)
    lost = _audit(history)
    assert lost.exit_code == 3
    assert {row["status"] for row in lost.chains} == {"not verified"}
    assert not list((tmp_path / "out" / "items").rglob(RECEIPT)), "nothing of it is kept"
    failing[0] = False
    again = _audit(history)
    assert (again.digest, again.codes, again.exit_code) == (
        whole.digest,
        whole.codes,
        whole.exit_code,
    )


def test_one_failed_read_in_three_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = write_history(tmp_path / "history", 4)
    real, calls = LocalStore.open, [0]

    def shaky(place: LocalStore, path: str) -> Any:
        calls[0] += 1
        if calls[0] % 3 == 0 and path.endswith(".parquet"):
            raise OSError(5, "Input/output error")
        return real(place, path)

    monkeypatch.setattr(LocalStore, "open", shaky)
    assert _audit(history).exit_code == 0


def test_what_a_worker_wrote_elsewhere_is_an_infrastructure_failure(tmp_path: Path) -> None:
    """An output that is not shared: the receipts come back, the files do not."""

    class Elsewhere:
        name = "elsewhere"
        cores = 1

        def map(self, unit: Any, tasks: Any, out: str, report: Any, weights: Any = None) -> Any:  # noqa: ARG002  # a mapper's
            return [unit(task, f"{out}-of-the-worker") for task in tasks]

        def close(self) -> None:
            pass

    history = write_history(tmp_path / "history", 4)
    with pytest.raises(AuditFailed, match="is missing although a worker wrote it") as failure:
        audit(history, tmp_path / "out", opener=lambda _engine, _master: Elsewhere())
    assert failure.value.exit_code == 4
    assert not list((tmp_path / "out").rglob("*.*")), "nothing is kept"
    assert _audit(history).exit_code == 0


def test_a_relative_history_is_the_same_for_every_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_history(tmp_path / "history", 4)
    monkeypatch.chdir(tmp_path)
    assert open_store("history").uri == str(tmp_path / "history")
    assert audit("history", "out", engine="pool").exit_code == 0


def test_a_history_without_a_truth_cannot_be_scored(tmp_path: Path) -> None:
    history = write_history(tmp_path / "history", 4)
    _audit(history)
    with pytest.raises(NoTruth, match="nothing can be scored"):
        score(history, tmp_path / "out")


def test_a_chain_that_never_builds_is_verified_in_every_segment(tmp_path: Path) -> None:
    network = small_network(segment_length=3)
    with HistoryWriter(tmp_path / "history", "dev") as writer:
        network.observe(Slip(writer, network))
        network.step(8)
        network.finish()
    result = _audit(tmp_path / "history")
    assert (result.exit_code, {row["status"] for row in result.chains}) == (0, {"verified"})


def test_a_failure_of_the_machine_while_judging_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = write_history(tmp_path / "history", 4)

    def fail(*_: object) -> None:
        raise ConnectionResetError("the network is away")

    with monkeypatch.context() as patched:
        patched.setattr(check, "judge_block", fail)
        assert _audit(history).read_errors
    assert not _audit(history).read_errors


# The pool of processes, AU-14


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers find the units of the tests."""
    monkeypatch.setenv("PYTHONPATH", str(Path(pool_units.__file__).parents[2]))


def test_a_killed_worker_is_replaced_and_its_unit_done_again(tmp_path: Path, workers: None) -> None:  # noqa: ARG001  # a fixture
    mapper = PoolMapper(2)
    mapper.map(
        pool_units.die_once, [str(tmp_path / "a"), str(tmp_path / "b")], "", lambda _done: None
    )
    found = mapper.map(
        pool_units.die_once, [str(tmp_path / name) for name in "abcd"], "", lambda _done: None
    )
    mapper.close()
    assert [each["task"] for each in found] == [str(tmp_path / name) for name in "abcd"]


def test_a_unit_that_kills_every_worker_ends_the_run(
    workers: None,  # noqa: ARG001  # a fixture
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool, "ATTEMPTS", 2)
    mapper = PoolMapper(1)
    with pytest.raises(EngineLost, match="lost 2 times with its worker process"):
        mapper.map(pool_units.die, ["x"], "", lambda _done: None)
    mapper.close()


def test_the_engine_follows_from_master_and_work() -> None:
    assert choose_engine("auto", "spark://host:7077", 1) == "spark"
    assert choose_engine("auto", None, 1) == "python"
    assert choose_engine("python", "local[2]", 9) == "python"

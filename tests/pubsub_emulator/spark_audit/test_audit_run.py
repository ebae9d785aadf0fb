"""A run judges what is new, round by round, keeps the rest, and leaves no half output (AU-6, AU-7,
AU-16, AU-17).
"""

import json
import os
import shutil
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from support.plumbing.processes import python
from support.spark_audit.audits import (
    SUBSCRIBER,
    all_rows,
    drop_a_node,
    flip,
    growing,
    write_history,
)

from pubsub_emulator.spark_audit.audit import folds, ledger, rounds
from pubsub_emulator.spark_audit.audit.follow import follow
from pubsub_emulator.spark_audit.audit.ledger import LEDGER
from pubsub_emulator.spark_audit.audit.rounds import Rounds
from pubsub_emulator.spark_audit.audit.run import (
    CLEAN,
    INCOMPLETE,
    AuditFailed,
    AuditResult,
    audit,
)
from pubsub_emulator.spark_audit.audit.work import AuditProgress
from pubsub_emulator.spark_audit.history import reader, schema
from pubsub_emulator.spark_audit.history.listing import Listing
from pubsub_emulator.spark_audit.history.manifest import COMMITS, Commit, canonical_json
from pubsub_emulator.spark_audit.history.reader import History
from pubsub_emulator.spark_audit.history.storage import LocalStore, Store
from pubsub_emulator.spark_audit.judge.findings import Thresholds
from pubsub_emulator.spark_audit.judge.results import REPORT, Results
from pubsub_emulator.spark_audit.tables.parts import Tables


def _contents(path: Path) -> dict[str, bytes]:
    return {
        each.relative_to(path).as_posix(): each.read_bytes()
        for each in path.rglob("*")
        if each.is_file()
    }


def test_a_second_run_judges_nothing_and_says_the_same(tmp_path: Path) -> None:
    history = write_history(tmp_path / "history")
    first = audit(history, tmp_path / "out", engine="python")
    kept = _contents(tmp_path / "out")
    second = audit(history, tmp_path / "out", engine="spark")
    assert (second.units_judged, second.units_skipped, second.engine) == (
        0,
        first.units_judged,
        None,
    )
    assert (second.digest, second.chains, second.exit_code) == (
        first.digest,
        first.chains,
        first.exit_code,
    )
    changed = {name for name, data in _contents(tmp_path / "out").items() if kept.get(name) != data}
    assert changed <= {REPORT, LEDGER}


def test_a_run_with_nothing_new_does_not_load_spark(tmp_path: Path) -> None:
    history = write_history(tmp_path / "history", 3)
    audit(history, tmp_path / "out", engine="python")
    code = (
        "import sys; from pathlib import Path; from pubsub_emulator.spark_audit.audit.run import"
        " audit; result = audit(Path(sys.argv[1]), Path(sys.argv[2])); print(result.engine,"
        " 'pyspark' in sys.modules)"
    )
    run = python("-c", code, history, tmp_path / "out", PATH="")
    assert run.stdout.strip() == "None False"


def test_a_killed_runs_judgements_are_reused_and_damaged_ones_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AU-6: it was killed when all was judged, and nothing of it in the tables yet."""
    history = write_history(tmp_path / "history", 11)
    whole = audit(history, tmp_path / "whole", engine="python")

    def kill(_tables: Tables, _run: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Tables, "flush", kill)
        with pytest.raises(KeyboardInterrupt):
            audit(history, tmp_path / "out", engine="python")
    receipts = sorted((tmp_path / "out" / "items").rglob("receipt.json"))
    assert len(receipts) == 3
    receipts[0].write_bytes(b"{")
    next(receipts[1].parent.glob("block_measures-*.parquet")).unlink()
    again = audit(history, tmp_path / "out", engine="python")
    assert (again.units_judged, again.digest, again.codes) == (2, whole.digest, whole.codes)
    assert all_rows(again) == all_rows(whole)


def test_results_that_no_report_names_are_removed(tmp_path: Path) -> None:
    history = write_history(tmp_path / "history", 5)
    stale = tmp_path / "out" / "items" / "network=dev" / "chain=2000" / "00000000-stale"
    stale.mkdir(parents=True)
    (stale / "receipt.json").write_bytes(b"{}")
    audit(history, tmp_path / "out", engine="python")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "chains",
        "tables",
        "ledger",
        LEDGER,
        REPORT,
    }
    assert [path.name.partition("-")[0] for path in (tmp_path / "out" / "chains").rglob("*.*")] == [
        "state.json"
    ]


def test_an_output_that_cannot_be_written_is_an_infrastructure_failure(tmp_path: Path) -> None:
    history = write_history(tmp_path / "history", 2)
    (tmp_path / "out").write_text("in the way")
    with pytest.raises(AuditFailed) as failure:
        audit(history, tmp_path / "out", engine="python")
    assert failure.value.exit_code == 4


def test_asking_for_what_there_is_not_is_a_usage_error(tmp_path: Path) -> None:
    for engine, words in (("python", "there is no history"), ("abacus", "unknown engine 'abacus'")):
        with pytest.raises(AuditFailed, match=words) as failure:
            audit(tmp_path, tmp_path / "out", engine=engine)
        assert failure.value.exit_code == 2


def test_the_report_says_what_was_done(tmp_path: Path) -> None:
    history = write_history(tmp_path / "history", 6, cheats={3: drop_a_node})
    seen: list[AuditProgress] = []
    result = audit(history, tmp_path / "out", engine="python", progress=seen.append)
    report = json.loads((tmp_path / "out" / REPORT).read_bytes())
    assert report == json.loads(canonical_json(result.report))
    assert (
        report["complete_up_to"]
        == f"head 0x{History.open(history).head}, as the history itself says"
    )
    expected: dict[str, Any] = {
        "exit_code": 1,
        "digest": result.digest,
        "engine": "python",
        "candidates": result.candidates,
        "judged": result.candidates,
        "codes": {"Equivocation": 1, "OmittedBelowBudget": 1},
        "read_errors": 0,
        "units": {"judged": 2, "skipped": 0},
    }
    assert {name: report[name] for name in expected} == expected
    assert {progress.phase for progress in seen} == {
        "start",
        "verify",
        "chains",
        "summary",
        "tables",
    }
    assert AuditProgress("verify", 2, 2) in seen
    assert Results.open(tmp_path / "out").report == report


def test_measures_add_up_to_what_the_proof_weighs(tmp_path: Path) -> None:
    """PS-70, AU-3: static nodes, top paths, child nodes and values are the whole proof."""
    result = audit(write_history(tmp_path / "history", 12), tmp_path / "out", engine="python")
    rows = [
        row for row in result.results.rows(schema.BLOCK_MEASURES) if row["status"] == "included"
    ]
    parts = ("static_bytes", "top_path_bytes", "child_node_bytes", "value_bytes")
    assert all(row["proof_bytes"] == sum(row[name] for name in parts) for row in rows)
    assert any(row["saved_unchanged"] for row in rows)
    assert sum(row["proof_bytes"] for row in rows) == result.proof_bytes
    publishers = list(result.results.rows(schema.PUBLISHER_MEASURES))
    for name in ("top_path_bytes", "child_node_bytes", "value_bytes", "cached_bytes"):
        assert sum(row[name] for row in publishers) == sum(row[name] for row in rows)


def test_whoever_follows_waits_for_a_history_that_is_not_there_yet(tmp_path: Path) -> None:
    stop = Event()
    stop.set()
    assert list(follow(tmp_path / "none", tmp_path / "out", stop)) == []


SEGMENTS = 7


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two networks of seven segments each, with a cheat."""
    path = tmp_path_factory.mktemp("rounds") / "history"
    for name in ("one", "two"):
        list(growing(path, 2 * SEGMENTS - 1, cheats={4: drop_a_node}, name=name))
    return path


@pytest.fixture(scope="module")
def whole(long: Path) -> AuditResult:
    """All of it in one round."""
    return audit(long, long.with_name("whole"), engine="python")


@pytest.fixture(scope="module")
def but_one(long: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The audit of all but the last segment."""
    history = shutil.copytree(long, tmp_path_factory.mktemp("but-one") / "history")
    max((history / COMMITS).glob("two-*.json")).unlink()
    return audit(history, history.with_name("out"), engine="python").store.folder  # type: ignore[attr-defined,no-any-return]


@pytest.fixture
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three segments a round, two receipts a page, and folds of one chain."""
    monkeypatch.setattr(rounds, "ROUND", 3)
    monkeypatch.setattr(rounds, "ROUND_OF_CORE", 1)
    monkeypatch.setattr(folds, "FOLDED", 1)
    monkeypatch.setattr(ledger, "PAGE", 2)


def _same(result: AuditResult, whole: AuditResult) -> None:
    told = [
        (each.digest, each.codes, each.exit_code, each.chains, each.head)
        for each in (result, whole)
    ]
    assert told[0] == told[1]
    assert all_rows(result) == all_rows(whole)


@pytest.mark.usefixtures("short_rounds")
def test_au17_rounds_give_what_one_round_gives(
    long: Path, whole: AuditResult, tmp_path: Path
) -> None:
    result = audit(long, tmp_path / "out", engine="python")
    assert result.units_judged == whole.units_judged == 2 * SEGMENTS
    _same(result, whole)
    again = audit(long, tmp_path / "out", engine="python")
    assert (again.units_judged, again.units_skipped) == (0, 2 * SEGMENTS)
    _same(again, whole)


def test_a_chain_with_most_of_all_blocks_is_folded_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = write_history(tmp_path / "history", 6, segment_length=2, skew=4)
    whole = audit(history, tmp_path / "whole", engine="python")
    sizes = [row["candidates"] for row in whole.chains]
    assert 2 * max(sizes) > sum(sizes)
    for folded in (1, 6):
        monkeypatch.setattr(rounds, "ROUND", folded)
        monkeypatch.setattr(folds, "FOLDED", folded)
        _same(audit(history, tmp_path / f"out{folded}", engine="python"), whole)


@pytest.mark.usefixtures("short_rounds")
def test_au6_a_run_that_is_killed_goes_on_behind_its_last_round(
    long: Path, whole: AuditResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = 2
    real, done = Rounds._round, [0]

    def kill(run: Rounds, *given: Any) -> Any:
        if done[0] == at:
            raise KeyboardInterrupt
        done[0] += 1
        return real(run, *given)

    with monkeypatch.context() as patch:
        patch.setattr(Rounds, "_round", kill)
        with pytest.raises(KeyboardInterrupt):
            audit(long, tmp_path / "out", engine="python")
    assert not (tmp_path / "out" / "run_report.json").exists()
    result = audit(long, tmp_path / "out", engine="python")
    assert result.units_judged == 2 * SEGMENTS - 3 * at
    _same(result, whole)


def test_au17_one_more_segment_reads_one_manifest_of_before(
    but_one: Path, long: Path, whole: AuditResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history, out = long, shutil.copytree(but_one, tmp_path / "out")
    real = reader.read_manifest
    read: list[str] = []

    def counted(store: Store, name: str) -> Commit:
        read.append(name)
        return real(store, name)

    monkeypatch.setattr(reader, "read_manifest", counted)
    monkeypatch.setattr(rounds, "read_manifest", counted)
    result = audit(history, out, engine="python")
    assert result.units_judged == 1
    manifests = sorted(path.name for path in (history / COMMITS).glob("*.json"))
    assert sorted(read) == [
        manifests[0],
        *manifests[-2:],
    ], "the first names the rules of the history"
    assert (result.digest, result.codes) == (whole.digest, whole.codes)


@pytest.mark.parametrize(
    # what happens to a file, its table, segments judged: the new one and those that need or check
    # the file
    "case",
    [
        ("nothing", schema.BLOCKS, 1),
        ("changed", schema.BLOCKS, 2),
        ("changed", schema.RELAY_HEADERS, 3),
        ("changed", schema.EVENTS, 2),
        ("lost", schema.NODES, 2),
        ("added", schema.NODES, 2),
    ],
)
def test_au11_changed_lost_and_added_files_of_old_segments_are_noticed(
    but_one: Path,
    long: Path,
    whole: AuditResult,
    tmp_path: Path,
    case: tuple[str, schema.Table, int],
) -> None:
    harm, table, judged = case
    history = shutil.copytree(long, tmp_path / "history")
    out = shutil.copytree(but_one, tmp_path / "out")
    chain = SUBSCRIBER if table == schema.BLOCKS else None
    path = history / History.open(history).files(table, "two", chain, 2)[0].path
    if harm == "changed":
        os.utime(path, ns=(1, 1))
    elif harm == "lost":
        path.unlink()
    elif harm == "added":
        path.with_name(f"{path.name[:9]}{'0' * 16}.parquet").write_bytes(b"")
    result = audit(history, out, engine="python")
    lost = [row["path"] for row in result.results.rows(schema.READ_ERRORS)]
    assert lost[:1] == ([str(path.relative_to(history))] if harm == "lost" else [])
    assert result.report["uncommitted_files"] == (harm == "added")
    assert result.units_judged == judged
    if harm != "lost":
        _same(result, whole)


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(
            {},
            id="nothing known",
        ),
        pytest.param(
            {"one": 3},
            id="one network",
        ),
        pytest.param(
            {"one": 6, "two": 2},
            id="both networks",
        ),
        pytest.param(
            {"one": 3, "gone": 9},
            id="a network that is gone",
        ),
    ],
)
def test_what_is_known_changes_no_number_of_a_listing(long: Path, known: dict[str, int]) -> None:
    plain, listing = (Listing.of(LocalStore(long), each) for each in ({}, known))
    lasts = {"one": 6, "two": 6} | known
    assert listing.sums(lasts) == plain.sums(lasts)
    fresh = [
        commit
        for commit in History.open(long).commits
        if commit.segment > known.get(commit.network, -1)
    ]
    assert fresh
    for commit in fresh:
        place = (commit.network, commit.segment)
        assert listing.read_by(*place) == plain.read_by(*place)
        assert listing.surplus(commit) == plain.surplus(commit) == 0
    files = {entry.path for commit in fresh for entry in commit.files}
    assert listing.beyond(known) == plain.beyond(known) == len(files)


def test_au16_a_run_lists_each_file_once_and_keeps_only_new_numbers(
    long: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit(long, tmp_path / "out", engine="python")
    listings: list[Listing] = []
    real = Listing.of
    monkeypatch.setattr(Listing, "of", lambda *given: listings.append(real(*given)) or listings[-1])
    assert audit(long, tmp_path / "out", engine="python").units_judged == 0
    (listing,) = listings
    assert {segment for _, segment, _ in listing._sums} == {SEGMENTS - 1}


@pytest.mark.usefixtures("short_rounds")
def test_au6_a_changed_file_costs_its_segment_and_leaves_no_old_row(
    long: Path, whole: AuditResult, tmp_path: Path
) -> None:
    history = shutil.copytree(long, tmp_path / "history")
    first = audit(history, tmp_path / "out", engine="python")
    (entry,) = History.open(history).files(schema.BLOCKS, "one", SUBSCRIBER, 3)
    path = history / entry.path
    data = path.read_bytes()
    os.utime(path, ns=(1, 1))
    touched = audit(history, tmp_path / "out", engine="python")
    assert touched.units_judged == 1
    _same(touched, whole)
    flip(path, entry.row_groups[0].offset + 5)
    damaged = audit(history, tmp_path / "out", engine="python")
    assert damaged.read_errors == 1
    assert len(list(damaged.results.rows(schema.BLOCK_MEASURES))) < first.candidates
    path.write_bytes(data)
    mended = audit(history, tmp_path / "out", engine="python")
    assert mended.units_judged == 1
    _same(mended, whole)


def test_other_thresholds_judge_nothing_again(long: Path, tmp_path: Path) -> None:
    limits = Thresholds(relay_lag=1, at_budget_blocks=1, stalled_blocks=1)
    audit(long, tmp_path / "out", engine="python")
    changed = audit(long, tmp_path / "out", engine="python", thresholds=limits)
    assert (changed.units_judged, changed.units_skipped) == (0, 2 * SEGMENTS)
    _same(changed, audit(long, tmp_path / "other", engine="python", thresholds=limits))


def test_a_network_that_is_gone_leaves_nothing(long: Path, tmp_path: Path) -> None:
    history = shutil.copytree(long, tmp_path / "history")
    audit(history, tmp_path / "out", engine="python")
    for path in (history / COMMITS).glob("one-*.json"):
        path.unlink()
    left = audit(history, tmp_path / "out", engine="python", fail_on=None)
    assert left.units_judged == 0
    fresh = audit(history, tmp_path / "other", engine="python", fail_on=None)
    # The loss of the network is told, beside the rows that the rest of the history gives.
    (told,) = left.results.rows(schema.READ_ERRORS)
    assert (told["network"], told["segment"]) == ("one", SEGMENTS - 1)
    assert (left.exit_code, fresh.exit_code) == (INCOMPLETE, CLEAN)
    rows, others = all_rows(left), all_rows(fresh)
    assert rows.pop("read_errors") != others.pop("read_errors")
    assert rows == others


def _without_the_end(long: Path, tmp_path: Path) -> Path:
    """A history that was audited into `out`, and then lost the last manifest of a network."""
    history = shutil.copytree(long, tmp_path / "history")
    audit(history, tmp_path / "out", engine="python")
    max((history / COMMITS).glob("two-*.json")).unlink()
    return history


def test_a_network_that_lost_its_end_is_not_verified(long: Path, tmp_path: Path) -> None:
    history = _without_the_end(long, tmp_path)
    for _ in range(2):
        # It is told in each run, not only in the first one that notices.
        found = audit(history, tmp_path / "out", engine="python", fail_on=None)
        assert found.exit_code == INCOMPLETE
        assert found.head is None
        status = {(row["network"], row["status"]) for row in found.chains}
        assert status == {("one", "verified"), ("two", "not verified")}
        assert found.codes["MissingSegment"] == sum(row["network"] == "two" for row in found.chains)
        assert any("an earlier audit has read" in row["error"] for row in _read_errors(found))
    assert found.uncommitted > 0


def _read_errors(result: AuditResult) -> list[dict[str, Any]]:
    return list(result.results.rows(schema.READ_ERRORS))


def test_a_demanded_head_accepts_a_history_that_is_shorter(long: Path, tmp_path: Path) -> None:
    history = _without_the_end(long, tmp_path)
    fresh = audit(history, tmp_path / "other", engine="python")
    accepted = audit(history, tmp_path / "out", engine="python", head=fresh.head)
    assert (accepted.exit_code, accepted.head) == (fresh.exit_code, fresh.head)
    _same(accepted, fresh)
    assert audit(history, tmp_path / "out", engine="python").read_errors == 0


def test_the_end_that_comes_back_is_taken(long: Path, whole: AuditResult, tmp_path: Path) -> None:
    history = _without_the_end(long, tmp_path)
    audit(history, tmp_path / "out", engine="python")
    shutil.copytree(long / COMMITS, history / COMMITS, dirs_exist_ok=True)
    _same(audit(history, tmp_path / "out", engine="python"), whole)


def test_another_history_at_the_same_place_has_lost_nothing(long: Path, tmp_path: Path) -> None:
    history = shutil.copytree(long, tmp_path / "history")
    audit(history, tmp_path / "out", engine="python")
    shutil.rmtree(history)
    write_history(history, 3, name="two", segment_length=1)
    assert audit(history, tmp_path / "out", engine="python").read_errors == 0


def test_data_without_any_manifest_is_incomplete(long: Path, tmp_path: Path) -> None:
    history = shutil.copytree(long, tmp_path / "history")
    for path in (history / COMMITS).iterdir():
        path.unlink()
    result = audit(history, tmp_path / "out", engine="python")
    assert (result.exit_code, result.uncommitted > 0) == (INCOMPLETE, True)

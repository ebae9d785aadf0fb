"""A run judges what is new, keeps the rest, and never leaves half an output (AU-6, AU-7)."""

import json
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from support.audits import all_rows, drop_a_node, write_history
from support.processes import python

from pubsub_emulator.spark_audit.audit.follow import follow
from pubsub_emulator.spark_audit.audit.ledger import LEDGER
from pubsub_emulator.spark_audit.audit.rounds import Progress
from pubsub_emulator.spark_audit.audit.run import AuditFailed, audit
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.manifest import canonical_json
from pubsub_emulator.spark_audit.history.reader import History
from pubsub_emulator.spark_audit.judge.results import REPORT, Results
from pubsub_emulator.spark_audit.tables.parts import Tables


def _contents(path: Path) -> dict[str, bytes]:
    return {each.relative_to(path).as_posix(): each.read_bytes() for each in path.rglob("*") if each.is_file()}


def test_a_second_run_judges_nothing_and_says_the_same(tmp_path: Path) -> None:
    history = write_history(tmp_path / "history")
    first = audit(history, tmp_path / "out", engine="python")
    kept = _contents(tmp_path / "out")
    second = audit(history, tmp_path / "out", engine="spark")
    assert (second.units_judged, second.units_skipped, second.engine) == (0, first.units_judged, None)
    assert (second.digest, second.chains, second.exit_code) == (first.digest, first.chains, first.exit_code)
    changed = {name for name, data in _contents(tmp_path / "out").items() if kept.get(name) != data}
    assert changed <= {REPORT, LEDGER}


def test_a_run_with_nothing_new_does_not_load_spark(tmp_path: Path) -> None:
    history = write_history(tmp_path / "history", 3)
    audit(history, tmp_path / "out", engine="python")
    code = (
        "import sys; from pathlib import Path; from pubsub_emulator.spark_audit.audit.run import audit; "
        "result = audit(Path(sys.argv[1]), Path(sys.argv[2])); print(result.engine, 'pyspark' in sys.modules)"
    )
    run = python("-c", code, history, tmp_path / "out", PATH="")
    assert run.stdout.strip() == "None False"


def test_what_a_killed_run_judged_is_taken_and_what_is_damaged_of_it_is_judged_again(
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
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"chains", "tables", "ledger", LEDGER, REPORT}
    assert [path.name.partition("-")[0] for path in (tmp_path / "out" / "chains").rglob("*.*")] == ["state.json"]


def test_an_output_that_cannot_be_written_is_an_infrastructure_failure(tmp_path: Path) -> None:
    history = write_history(tmp_path / "history", 2)
    (tmp_path / "out").write_text("in the way")
    with pytest.raises(AuditFailed) as failure:
        audit(history, tmp_path / "out", engine="python")
    assert failure.value.exit_code == 4


def test_asking_for_what_there_is_not_is_a_usage_error(tmp_path: Path) -> None:
    for engine, words in (("python", "there is no history"), ("abacus", "no engine 'abacus'")):
        with pytest.raises(AuditFailed, match=words) as failure:
            audit(tmp_path, tmp_path / "out", engine=engine)
        assert failure.value.exit_code == 2


def test_the_report_says_what_was_done(tmp_path: Path) -> None:
    history = write_history(tmp_path / "history", 6, cheats={3: drop_a_node})
    seen: list[Progress] = []
    result = audit(history, tmp_path / "out", engine="python", progress=seen.append)
    report = json.loads((tmp_path / "out" / REPORT).read_bytes())
    assert report == json.loads(canonical_json(result.report))
    assert report["complete_up_to"] == f"head 0x{History.open(history).head}, as the history itself says"
    expected: dict[str, Any] = {
        "exit_code": 1,
        "digest": result.digest,
        "engine": "python",
        "candidates": result.candidates,
        "judged": result.candidates,
        "codes": {"Equivocation": 1, "OmittedBelowBudget": 1},
        "quarantined": 0,
        "units": {"judged": 2, "skipped": 0},
    }
    assert {name: report[name] for name in expected} == expected
    assert {progress.phase for progress in seen} == {"start", "verify", "chains", "summary", "tables"}
    assert Progress("verify", 2, 2) in seen
    assert Results.open(tmp_path / "out").report == report


def test_measures_add_up_to_what_the_proof_weighs(tmp_path: Path) -> None:
    """PS-70, AU-3: static nodes, top paths, child nodes and values are the whole proof."""
    result = audit(write_history(tmp_path / "history", 12), tmp_path / "out", engine="python")
    rows = [row for row in result.results.rows(schema.BLOCK_MEASURES) if row["status"] == "included"]
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

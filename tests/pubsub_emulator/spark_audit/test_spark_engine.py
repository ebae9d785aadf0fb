"""Spark gives the rows that the plain path gives, however the work is cut (AU-4, AU-6)."""

import zipfile
from pathlib import Path

import pytest
from pyspark import SparkContext
from support.spark_audit import pool_units
from support.spark_audit.audits import (
    add_junk,
    all_rows,
    drop_a_node,
    flip,
    include_invalid,
    write_history,
)

from pubsub_emulator.spark_audit.audit.run import AuditFailed, AuditResult, audit
from pubsub_emulator.spark_audit.audit.work import AuditProgress
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.reader import History
from pubsub_emulator.spark_audit.judge import task as segment_task
from pubsub_emulator.spark_audit.real_proofs.relay_proofs import import_relay_proofs
from pubsub_emulator.spark_audit.spark.job import SparkMapper
from pubsub_emulator.spark_audit.spark.ship import PACKAGE, build_archive
from pubsub_emulator.version import VERSION

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cheats refused, a cheat included, a damaged file, real proofs: everything that an audit can
    meet.
    """
    path = tmp_path_factory.mktemp("spark") / "history"
    write_history(path, 10, subscribers=2, cheats={3: drop_a_node, 6: add_junk})
    write_history(path, 6, cheats={3: include_invalid}, name="captured")
    import_relay_proofs([ROOT / "examples" / "mainnet"], path)
    (entry,) = History.open(path).files(schema.BLOCKS, "dev", 2001, 1)
    flip(path / entry.path, entry.row_groups[0].offset + 5)
    return path


@pytest.fixture(scope="module")
def plain(history: Path) -> AuditResult:
    return audit(history, history.with_name("plain"), engine="python")


@pytest.mark.parametrize(
    ("engine", "large"),
    [
        ("spark", 1),
        ("pool", segment_task.LARGE),
    ],
)
def test_every_row_is_the_plain_paths_however_the_work_is_cut(  # noqa: PLR0917  # fixtures and two parameters
    spark: SparkContext,
    history: Path,
    plain: AuditResult,
    engine: str,
    large: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """AU-4, AU-14: three engines, one task a segment or two, the same rows."""
    del spark
    monkeypatch.setattr(segment_task, "LARGE", large)
    seen: list[AuditProgress] = []
    result = audit(history, tmp_path / "out", engine=engine, progress=seen.append)
    assert result.engine == engine
    assert result.units_judged > plain.units_judged or large > 1
    assert all_rows(result) == all_rows(plain)
    assert (result.digest, result.exit_code, result.chains) == (
        plain.digest,
        plain.exit_code,
        plain.chains,
    )
    assert seen[-1].done == seen[-1].total
    assert plain.read_errors == 1
    assert plain.codes.keys() >= {
        "OmittedBelowBudget",
        "UnusedNodes",
        "StateRootMismatch",
        "Equivocation",
    }


def test_a_job_whose_output_cannot_be_written_is_an_infrastructure_failure(
    spark: SparkContext, history: Path, tmp_path: Path
) -> None:
    del spark
    (tmp_path / "items").write_text("in the way")
    with pytest.raises(AuditFailed, match="the Spark job failed") as failure:
        audit(history, tmp_path, engine="spark")
    assert failure.value.exit_code == 4


@pytest.fixture
def shipped_units(tmp_path: Path) -> str:
    """An archive from which executors import `support.spark_audit.pool_units`."""
    path = tmp_path / "units.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.mkdir("support")
        archive.mkdir("support/spark_audit")
        archive.write(pool_units.__file__, "support/spark_audit/pool_units.py")
    return str(path)


def test_au14_a_worker_that_is_killed_costs_its_unit_another_attempt(
    spark: SparkContext, shipped_units: str, tmp_path: Path
) -> None:
    """In local mode, too, where Spark by itself gives a task one attempt."""
    spark.addPyFile(shipped_units)
    tasks = [str(tmp_path / name) for name in "ab"]
    found = SparkMapper().map(pool_units.die_once, tasks, "", lambda _done: None)
    assert [each["task"] for each in found] == tasks


def test_au14_each_unit_is_a_task_of_spark_whatever_the_number_of_cores(
    spark: SparkContext, shipped_units: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cores that come later, as those of a cluster do, find as many tasks as there are units."""
    spark.addPyFile(shipped_units)
    groups: list[str] = []
    given = SparkContext.setJobGroup

    def noted(context: SparkContext, name: str, description: str) -> None:
        groups.append(name)
        given(context, name, description)

    monkeypatch.setattr(SparkContext, "setJobGroup", noted)
    SparkMapper().map(pool_units.count_to_four, ["1.0"] * 9, "", lambda _done: None)
    tracker = spark.statusTracker()
    jobs = tracker.getJobIdsForGroup(groups[0])
    stages = [
        tracker.getStageInfo(stage) for job in jobs for stage in tracker.getJobInfo(job).stageIds
    ]
    assert [stage.numTasks for stage in stages] == [9]


def test_a_context_that_was_running_is_used_and_left_running(spark: SparkContext) -> None:
    mapper = SparkMapper()
    mapper.close()
    assert mapper.context is spark
    assert spark.parallelize([1, 2, 3], 2).count() == 3


def test_the_archive_for_workers_holds_every_package_and_is_reproducible(tmp_path: Path) -> None:
    first, second = (build_archive(tmp_path / name) for name in ("first.zip", "second.zip"))
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as archive:
        names = archive.namelist()
    extension = "interchain_events"
    about = f"{extension}-{VERSION}.dist-info"
    assert {name.split("/")[0] for name in names} == {PACKAGE, extension, about}
    assert "pubsub_emulator/spark_audit/spark/units.py" in names
    assert {
        "pubsub_emulator/pages/assets/frame.css",
        "pubsub_emulator/emulator/scenarios/demo.toml",
    } <= set(names)
    assert not [name for name in names if name.endswith((".pyc", ".so"))]

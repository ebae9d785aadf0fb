"""Programs that are killed, and writers that meet: the audit's digest is that of plain Python.

The history is skewed: one of its chains has more than half of all blocks. What happens to executors
is in `test_spark_cluster`.
"""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from support.plumbing.object_store import s3_server
from support.plumbing.processes import python
from support.spark_audit.audits import (
    all_rows,
    digest_of_parquet,
    digest_of_table,
    drop_a_node,
    write_history,
)

from pubsub_emulator.spark_audit.audit.run import INFRASTRUCTURE, AuditFailed, AuditResult, audit
from pubsub_emulator.spark_audit.history import schema, storage
from pubsub_emulator.spark_audit.judge.results import REPORT

CHEATS = {3: drop_a_node}
BLOCKS = 12


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("skewed") / "history"
    return write_history(path, BLOCKS, segment_length=2, cheats=CHEATS, skew=4)


@pytest.fixture(scope="module")
def plain(history: Path) -> AuditResult:
    found = audit(history, history.with_name("plain"), engine="python")
    sizes = [row["candidates"] for row in found.chains]
    assert 2 * max(sizes) > sum(sizes), "the history is skewed"
    return found


_DRIVER = """
import os, signal, sys
from pubsub_emulator.spark_audit.audit import rounds
from pubsub_emulator.spark_audit.audit.run import audit

def killed(*_given, **_named):
    print("judged", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    rounds.ROUND, rounds.ROUND_OF_CORE = 2, 1
    if sys.argv[4] == "killed":
        rounds.Rounds._keep = killed
    result = audit(sys.argv[1], sys.argv[2], engine=sys.argv[3])
    assert result.engine == sys.argv[3]
    print(result.digest, result.units_judged, result.units_skipped)
"""
"""An audit in small rounds. A driver that is to be killed dies when it would write the tables of
the first round, while results of later units are there as well."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine",
    [
        "python",
        "pool",
        pytest.param("spark", marks=pytest.mark.spark),
    ],
)
def test_a_killed_driver_is_continued_with_the_digest_of_plain_python(
    history: Path, plain: AuditResult, tmp_path: Path, engine: str
) -> None:
    driver = tmp_path / "driver.py"
    driver.write_text(_DRIVER)
    given = (driver, history, tmp_path / "out", engine)
    killed = python(*given, "killed")
    assert (killed.returncode, killed.stdout) == (-signal.SIGKILL, "judged\n"), killed.stderr
    assert not (tmp_path / "out" / REPORT).exists()
    again = python(*given, "whole")
    assert again.returncode == 0, again.stderr
    digest, judged, _ = again.stdout.split()
    assert digest == plain.digest
    assert 0 < int(judged) < plain.units_judged, "results of the killed driver are used"


_STREAM = """
import os, signal, sys
from pyspark.sql import SparkSession
from pubsub_emulator.spark_audit.spark.context import start_context
from pubsub_emulator.spark_audit.spark.sources import register

def main(history, out, fate):
    context = start_context("local[2]", "stream")
    session = SparkSession(context)
    register(session)

    def write(batch, number):
        if fate == "killed" and number == 1:
            print("in batch 1", flush=True)
            os.kill(context._gateway.proc.pid, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        batch.write.mode("overwrite").parquet(f"{out}/rows/{number:04d}")

    source = session.readStream.format("pubsub_audit").option("table", "block_measures")
    rows = source.option("maxSegmentsPerTrigger", 2).load(history)
    writer = rows.writeStream.foreachBatch(write).option("checkpointLocation", f"{out}/checkpoint")
    from support.plumbing.spark import run_stream
    run_stream(writer)
    context.stop()

main(*sys.argv[1:])
"""
"""A stream that judges a history two segments at a time, and writes each batch into a folder."""


@pytest.mark.slow
@pytest.mark.spark
def test_a_killed_stream_continues_with_the_rows_of_plain_python(
    history: Path, plain: AuditResult, tmp_path: Path
) -> None:
    program = tmp_path / "stream.py"
    program.write_text(_STREAM)
    killed = python(program, history, tmp_path, "killed")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert killed.stdout.endswith("in batch 1\n")
    assert [path.name for path in (tmp_path / "rows").iterdir()] == ["0000"]
    again = python(program, history, tmp_path, "whole")
    assert again.returncode == 0, again.stderr
    assert len(list((tmp_path / "rows").iterdir())) > 2
    assert digest_of_parquet(tmp_path / "rows", schema.BLOCK_MEASURES) == digest_of_table(
        plain, schema.BLOCK_MEASURES
    )


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch, s3_server(patch) as address:
        storage._remote.cache_clear()
        yield address
    storage._remote.cache_clear()


@pytest.mark.slow
def test_two_audits_writing_to_one_bucket_leave_plain_pythons_digest(
    bucket: str, plain: AuditResult
) -> None:
    """One of them may be told that another one writes there. None leaves a wrong table."""
    history, out = f"{bucket}/history", f"{bucket}/out"
    write_history(history, BLOCKS, segment_length=2, cheats=CHEATS, skew=4)  # type: ignore[arg-type]
    gate = Barrier(2)

    def run(_number: int) -> str | int:
        gate.wait()
        try:
            return audit(history, out, engine="python").digest
        except AuditFailed as failure:
            return failure.exit_code

    with ThreadPoolExecutor(2) as threads:
        told = list(threads.map(run, range(2)))
    assert plain.digest in told
    assert set(told) <= {plain.digest, INFRASTRUCTURE}
    last = audit(history, out, engine="python")
    assert last.digest == plain.digest
    assert all_rows(last) == all_rows(plain)

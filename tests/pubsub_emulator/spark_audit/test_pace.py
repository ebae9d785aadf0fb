"""Units say how much of them is done, and engines hand it on; a process of an engine does without
pandas.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from support.plumbing.processes import python
from support.spark_audit import pool_units
from support.spark_audit.audits import write_history

from pubsub_emulator.spark_audit.audit.run import audit
from pubsub_emulator.spark_audit.audit.work import AuditProgress
from pubsub_emulator.spark_audit.engine import pace
from pubsub_emulator.spark_audit.engine.engine import Mapper, PythonMapper
from pubsub_emulator.spark_audit.engine.pool import PoolMapper
from pubsub_emulator.spark_audit.simulate.run import SimulationSettings, simulate


@pytest.mark.parametrize("engine", [PythonMapper, lambda: PoolMapper(1)], ids=["python", "pool"])
def test_the_shares_of_units_are_added_to_those_that_are_done(
    engine: Callable[[], Mapper], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(pool_units.__file__).parents[2]))
    monkeypatch.setattr(pace, "REPORT_EVERY", 0.0)
    seen: list[float] = []
    mapper = engine()
    try:
        mapper.map(pool_units.count_to_four, ["0", "0"], "", seen.append)
    finally:
        mapper.close()
    assert sorted(seen) == seen
    assert seen[-1] == 2
    assert {0.25, 1, 1.25, 2} <= {*seen} or isinstance(mapper, PoolMapper), (
        "a pool may be asked later than it is told"
    )


def test_a_task_that_ends_after_its_last_report_ends_the_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(pool_units.__file__).parents[2]))
    heard = tmp_path / "heard"
    mapper = PoolMapper(1)
    found: list[object] = []
    run = Thread(
        target=lambda: found.extend(
            mapper.map(pool_units.end_when_heard, [str(heard)], "", lambda _: heard.touch())
        ),
        daemon=True,
    )
    run.start()
    run.join(60)
    assert found == [{"task": str(heard)}]
    mapper.close()


def test_an_audit_and_a_simulation_tell_of_blocks_within_a_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "REPORT_EVERY", 0.0)
    made: list[tuple[float, int]] = []
    simulate(
        SimulationSettings(1, 30, "7"),
        tmp_path / "many",
        PythonMapper,
        lambda done, total: made.append((done, total)),
    )
    assert any(0 < done < 1 for done, _ in made)
    history = write_history(tmp_path / "history", 6, segment_length=6)
    seen: list[AuditProgress] = []
    audit(history, tmp_path / "out", engine="python", progress=seen.append)
    shares = [each.done for each in seen if each.phase == "verify"]
    assert shares == sorted(shares)
    assert any(0 < share < 1 for share in shares)
    assert shares[-1] == 1


def test_nothing_is_told_where_nobody_listens() -> None:
    pace.report_progress(1, 2)
    heard: list[float] = []
    with pace.listening(heard.append):
        pace.report_progress(1, 0)
        pace.report_progress(1, 2)
    assert heard == [], "half a second has not passed"


def test_a_worker_whose_driver_is_killed_ends_and_notes_nothing(tmp_path: Path) -> None:
    noted = tmp_path / "noted"
    request = {
        "unit": "support.spark_audit.pool_units:note_every_error",
        "task": str(noted),
        "out": "",
    }
    path = os.pathsep.join(
        [str(Path(pool_units.__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    )
    worker = subprocess.Popen(
        [sys.executable, "-m", "pubsub_emulator.spark_audit.engine.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(json.dumps(request) + "\n")
    worker.stdin.flush()
    assert json.loads(worker.stdout.readline()) == {"share": 0.5}
    worker.stdout.close()
    assert worker.wait(60) == 1
    worker.stdin.close()
    assert not noted.exists(), "a later run would take the error for one of the history's"


# Memory

SMALL = """
import sys
import pyarrow as pa
from pubsub_emulator.spark_audit.engine.memory import give_back, spare

spare()
assert pa.Table.from_pylist([{"a": 1}]).num_rows == 1
assert "pandas" not in sys.modules
assert pa.default_memory_pool().backend_name == "system"
give_back()
import pandas
"""

HOST = """
import sys
from click.testing import CliRunner
from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.cli.base.own_process import spare_memory

CliRunner().invoke(pubsub, ["audit", "nothing", "--out", "out"])
import pyarrow as pa
spare_memory()
assert len(pa.table({"a": [1]}).to_pandas()) == 1
"""


@pytest.mark.parametrize("script", [SMALL, HOST], ids=["a process of its own", "a host"])
def test_arrow_looks_for_pandas_only_where_somebody_may_want_it(
    script: str, tmp_path: Path
) -> None:
    done = python("-c", script, folder=tmp_path)
    assert done.returncode == 0, done.stderr

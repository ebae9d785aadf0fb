"""Units of work over Spark: tasks go out as text, receipts come back as text; proofs never pass the JVM (AU-4).

A worker opens the Parquet row groups that its task names with pyarrow and writes its result beside the others, so that
an executor that dies costs the units it was at, and the JVM sees a few kilobytes a unit. History and output must be at
the same path for driver and workers.

Tasks are the elements of an RDD: what is distributed is work and no rows, and a JVM that loads no SQL starts in half
the time.
"""

import json
import re
from collections.abc import Sequence
from functools import partial
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark import SparkContext
from pyspark.errors import PySparkException

from pubsub_emulator.spark_audit.engine.engine import Report, Unit
from pubsub_emulator.spark_audit.spark.context import SparkUnavailable, last_words, start_context
from pubsub_emulator.spark_audit.spark.units import run_unit

_POLL_SECONDS: Final = 0.5
_MOST_PARTITIONS: Final = 4096
_PARTITIONS_A_CORE: Final = 8
"""A partition costs the JVM some 20 ms of CPU; this many for each core keep all cores at work to the end."""

_GROUPS: Final = count(1)
_PYTHON_ERROR: Final = re.compile(r"^([A-Za-z_][\w.]*: .+)$", re.MULTILINE)


class SparkMapper:
    """Units of work over a Spark context; one that was running is used and left running."""

    name = "spark"

    def __init__(self, master: str | None = None) -> None:
        running = SparkContext._active_spark_context  # noqa: SLF001  # the only way to ask without starting one
        self.context = running or start_context(master)
        self.mine = running is None

    def map(self, unit: Unit, tasks: Sequence[str], out: Path, report: Report) -> list[dict[str, Any]]:
        """The receipts of all tasks, in their order. Raises `SparkUnavailable` when the job is lost."""
        if not tasks:
            return []
        # A group of its own: the tasks of an earlier batch of the same unit must not be counted again.
        group = f"{unit.__name__}-{next(_GROUPS)}"
        partitions = min(len(tasks), _MOST_PARTITIONS, self.context.defaultParallelism * _PARTITIONS_A_CORE)
        done = Event()

        def tell(finished: int) -> None:
            report(len(tasks) * finished // partitions)

        watcher = Thread(target=_watch, args=(self.context, group, done, tell), daemon=True)
        try:
            self.context.setJobGroup(group, f"pubsub: {unit.__name__}")
            watcher.start()
            # Nothing is shuffled: a lost executor loses what it is at, and units whose result is there end at once.
            numbered = self.context.parallelize(list(enumerate(tasks)), partitions)
            receipts = dict(numbered.map(partial(run_unit, unit, str(out.resolve()))).collect())
        except (PySparkException, Py4JError) as error:
            raise SparkUnavailable(f"the Spark job failed: {_reason(error)}") from error
        finally:
            done.set()
            watcher.join()
        report(len(tasks))
        return [json.loads(receipts[number]) for number in range(len(tasks))]

    def close(self) -> None:
        """Stop the context that was started here."""
        if self.mine:
            self.context.stop()


def _reason(error: Exception) -> str:
    """The worker's error where there was one, else what the JVM says, in one line."""
    text = str(error)
    found = [line for line in _PYTHON_ERROR.findall(text) if not line.startswith(("org.", "java.", "py4j."))]
    said = found[0] if found else text.strip().split("\n")[-1]
    words = last_words()
    return f"{said}\n{words}" if words and not found else said


def _watch(context: SparkContext, group: str, done: Event, report: Report) -> None:
    """Tell how many partitions are finished until `done`."""
    tracker = context.statusTracker()
    told = 0
    while not done.wait(_POLL_SECONDS):
        try:
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
            stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        except Py4JError:
            return
        finished = sum(stage.numCompletedTasks for stage in stages if stage is not None)
        if finished > told:
            told = finished
            report(told)

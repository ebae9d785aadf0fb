"""Units as Spark jobs: tasks go out as an RDD, receipts come back; no proof passes the JVM (AU-4, AU-14).

A worker reads what its task names, and writes its result beside the others, at addresses shared with the driver.
Each task is a partition and the heaviest come first, so all cores are at work to the end. Retries are Spark's. An RDD:
the first DataFrame of a context costs a JVM seconds.
"""

import json
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from threading import Event, Thread
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql.utils import is_remote

from pubsub_emulator.spark_audit.engine.engine import Answer, Report, Unit, heaviest_first
from pubsub_emulator.spark_audit.engine.rules import named_rules
from pubsub_emulator.spark_audit.spark.context import forget_context, one_line, start_context
from pubsub_emulator.spark_audit.spark.masters import SparkUnavailable
from pubsub_emulator.spark_audit.spark.units import run_units

_POLL_SECONDS: Final = 0.5
_NO_WORDS: Final = "it was killed, or the machine had no memory left for it"
_GROUPS: Final = count(1)
_PYTHON_ERROR: Final = re.compile(r"^([A-Za-z_][\w.]*: .+)$", re.MULTILINE)
_GROUP_PROPERTIES: Final = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


class SparkMapper:
    """Units of work over a Spark context; one that was running is used and left running."""

    name = "spark"

    def __init__(self, master: str | None = None) -> None:
        if is_remote() or "SPARK_REMOTE" in os.environ:
            way_out = "unset SPARK_REMOTE and name the cluster's own master, or use another engine"
            raise SparkUnavailable(f"Spark Connect gives no units of an audit out: {way_out}")
        running = SparkContext._active_spark_context  # noqa: SLF001  # the only way to ask without starting one
        self.context = running or start_context(master)
        self.mine = running is None

    @property
    def cores(self) -> int:
        """Those of the executors that there are now."""
        return self.context.defaultParallelism

    def map(
        self, unit: Unit, tasks: Sequence[str], out: str, report: Report, weights: Sequence[int] | None = None
    ) -> list[Answer]:
        """The receipts of all tasks, in their order. Raises `SparkUnavailable` when the job is lost."""
        if not tasks:
            return []
        # A group of its own: the tasks of an earlier batch of the same unit must not be counted again.
        group = f"{unit.__name__}-{next(_GROUPS)}"
        done = Event()
        watcher = Thread(target=_watch, args=(self.context, group, done, report), daemon=True)
        order = heaviest_first(len(tasks), weights)
        size = f", {sum(weights):,} bytes to read" if weights is not None and unit.__name__ == "judge_or_fold" else ""
        before: dict[str, str | None] = {}
        watcher.start()
        try:
            before.update((name, self.context.getLocalProperty(name)) for name in _GROUP_PROPERTIES)
            self.context.setJobGroup(group, f"pubsub: {unit.__name__}, {len(tasks):,} units{size}")
            given = self.context.parallelize([(at, tasks[at]) for at in order], len(tasks))
            receipts = dict(given.mapPartitions(partial(run_units, unit, out, named_rules())).collect())
        except (PySparkException, Py4JError, ConnectionError) as error:
            if self._is_lost():
                raise SparkUnavailable(f"Spark's JVM is gone: {one_line(_NO_WORDS)}") from error
            raise SparkUnavailable(f"the Spark job failed: {_reason(error)}") from error
        finally:
            done.set()
            watcher.join()
            with suppress(Py4JError, ConnectionError):  # of a JVM that is gone
                for name, kept in before.items():
                    self.context.setLocalProperty(name, kept)  # type: ignore[arg-type]  # None takes it away
        report(len(tasks))
        return [json.loads(receipts[number]) for number in range(len(tasks))]

    def close(self) -> None:
        """Stop the context that was started here."""
        if not self.mine:
            return
        if self._is_lost():
            forget_context()
        else:
            self.context.stop()

    def _is_lost(self) -> bool:
        try:
            self.context.statusTracker().getActiveJobsIds()
        except (Py4JError, ConnectionError):
            return True
        return False


def _reason(error: Exception) -> str:
    """The worker's error where there was one, else what the JVM says, in one line."""
    text = str(error)
    found = [line for line in _PYTHON_ERROR.findall(text) if not line.startswith(("org.", "java.", "py4j."))]
    return found[0] if found else one_line(text)


def _watch(context: SparkContext, group: str, done: Event, report: Report) -> None:
    """Tell how many partitions are finished until `done`."""
    reported = 0
    while not done.wait(_POLL_SECONDS):
        try:
            tracker = context.statusTracker()
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
            stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        except (Py4JError, ConnectionError):
            return
        finished = sum(stage.numCompletedTasks for stage in stages if stage is not None)
        if finished > reported:
            reported = finished
            report(reported)

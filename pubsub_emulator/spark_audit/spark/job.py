"""The engine that runs units as Spark jobs (AU-4, AU-14).

Tasks are distributed as an RDD, and receipts are collected. Proofs do not pass through the JVM: a
worker reads the files that its task names, and writes its result to an address that driver and
workers share.

Each task is a partition. Heavy tasks come first, so that all cores have work until the end. Spark
retries lost tasks. An RDD is used because the first DataFrame of a context would take the JVM
several seconds.
"""

import json
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import chain as chained
from itertools import count
from threading import Event, Thread
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql.utils import is_remote

from pubsub_emulator.spark_audit.engine.engine import Answer, Report, Unit, heaviest_first
from pubsub_emulator.spark_audit.spark.context import forget_context, one_line, start_context
from pubsub_emulator.spark_audit.spark.masters import SparkUnavailable
from pubsub_emulator.spark_audit.spark.units import run_units

_POLL_SECONDS: Final = 0.5
"""Seconds between two checks of a job's progress."""
_KILLED: Final = "it was killed, or the machine had no memory left for it"
"""The message for a JVM that ended without an error message."""
_GROUPS: Final = count(1)
"""Numbers for job groups."""
_PYTHON_ERROR: Final = re.compile(r"^([A-Za-z_][\w.]*: .+)$", re.MULTILINE)
"""A line of a traceback with a worker's error."""
_GROUP_PROPERTIES: Final = (
    "spark.jobGroup.id",
    "spark.job.description",
    "spark.job.interruptOnCancel",
)
"""Properties of the calling thread that `setJobGroup` changes. They are restored after a job."""


class SparkMapper:
    """The Spark engine. It uses a running context if there is one, and then does not stop it."""

    name = "spark"

    def __init__(self, master: str | None = None) -> None:
        if is_remote() or "SPARK_REMOTE" in os.environ:
            way_out = "unset SPARK_REMOTE and name the cluster's own master, or use another engine"
            raise SparkUnavailable(f"Spark Connect cannot run units of an audit: {way_out}")
        running = SparkContext._active_spark_context  # noqa: SLF001  # the only way to ask without starting one
        self.context = running or start_context(master)
        self.mine = running is None
        """Whether the context was started here, so that `close` stops it."""

    @property
    def cores(self) -> int:
        """The cores of the executors that run at present."""
        return self.context.defaultParallelism

    def map(
        self,
        unit: Unit,
        tasks: Sequence[str],
        out: str,
        report: Report,
        weights: Sequence[int] | None = None,
    ) -> list[Answer]:
        """Run a unit on all tasks and return the receipts in their order.

        Raises `SparkUnavailable` if the job fails or the JVM is gone.
        """
        if not tasks:
            return []
        # Each call has a group of its own, so that tasks of earlier calls are not counted as
        # progress.
        group = f"{unit.__name__}-{next(_GROUPS)}"
        done = Event()
        watcher = Thread(target=_watch, args=(self.context, group, done, report), daemon=True)
        order = heaviest_first(len(tasks), weights)
        size = ""
        # The weights of other units are not bytes.
        if weights is not None and unit.__name__ == "judge_or_fold":
            size = f", {sum(weights):,} bytes to read"
        properties: dict[str, str | None] = {}
        watcher.start()
        try:
            properties.update(
                (name, self.context.getLocalProperty(name)) for name in _GROUP_PROPERTIES
            )
            self.context.setJobGroup(group, f"pubsub: {unit.__name__}, {len(tasks):,} units{size}")
            distributed = self.context.parallelize(
                [(number, tasks[number]) for number in order], len(tasks)
            )
            receipts = dict(distributed.mapPartitions(partial(run_units, unit, out)).collect())
        except (PySparkException, Py4JError, ConnectionError) as error:
            if self._is_lost():
                raise SparkUnavailable(f"Spark's JVM is gone: {one_line(_KILLED)}") from error
            raise SparkUnavailable(f"the Spark job failed: {_reason(error)}") from error
        finally:
            done.set()
            watcher.join()
            # The JVM may be gone.
            with suppress(Py4JError, ConnectionError):
                for name, value in properties.items():
                    self.context.setLocalProperty(name, value)  # type: ignore[arg-type]  # None removes it
        report(len(tasks))
        return [json.loads(receipts[number]) for number in range(len(tasks))]

    def close(self) -> None:
        """Stop the context if it was started here."""
        if not self.mine:
            return
        if self._is_lost():
            forget_context()
        else:
            self.context.stop()

    def _is_lost(self) -> bool:
        """Return whether the JVM does not answer any more."""
        try:
            self.context.statusTracker().getActiveJobsIds()
        except (Py4JError, ConnectionError):
            return True
        return False


def _reason(error: Exception) -> str:
    """Return a worker's error if there is one, otherwise the cause that the JVM states."""
    text = str(error)
    errors = [
        line
        for line in _PYTHON_ERROR.findall(text)
        if not line.startswith(("org.", "java.", "py4j."))
    ]
    return errors[0] if errors else one_line(text)


def _watch(context: SparkContext, group: str, done: Event, report: Report) -> None:
    """Report how many partitions are finished, until `done` is set."""
    reported = 0
    while not done.wait(_POLL_SECONDS):
        try:
            tracker = context.statusTracker()
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
            stage_ids = chained.from_iterable(job.stageIds for job in jobs if job is not None)
            stages = [tracker.getStageInfo(stage_id) for stage_id in stage_ids]
        except (Py4JError, ConnectionError):
            return
        finished = sum(stage.numCompletedTasks for stage in stages if stage is not None)
        if finished > reported:
            reported = finished
            report(reported)

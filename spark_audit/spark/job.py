"""The Spark engine: units of work go out as text, receipts come back as text; proofs never pass through the JVM (AU-4).

A worker opens the Parquet row groups that its task names with pyarrow and writes its result beside the others, so that
an executor that dies costs the units it was at, and the JVM sees a few hundred bytes a unit. History and output must be
at the same path for driver and workers.
"""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_audit.aggregate import BLOCK_FIGURES, PERCENTILES, PUBLISHER_FIGURES
from spark_audit.mapping import Unit
from spark_audit.rows import Row
from spark_audit.spark.session import SparkUnavailable, last_words, start_session
from spark_audit.spark.units import habits, run_units, verify
from spark_audit.task import Task
from spark_audit.work import ChainTask, Report

_POLL_SECONDS: Final = 0.5
_MOST_PARTITIONS: Final = 4096
_GROUP: Final = "network, chain, scope, subject, measure"


class SparkEngine:
    """Units of work over a Spark session; a session that was running is used and left running."""

    name = "spark"

    def __init__(self, master: str | None = None) -> None:
        running = SparkSession.getActiveSession()
        self.session = running or start_session(master)
        self.mine = running is None

    def verify(self, tasks: Sequence[Task], out: Path, report: Report) -> list[dict[str, Any]]:
        """The receipts of all tasks, in their order. Raises `SparkUnavailable` when the job is lost."""
        return self.map(verify, [task.to_json() for task in tasks], out, report)

    def habits(self, tasks: Sequence[ChainTask], out: Path) -> list[dict[str, Any]]:
        """The receipts of all chains, in their order. Raises `SparkUnavailable` when the job is lost."""
        return self.map(habits, [task.to_json() for task in tasks], out, lambda _done: None)

    def summarize(self, blocks: Sequence[Path], publishers: Sequence[Path]) -> list[Row]:
        """Rows of `summaries` over result files, by SQL. Raises `SparkUnavailable` when the job is lost."""
        parts = []
        try:
            if blocks:
                self.session.read.parquet(*map(str, blocks)).createOrReplaceTempView("block_measures")
                parts += [_unpivot_blocks("chain", "''"), _unpivot_blocks("collator", "lower(hex(collator))")]
            if publishers:
                self.session.read.parquet(*map(str, publishers)).createOrReplaceTempView("publisher_measures")
                parts.append(_UNPIVOT_PUBLISHERS)
            if not parts:
                return []
            rows = self.session.sql(_SUMMARIES.format(figures=" UNION ALL ".join(parts))).collect()
        except (PySparkException, Py4JError) as error:
            raise SparkUnavailable(f"the Spark job failed: {error}\n{last_words()}".rstrip()) from error
        return [row.asDict() for row in rows]

    def close(self) -> None:
        """Stop the session that was started here."""
        if self.mine:
            self.session.stop()

    def map(self, unit: Unit, tasks: Sequence[str], out: Path, report: Report) -> list[dict[str, Any]]:
        """The receipts of all tasks, in their order. Raises `SparkUnavailable` when the job is lost."""
        context = self.session.sparkContext
        kind = unit.__name__
        shared = context.broadcast(list(tasks))
        done = Event()
        watcher = Thread(target=_watch, args=(context, kind, done, report), daemon=True)
        try:
            context.setJobGroup(kind, f"pubsub: {kind}")
            watcher.start()
            # One partition a unit, cut from a range: nothing is shuffled, so a lost executor loses its own units only.
            numbers = self.session.range(0, len(tasks), 1, min(len(tasks), _MOST_PARTITIONS))
            work = partial(run_units, unit, str(out.resolve()), shared)
            rows = numbers.mapInArrow(work, "at long, receipt string").collect()
        except (PySparkException, Py4JError) as error:
            raise SparkUnavailable(f"the Spark job failed: {error}\n{last_words()}".rstrip()) from error
        finally:
            done.set()
            watcher.join()
            shared.unpersist()
        report(len(tasks))
        receipts = {row["at"]: json.loads(row["receipt"]) for row in rows}
        return [receipts[at] for at in range(len(tasks))]


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


def _stack(names: Sequence[str]) -> str:
    pairs = ", ".join(f"'{name}', cast({name} AS BIGINT)" for name in names)
    return f"stack({len(names)}, {pairs}) AS (measure, value)"


def _unpivot_blocks(scope: str, subject: str) -> str:
    share = "(SELECT *, used * 1000000 div budget AS budget_ppm FROM block_measures)"
    known = "" if scope == "chain" else " AND collator IS NOT NULL"
    return (
        f"SELECT network, chain, '{scope}' AS scope, {subject} AS subject, "  # noqa: S608  # no text of a history in it
        f"{_stack((*BLOCK_FIGURES, 'budget_ppm'))} FROM {share} WHERE status <> 'rejected' AND verdict IS NULL{known}"
    )


_UNPIVOT_PUBLISHERS: Final = (
    "SELECT network, chain, 'publisher' AS scope, cast(publisher AS STRING) AS subject, "  # noqa: S608  # the same
    f"{_stack(PUBLISHER_FIGURES)} FROM publisher_measures"
)
_RANKS: Final = ", ".join(
    f"max(CASE WHEN rank = greatest((n * {percent} + 99) div 100, 1) THEN value END) AS p{percent}"
    for percent in PERCENTILES
)
_SUMMARIES: Final = (
    f"SELECT {_GROUP}, max(n) AS count, sum(value) AS total, min(value) AS least, {_RANKS}, max(value) AS most "  # noqa: S608  # the same
    f"FROM (SELECT {_GROUP}, value, row_number() OVER (PARTITION BY {_GROUP} ORDER BY value) AS rank, "
    f"count(*) OVER (PARTITION BY {_GROUP}) AS n FROM ({{figures}}) WHERE value IS NOT NULL) GROUP BY {_GROUP}"
)

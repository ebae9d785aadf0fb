"""The audit of channel 7's answers: statuses that were reported are joined with true ones (EV-40).

    doubled       a status was reported twice in a row in one stream
    out of order  a status was reported that had been true earlier, but was not true any more
    altered       the status in force was reported with other details, or the status of another
                  operation
    invented      any other status that was not in force
    withheld      the status in force when a stream last looked, or when the node ended it, was
                  never reported; or the node ended a stream before a final status

A stream may leave out statuses (PR-61). A stream that the client left, or that is still running, is
judged up to its last look.
"""

from pathlib import Path
from typing import Final, NamedTuple

from pyspark import SparkContext
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  # as everybody writes it

from interchain_events.delivery_audit.deliveries import counted, day, read_table
from interchain_events.delivery_audit.tables import (
    STATUS_ANSWERS,
    STATUS_STREAMS,
    STATUS_TRUTHS,
)
from pubsub_emulator.spark_audit.history.row import Row

_OPERATION: Final = ["network", "run", "operation"]
"""Columns that identify an operation."""
_STREAM: Final = [*_OPERATION, "stream"]
"""Columns that identify a stream."""
_TOLD: Final = ("position", "status", "answer")
_FINAL: Final = ("APPROVED", "REJECTED", "CANCELLED")
"""Statuses that do not change any more."""
_FINISHED: Final = "finished"
"""The value of `ended` if the node ended the stream."""
_DETAILS: Final = (
    "status",
    "level",
    "reason",
    "block",
    "block_hash",
    "object_index",
    "operation_index",
)
"""Columns that make up a status."""


class StatusesAudited(NamedTuple):
    """The result of the audit."""

    findings: list[Row]
    """Rows by network, operation, day and finding."""
    streams: int
    answers: int


def audit_statuses(context: SparkContext, folder: Path) -> StatusesAudited:
    """Audit the statuses in a folder of tables.

    Findings are ordered by network, operation, day and kind. Raises `DeliveriesError`.
    """
    session = SparkSession(context)
    truths, answers, streams = (
        read_table(session, folder, table)
        for table in (STATUS_TRUTHS, STATUS_ANSWERS, STATUS_STREAMS)
    )
    truths = (
        truths.withColumn("answer", _answer())
        .select(*_OPERATION, "order", "status", "answer")
        .cache()
    )
    answers = answers.withColumn("answer", _answer()).withColumn("day", day()).cache()
    found = [_judged(answers, truths), _withheld(streams, answers, truths)]
    named = [each.withColumn("operation", F.lower(F.hex("operation"))) for each in found]
    names = answers.select(*_STREAM).union(streams.select(*_STREAM)).distinct()
    audited = StatusesAudited(
        counted(named, "operation", "position"), names.count(), answers.count()
    )
    for frame in (truths, answers):
        frame.unpersist()
    return audited


def _answer() -> Column:
    """Return a status with its details as one text, so that statuses can be compared."""
    return F.to_json(F.struct(*_DETAILS))


def _in_force(questions: DataFrame, truths: DataFrame, order: str) -> DataFrame:
    """Add the status that was true at each row's `order`.

    The new columns are `true_status` and `true_answer`, and are null if there was no status yet.
    """
    columns = F.struct("order", "status", "answer").alias("truth"), F.col("order").alias("since")
    truth = truths.select(*_OPERATION, *columns)
    keys = [*_STREAM, order]
    earlier = questions.select(*keys).join(truth, _OPERATION).where(F.col("since") <= F.col(order))
    last = earlier.groupBy(*keys).agg(F.max("truth").alias("truth"))
    joined = questions.join(last, keys, "left")
    return joined.select(
        "*", F.col("truth.status").alias("true_status"), F.col("truth.answer").alias("true_answer")
    )


def _judged(answers: DataFrame, truths: DataFrame) -> DataFrame:
    """Find wrong answers: all kinds of findings except `withheld`.

    An answer is compared with the status in force, with earlier ones, and with those of other
    operations.
    """
    before = F.lag("answer").over(Window.partitionBy(*_STREAM).orderBy("position"))
    judged = _in_force(answers.withColumn("before", before), truths, "order")
    earliest = truths.groupBy(*_OPERATION, "answer").agg(F.min("order").alias("first"))
    judged = judged.join(earliest, [*_OPERATION, "answer"], "left")
    # Statuses of operations that wait in no block are equal, so only a status with a block can be
    # recognized as that of another operation.
    others = truths.select("network", "run", F.col("operation").alias("other"), "answer").distinct()
    mine = judged.select("network", "run", "stream", "order", "operation", "answer", "block")
    others = mine.join(others, ["network", "run", "answer"])
    others = others.where(F.col("block").isNotNull() & (F.col("other") != F.col("operation")))
    others = (
        others.select("network", "run", "order").distinct().withColumn("is_others", F.lit(True))
    )
    judged = judged.join(others, ["network", "run", "order"], "left")
    is_altered = F.col("true_status").eqNullSafe(F.col("status")) | (
        F.col("is_others") & F.col("first").isNull()
    )
    finding = (
        F.when(F.col("before").eqNullSafe(F.col("answer")), "doubled")
        .when(F.col("true_answer").eqNullSafe(F.col("answer")), None)
        .when(F.col("first") < F.col("order"), "out of order")
        .when(is_altered, "altered")
        .otherwise("invented")
    )
    wrong = judged.withColumn("finding", finding).where(F.col("finding").isNotNull())
    return wrong.select("network", "operation", "stream", "day", "position", "finding")


def _withheld(streams: DataFrame, answers: DataFrame, truths: DataFrame) -> DataFrame:
    """Find streams that did not report the status in force, or were ended too early."""
    settled = _in_force(
        streams.where(F.col("settled").isNotNull()).withColumn("day", day()), truths, "settled"
    )
    told = answers.select(
        *_STREAM, F.col("order").alias("at_order"), F.struct("order", *_TOLD).alias("told")
    )
    earlier = (
        settled.select(*_STREAM, "settled")
        .join(told, _STREAM)
        .where(F.col("at_order") <= F.col("settled"))
    )
    last = earlier.groupBy(*_STREAM).agg(F.max("told").alias("told"))
    joined = settled.join(last, _STREAM, "left")
    # If a stream gave a wrong answer to the newest truth, that is a finding of `_judged` already.
    is_newer = F.col("told").isNull() | (F.col("truth.order") > F.col("told.order"))
    is_untold = ~F.col("told.answer").eqNullSafe(F.col("true_answer")) & is_newer
    is_cut = (F.col("ended") == _FINISHED) & ~F.coalesce(
        F.col("told.status").isin(*_FINAL), F.lit(False)
    )
    place = F.coalesce(F.col("told.position") + 1, F.lit(0)).cast("bigint").alias("position")
    wrong = joined.where(is_untold | is_cut)
    return wrong.select(
        "network", "operation", "stream", "day", place, F.lit("withheld").alias("finding")
    )

"""The audit of the statuses that a node reported, which joins them with the true ones (EV-40).

    doubled       a status was reported twice in a row in one stream
    out of order  the reported status had been true earlier, but was not true any more
    altered       the true status was reported with other details, or the reported status was that
                  of another operation
    invented      another status was reported that was not true
    withheld      the true status at the time when a stream last read it, or when the node ended the
                  stream, was never reported, or the node ended a stream before a final status

A stream may leave out statuses (PR-61). A stream that the client has left or that is still running
is judged up to the last time when it read the status.
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
_ANSWER: Final = ("position", "status", "answer")
"""Columns that are needed of the last answer of a stream."""
_FINAL: Final = ("APPROVED", "REJECTED", "CANCELLED")
"""The statuses that do not change any more."""
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
    """The findings, counted by network, operation, day and kind."""
    streams: int
    """The number of streams."""
    answers: int
    """The number of answers in all streams."""


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
    frames = [
        frame.withColumn("operation", F.lower(F.hex("operation")))
        for frame in (_judged(answers, truths), _withheld(streams, answers, truths))
    ]
    names = answers.select(*_STREAM).union(streams.select(*_STREAM)).distinct()
    audited = StatusesAudited(
        counted(frames, "operation", "position"), names.count(), answers.count()
    )
    for frame in (truths, answers):
        frame.unpersist()
    return audited


def _answer() -> Column:
    """Return a status with its details as one text, by which statuses are compared."""
    return F.to_json(F.struct(*_DETAILS))


def _in_force(questions: DataFrame, truths: DataFrame, order: str) -> DataFrame:
    """Add the status that was true at each row's `order`.

    The new columns are `true_status` and `true_answer`, and are null if there was no status yet.
    """
    truth = truths.select(
        *_OPERATION,
        F.struct("order", "status", "answer").alias("truth"),
        F.col("order").alias("since"),
    )
    keys = [*_STREAM, order]
    earlier = questions.select(*keys).join(truth, _OPERATION).where(F.col("since") <= F.col(order))
    # Structs are compared by their first field, `order`.
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
    # Operations that are not in a block have equal statuses, so only a status with a block can be
    # recognized as that of another operation.
    others = truths.select("network", "run", F.col("operation").alias("other"), "answer").distinct()
    given = judged.select("network", "run", "stream", "order", "operation", "answer", "block")
    others = given.join(others, ["network", "run", "answer"])
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
    """Find streams that did not report the true status, or were ended too early."""
    settled = _in_force(
        streams.where(F.col("settled").isNotNull()).withColumn("day", day()), truths, "settled"
    )
    given = answers.select(
        *_STREAM, F.col("order").alias("at_order"), F.struct("order", *_ANSWER).alias("last")
    )
    earlier = (
        settled.select(*_STREAM, "settled")
        .join(given, _STREAM)
        .where(F.col("at_order") <= F.col("settled"))
    )
    last = earlier.groupBy(*_STREAM).agg(F.max("last").alias("last"))
    joined = settled.join(last, _STREAM, "left")
    # A wrong answer after the newest true status is already a finding of `_judged`.
    is_newer = F.col("last").isNull() | (F.col("truth.order") > F.col("last.order"))
    is_unreported = ~F.col("last.answer").eqNullSafe(F.col("true_answer")) & is_newer
    is_cut = (F.col("ended") == _FINISHED) & ~F.coalesce(
        F.col("last.status").isin(*_FINAL), F.lit(False)
    )
    place = F.coalesce(F.col("last.position") + 1, F.lit(0)).cast("bigint").alias("position")
    wrong = joined.where(is_unreported | is_cut)
    return wrong.select(
        "network", "operation", "stream", "day", place, F.lit("withheld").alias("finding")
    )

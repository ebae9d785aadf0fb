"""The audit of an event server's deliveries, which joins them with the log (EV-40).

    missing        an event was not delivered although the subscription matches it, and it is
                   between the cursors at which the stream began and ended
    doubled        an event was delivered twice in one stream, or although it is before the cursor
                   at which the stream began
    out of order   an event was delivered after a later one
    not asked for  the delivered event is in the log, but no filter of the subscription matches it
    altered        the delivered event has other contents than in the log
    invented       the delivered event is not in the log

Only events between these cursors are judged. A rewind removes events from the log. Deliveries of
events that were removed later are counted but not judged.
"""

import json
from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_, ge, gt, le, lt, or_
from pathlib import Path
from typing import Any, Final, NamedTuple

from pyspark import SparkContext
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  # as everybody writes it

from interchain_events.delivery_audit.tables import (
    EVENT_DELIVERIES,
    EVENT_EPOCHS,
    EVENT_LOG,
    EVENT_STREAMS,
)
from interchain_events.delivery_audit.tagged import tag
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.schema import Table
from pubsub_emulator.spark_audit.spark.session import spark_path

FINDINGS: Final = ("missing", "doubled", "out of order", "not asked for", "altered", "invented")
"""The kinds of findings."""
_FILTERS_AT_ONCE: Final = 100
"""The number of sets of filters that are tested in one pass over the log."""
_PARTITIONS: Final = "spark.sql.shuffle.partitions"
"""Spark's setting for the number of partitions after a join."""
_PARTITIONS_A_CORE: Final = 2
_TYPES: Final = {
    "string": "string",
    "int64": "bigint",
    "binary": "binary",
    "fixed_size_binary[32]": "binary",
}
"""Spark's names for the types of columns."""
_OPS: Final[dict[str, Callable[[Column, str], Column]]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


class DeliveriesError(PubsubError):
    """Raised if tables of deliveries are missing or cannot be understood."""


class Audited(NamedTuple):
    """The result of the audit."""

    findings: list[Row]
    """The findings, counted by network, subscription, day and kind."""
    streams: int
    """The number of streams that began."""
    deliveries: int
    """The number of deliveries, including those of events that were taken back."""
    taken_back: int
    """The number of deliveries of events that a later rewind removed."""


def audit_deliveries(context: SparkContext, folder: Path) -> Audited:
    """Audit the deliveries in a folder of tables.

    Findings are ordered by network, subscription, day and kind. Raises `DeliveriesError`.
    """
    session = SparkSession(context)
    # Spark's default of 200 partitions would take most of the time of a small audit.
    if not context.getConf().contains(_PARTITIONS):
        session.conf.set(_PARTITIONS, str(context.defaultParallelism * _PARTITIONS_A_CORE))
    log, epochs, streams, deliveries = (
        read_table(session, folder, table)
        for table in (EVENT_LOG, EVENT_EPOCHS, EVENT_STREAMS, EVENT_DELIVERIES)
    )
    marked = _mark_branch(deliveries, epochs).cache()
    valid = marked.where(~F.col("taken_back"))
    started = _begun(streams, valid, epochs).cache()
    wanted = _wanted(
        log, [row[0] for row in started.select("filters").distinct().collect()]
    ).cache()
    # Deliveries are joined with the log by network and `seq`. The id and the digest then show
    # whether a delivery is the log's event.
    truth = log.select(
        "network", "seq", F.col("id").alias("true_id"), F.col("digest").alias("true_digest")
    )
    filters = started.select("network", "stream", "filters", "after")
    judged = (
        valid.join(truth, ["network", "seq"], "left").join(filters, ["network", "stream"]).cache()
    )
    is_altered = (F.col("true_id") == F.col("id")) & (F.col("true_digest") != F.col("digest"))
    is_invented = F.col("true_id").isNull() | (F.col("true_id") != F.col("id"))
    frames = [
        _missing(started, wanted, judged),
        _doubled(judged),
        _out_of_order(judged),
        _not_asked_for(judged, wanted),
        _of(judged.where(is_altered), "altered"),
        _of(judged.where(is_invented), "invented"),
    ]
    findings = counted(frames, "subscription", "seq")
    delivered, taken_back = marked.agg(
        F.count("*"), F.coalesce(F.sum(F.col("taken_back").cast("int")), F.lit(0))
    ).collect()[0]
    audited = Audited(findings, started.count(), deliveries=delivered, taken_back=taken_back)
    for frame in (marked, started, wanted, judged):
        frame.unpersist()
    return audited


def counted(frames: Sequence[DataFrame], subject: str, first: str) -> list[Row]:
    """Count the findings in frames by network, subject, day and kind, and return them in order.

    Each row has the number of findings, the smallest value of the column `first`, and one of the
    streams.
    """
    keys = ["network", subject, "day", "finding"]
    counts = (
        F.count("*").alias("count"),
        F.min(first).alias(f"first_{first}"),
        F.min("stream").alias("stream"),
    )
    findings = reduce(DataFrame.unionByName, frames)
    rows = findings.groupBy(*keys).agg(*counts).orderBy(*keys).collect()
    return [{**row.asDict(), "day": str(row["day"])} for row in rows]


def read_table(session: SparkSession, folder: Path, table: Table) -> DataFrame:
    """Read a table in a folder. A table without files is empty.

    Raises `DeliveriesError` if the tables of the log or of the streams have no files, because
    deliveries cannot be judged without them.
    """
    schema = ", ".join(f"`{column.name}` {_TYPES[str(column.type)]}" for column in table.columns)
    place = folder / table.name
    if not any(place.glob("*.parquet")):
        if table in {EVENT_LOG, EVENT_STREAMS}:
            raise DeliveriesError(f"{folder}: there is no table {table.name}")
        return session.createDataFrame([], schema)
    return session.read.schema(schema).parquet(spark_path(f"file://{place.absolute()}"))


def day() -> Column:
    """Return the day of the column `at`."""
    return F.to_date(F.timestamp_millis(F.col("at")))


def _least_common(frame: DataFrame, epochs: DataFrame) -> DataFrame:
    """Return the last `seq` that remained after all later rewinds, for each epoch in a table."""
    later = epochs.select(F.col("network"), F.col("epoch").alias("later"), "common")
    pairs = (
        frame.select("network", "epoch")
        .distinct()
        .join(later, "network")
        .where(F.col("later") > F.col("epoch"))
    )
    return pairs.groupBy("network", "epoch").agg(F.min("common").alias("common"))


def _mark_branch(deliveries: DataFrame, epochs: DataFrame) -> DataFrame:
    """Add the column `taken_back`, which is true if a later rewind removed the delivered event."""
    joined = deliveries.join(_least_common(deliveries, epochs), ["network", "epoch"], "left")
    gone = F.col("common").isNotNull() & (F.col("seq") > F.col("common"))
    return joined.withColumn("taken_back", gone).drop("common")


def _begun(streams: DataFrame, valid: DataFrame, epochs: DataFrame) -> DataFrame:
    """Return one row per stream: its filters, and the cursors `after` and `reached`.

    `after` is the cursor at which the stream began. `reached` is the cursor at which it ended. For
    a stream that has not ended, `reached` is the cursor of its last delivery, or `after` if it has
    none. Cursors beyond a later rewind are cut back to it.
    """
    branch = streams.join(_least_common(streams, epochs), ["network", "epoch"], "left")
    limited = branch.withColumn(
        "seq", F.least(F.col("seq"), F.coalesce(F.col("common"), F.col("seq")))
    )
    ends = limited.where(F.col("ended").isNotNull()).select(
        "network", "stream", F.col("seq").alias("end")
    )
    last = valid.groupBy("network", "stream").agg(F.max("seq").alias("last"))
    began = limited.where(F.col("ended").isNull()).select(
        "network",
        "stream",
        "subscription",
        "filters",
        F.col("seq").alias("after"),
        day().alias("day"),
    )
    joined = began.join(ends, ["network", "stream"], "left").join(
        last, ["network", "stream"], "left"
    )
    return joined.withColumn(
        "reached", F.coalesce(F.col("end"), F.col("last"), F.col("after"))
    ).drop("end", "last")


def _wanted(log: DataFrame, filters: Sequence[str]) -> DataFrame:
    """Return the events that each set of filters matches.

    The columns are `network`, `seq` and `filters`.
    """
    parts = []
    for start in range(0, len(filters), _FILTERS_AT_ONCE):
        tests = [
            F.when(_any_of(text), F.lit(text)) for text in filters[start : start + _FILTERS_AT_ONCE]
        ]
        matched = F.explode(F.array_compact(F.array(*tests)))
        parts.append(log.select("network", "seq", matched.alias("filters")))
    empty = log.select("network", "seq", F.lit("").alias("filters")).limit(0)
    return reduce(DataFrame.unionByName, parts, empty)


def _missing(begun: DataFrame, wanted: DataFrame, judged: DataFrame) -> DataFrame:
    """Find events that match and were not delivered."""
    between = (F.col("seq") > F.col("after")) & (F.col("seq") <= F.col("reached"))
    due = begun.join(wanted, ["network", "filters"]).where(between)
    correct = judged.where(F.col("true_id") == F.col("id")).select("network", "stream", "seq")
    return due.join(correct, ["network", "stream", "seq"], "left_anti").select(*_columns("missing"))


def _doubled(judged: DataFrame) -> DataFrame:
    """Find repeated deliveries, and those of events before the beginning of the stream."""
    place = Window.partitionBy("network", "stream", "seq", "id").orderBy("position")
    again = judged.withColumn("nth", F.row_number().over(place))
    return _of(again.where((F.col("nth") > 1) | (F.col("seq") <= F.col("after"))), "doubled")


def _out_of_order(judged: DataFrame) -> DataFrame:
    """Find events whose first delivery comes after that of a later event."""
    same_event = Window.partitionBy("network", "stream", "seq", "id").orderBy("position")
    before = (
        Window.partitionBy("network", "stream")
        .orderBy("position")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    ordered = judged.withColumn("nth", F.row_number().over(same_event)).withColumn(
        "highest", F.max("seq").over(before)
    )
    return _of(
        ordered.where((F.col("nth") == 1) & (F.col("seq") < F.col("highest"))), "out of order"
    )


def _not_asked_for(judged: DataFrame, wanted: DataFrame) -> DataFrame:
    """Find deliveries of the log's events that no filter of the subscription matches."""
    real = judged.where(F.col("true_id") == F.col("id"))
    return _of(real.join(wanted, ["network", "seq", "filters"], "left_anti"), "not asked for")


def _of(frame: DataFrame, finding: str) -> DataFrame:
    """Return deliveries as findings of a kind."""
    return frame.withColumn("day", day()).select(*_columns(finding))


def _columns(finding: str) -> list[Column]:
    return [
        *map(F.col, ("network", "subscription", "stream", "day", "seq")),
        F.lit(finding).alias("finding"),
    ]


# Filters as Spark columns: from the JSON of `events.filters.codec`, over the tagged fields


def _any_of(text: str) -> Column:
    """Return the condition that any filter in a JSON list matches."""
    return reduce(or_, map(_filter, json.loads(text)), F.lit(False))


def _filter(part: dict[str, Any]) -> Column:
    """Return the condition that a row matches a filter. Comparisons with null become false.

    Raises `DeliveriesError` if the JSON is not a filter.
    """
    match part:
        case {"any": True}:
            return F.lit(True)
        case {"all": parts}:
            return reduce(and_, map(_filter, parts), F.lit(True))
        case {"one_of": parts}:
            return reduce(or_, map(_filter, parts), F.lit(False))
        case {"not": inner}:
            return ~_filter(inner)
        case {"chain": None}:
            return F.col("chain").isNull()
        case {"chain": chain}:
            return F.coalesce(F.col("chain") == chain, F.lit(False))
        case {"kind": kind} if kind.endswith(".*"):
            return F.col("kind").startswith(kind[:-1])
        case {"kind": kind}:
            is_kind: Column = F.col("kind") == kind
            return is_kind
        case {"field": path, "op": op, "value": value}:
            return F.coalesce(_field(path, op, value), F.lit(False))
        case _:
            raise DeliveriesError(f"this is not a filter: {json.dumps(part)[:80]}")


def _field(path: list[str | int], op: str, value: Any) -> Column:
    """Return the condition for the comparison of a field. It is null if the path does not exist.

    Values are tagged with their types (see `delivery_audit.tagged`), so that the comparison of the
    texts has the same result as that of the values.
    """
    steps = "".join(f"[{step}]" if isinstance(step, int) else f"['{step}']" for step in path)
    field = F.get_json_object("fields", f"${steps}")
    if op == "=":
        return field == tag(value)
    if op == "!=":
        return field.isNotNull() & (field != tag(value))
    if op == "in":
        return field.isin([tag(item) for item in value])
    if op == "prefix":
        return field.startswith(tag(value))
    text = tag(value)
    # The first character is the type. Values of other types have no order.
    return field.startswith(text[0]) & _OPS[op](field, text)

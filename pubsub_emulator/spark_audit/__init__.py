"""The audit: what each block's proof cost and why, and whether a collator cheated, for a history of any length.

Read `history/schema.py` (the tables), `judge/check.py` (one segment of one chain, in plain Python), `audit/run.py` (the
entry point). Only `spark/` imports Spark; everything else runs without it.

    session = pubsub_emulator.spark_audit.session("out/audit")
    session.sql("SELECT chain, SUM(bytes) FROM waste GROUP BY chain").show()
"""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session(audit: "str | Path | None" = None, master: str | None = None) -> "SparkSession":
    """A Spark session on this machine or on `master`, with the tables of `audit` as temporary views; stop it when done.

    Java is found, or comes with the extra `spark`. Raises `SparkUnavailable`, `JavaNotFound`, `ResultError`.
    """
    try:
        from pubsub_emulator.spark_audit.spark.session import start_session  # noqa: PLC0415  # a JVM's library
    except ImportError as error:
        from pubsub_emulator.spark_audit.choice import without_spark  # noqa: PLC0415  # only for the error

        raise without_spark(error) from error
    return start_session(audit, master)


def register(session: "SparkSession") -> None:
    """Make the formats `pubsub_history`, `pubsub_audit` and `pubsub_node` known to a session of Spark."""
    from pubsub_emulator.spark_audit.spark import sources  # noqa: PLC0415  # as above

    sources.register(session)

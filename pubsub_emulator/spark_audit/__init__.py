"""The audit: the cost of each block's proof with its causes, and collators that cheat.

It works on a history of any length. A history is a folder of Parquet files (or a place in an object
store) with everything that is needed to judge every block of a network again. To understand the
code, read these first:

- `history/schema.py`: the tables of a history and of an audit;
- `judge/check.py`: the judgement of one segment of one chain, in plain Python;
- `audit/run.py`: the entry point.

Only the modules below `spark/` import Spark. Everything else runs without Java.

    session = pubsub_emulator.spark_audit.session("out/audit")
    session.sql("SELECT chain, SUM(bytes) FROM waste GROUP BY chain").show()
"""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session(audit: "str | Path | None" = None, master: str | None = None) -> "SparkSession":
    """Return a Spark session with the tables of `audit` as temporary views.

    The session runs on this machine, or on the cluster that `master` names. Stop it when you are
    done. Java is looked for on this machine; the extra `spark` installs one. Raises `EngineLost` if
    Spark cannot start (in particular `SparkUnavailable` or `JavaNotFound`), and `ResultError` if
    there is no readable audit at `audit`.
    """
    try:
        from pubsub_emulator.spark_audit.spark.session import start_session  # noqa: PLC0415  # a JVM's library
    except ImportError as error:
        from pubsub_emulator.spark_audit.choice import without_spark  # noqa: PLC0415  # only for the error

        raise without_spark(error) from error
    return start_session(audit, master)


def register(session: "SparkSession") -> None:
    """Register `pubsub_history`, `pubsub_audit` and `pubsub_node` as formats of a Spark session."""
    from pubsub_emulator.spark_audit.spark import sources  # noqa: PLC0415  # as above

    sources.register(session)

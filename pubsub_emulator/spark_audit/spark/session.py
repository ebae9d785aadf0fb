"""A Spark session for users: one that starts without a Java of one's own, with an audit's tables as views."""

from pyspark.sql import SparkSession

from pubsub_emulator.spark_audit.audit.results import RESULT_TABLES, Results
from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.storage import LocalStore
from pubsub_emulator.spark_audit.spark.context import start_context
from pubsub_emulator.spark_audit.tables.parts import published_schema


def start_session(audit: Address | None = None, master: str | None = None) -> SparkSession:
    """A session that the caller stops; the tables of `audit` are temporary views of it.

    Raises `SparkUnavailable`, `JavaNotFound`, `ResultError`, `OSError`.
    """
    results = None if audit is None else Results.open(audit)
    session = SparkSession(start_context(master, "pubsub-session"))
    session.conf.set("spark.sql.session.timeZone", "UTC")
    if results is not None:
        register(session, results)
    return session


def register(session: SparkSession, results: Results) -> None:
    """Make temporary views of an audit's tables. Raises `ResultError`, `OSError`."""
    store = results.store
    base = f"file://{store.uri}" if isinstance(store, LocalStore) else store.uri.replace("s3://", "s3a://", 1)
    for name, files in results.tables().items():
        if files:
            table = session.read.parquet(*(f"{base}/{path}" for path in files))
        else:
            table = session.createDataFrame(published_schema(RESULT_TABLES[name]).empty_table())
        table.createOrReplaceTempView(name)

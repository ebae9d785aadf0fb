"""A Spark session for users, with the tables of an audit as views.

It starts even if no Java is installed, see `java`.
"""

import re

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.sql import SparkSession

from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.storage import LocalStore
from pubsub_emulator.spark_audit.judge.results import Results
from pubsub_emulator.spark_audit.spark.context import start_context
from pubsub_emulator.spark_audit.spark.masters import SparkUnavailable


def start_session(audit: Address | None = None, master: str | None = None) -> SparkSession:
    """Start a session with Spark's own settings, as `spark_audit.session` does.

    Raises `SparkUnavailable`, `JavaNotFound`, `ResultError`, `OSError`.
    """
    results = None if audit is None else Results.open(audit)
    session = SparkSession(start_context(master, "pubsub-session", light=False))
    session.conf.set("spark.sql.session.timeZone", "UTC")
    if results is not None:
        register(session, results)
    return session


def register(session: SparkSession, results: Results) -> None:
    """Make temporary views of an audit's tables.

    Raises `ResultError`, `SparkUnavailable` if the session cannot read the output's storage, and
    `OSError`.
    """
    store = results.store
    if store.uri.startswith(("s3://", "s3a://")) and not _has_class(
        session, "org.apache.hadoop.fs.s3a.S3AFileSystem"
    ):
        raise SparkUnavailable(
            f"{store}: Spark here cannot read S3; start it with the package hadoop-aws"
        )
    if isinstance(store, LocalStore):
        base = f"file://{store.uri}"
    else:
        # Hadoop's client for S3 has a scheme of its own.
        base = store.uri.replace("s3://", "s3a://", 1)
    for name, files in results.tables(checked=False).items():
        paths = [spark_path(f"{base}/{path}") for path in files]
        session.read.parquet(*paths).createOrReplaceTempView(name)


def spark_path(path: str) -> str:
    """Quote a path for Spark, so that it contains no patterns."""
    return re.sub(r"[\\{}\[\]*?]", r"\\\g<0>", path)


def _has_class(session: SparkSession, name: str) -> bool:
    """Return whether the session's JVM has a class."""
    try:
        session._jvm.java.lang.Class.forName(name)  # type: ignore[union-attr]  # noqa: SLF001  # no other way to ask
    except Py4JError:
        return False
    return True

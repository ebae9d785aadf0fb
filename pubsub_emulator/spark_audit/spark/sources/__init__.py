"""Data sources of Spark: a history, its audit and a running node as DataFrames, streams and SQL tables.

They work over Spark Connect too, where the workers have this package and its extra `audit`, `client` for nodes.
"""

from pyspark.sql import SparkSession

from pubsub_emulator.spark_audit.spark.sources.audit import AuditSource
from pubsub_emulator.spark_audit.spark.sources.history import HistorySource
from pubsub_emulator.spark_audit.spark.sources.node import NodeSource


def register(session: SparkSession) -> None:
    """Make `pubsub_history`, `pubsub_audit` and `pubsub_node` known to a session, and have filters reach them."""
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    for source in (HistorySource, AuditSource, NodeSource):
        session.dataSource.register(source)

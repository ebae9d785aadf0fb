"""Data sources of Spark: a history, its audit and a running node as DataFrames, streams and SQL tables.

    register(spark)
    spark.read.format("pubsub_history").option("table", "blocks").load("out/demo/history")
    spark.read.format("pubsub_audit").option("table", "findings").load("out/demo/history")
    spark.readStream.format("pubsub_node").option("table", "events").load("ws://127.0.0.1:9944")

They use nothing but a `SparkSession`, so they work over Spark Connect and in notebooks of others, wherever the workers
have this package and its extra `audit` (the source of nodes also needs `client`).
"""

from pyspark.sql import SparkSession

from pubsub_emulator.spark_audit.spark.sources.audit import AuditSource
from pubsub_emulator.spark_audit.spark.sources.history import HistorySource
from pubsub_emulator.spark_audit.spark.sources.node import NodeSource

__all__ = ["AuditSource", "HistorySource", "NodeSource", "register"]


def register(session: SparkSession) -> None:
    """Make `pubsub_history`, `pubsub_audit` and `pubsub_node` known to a session, and have filters reach them."""
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    for source in (HistorySource, AuditSource, NodeSource):
        session.dataSource.register(source)

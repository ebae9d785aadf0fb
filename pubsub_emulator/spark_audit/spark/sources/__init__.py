"""Data sources for Spark: a history, its audit, and a running node, as DataFrames and streams.

They also work over Spark Connect, if the workers have this package with its extra `spark` (and
`client` for nodes).
"""

from pyspark.sql import SparkSession

from pubsub_emulator.spark_audit.spark.sources.audit import AuditSource
from pubsub_emulator.spark_audit.spark.sources.history import HistorySource
from pubsub_emulator.spark_audit.spark.sources.node import NodeSource


def register(session: SparkSession) -> None:
    """Register `pubsub_history`, `pubsub_audit` and `pubsub_node` in a session.

    Also let Spark pass filters to them.
    """
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    for source in (HistorySource, AuditSource, NodeSource):
        session.dataSource.register(source)

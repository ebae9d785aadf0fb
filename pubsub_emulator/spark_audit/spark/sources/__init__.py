"""Data sources for Spark: a history, its audit, and a running node, as DataFrames and streams.

They also work over Spark Connect, if the workers have this package with its extra `spark` (and
`client` for nodes).

Spark starts a Python process for each step of a query, such as the choice of its partitions. So the
package itself imports no source: a process imports only the one that it works for.
"""

from pyspark.sql import SparkSession


def register(session: SparkSession) -> None:
    """Register `pubsub_history`, `pubsub_audit` and `pubsub_node` in a session.

    Also let Spark pass filters to them.
    """
    from pubsub_emulator.spark_audit.spark.sources.audit import AuditSource  # noqa: PLC0415  # see above
    from pubsub_emulator.spark_audit.spark.sources.history import HistorySource  # noqa: PLC0415  # see above
    from pubsub_emulator.spark_audit.spark.sources.node import NodeSource  # noqa: PLC0415  # see above

    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    for source in (HistorySource, AuditSource, NodeSource):
        session.dataSource.register(source)

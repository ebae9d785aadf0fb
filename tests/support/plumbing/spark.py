"""One Spark context for all tests of a process: starting a JVM takes longer than most of them.

Streams on it.
"""

import os
from collections.abc import Iterator
from time import monotonic
from typing import TYPE_CHECKING

import pytest
from support.plumbing.processes import PATIENCE

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql.connect.streaming import DataStreamWriter as ConnectWriter
    from pyspark.sql.streaming.readwriter import DataStreamWriter

# Sessions of users have Java's own settings, with which a short run takes a third more CPU: most of
# its code is optimized and then not run again. Tests of those settings, and of installed packages,
# have an environment of their own.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkContext"]:
    from pubsub_emulator.spark_audit.spark.context import (  # noqa: PLC0415  # only where it is asked for
        start_context,
    )

    context = start_context("local[2]", "tests")
    yield context
    context.stop()


def run_stream(writer: "DataStreamWriter | ConnectWriter") -> None:
    """Run a stream to the end of its present data. A later call continues from its checkpoint.

    Spark gives the Python worker of a stream ten seconds to start, which is too little on a busy
    machine.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415  # as above

    end = monotonic() + PATIENCE
    while True:
        try:
            writer.trigger(availableNow=True).start().awaitTermination()
        except PySparkException as error:
            if "failed to connect back" not in str(error) or monotonic() > end:
                raise
        else:
            return

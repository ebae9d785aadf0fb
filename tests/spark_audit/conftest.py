"""One Spark context for all tests of a process: starting a JVM takes longer than most of them."""

from collections.abc import Iterator

import pytest
from pyspark import SparkContext

from pubsub_emulator.spark_audit.spark.context import start_context


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkContext]:
    context = start_context("local[2]", "tests")
    yield context
    context.stop()

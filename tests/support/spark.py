"""One Spark context for all tests of a process: starting a JVM takes longer than most of them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark import SparkContext


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkContext"]:
    from pubsub_emulator.spark_audit.spark.context import start_context  # noqa: PLC0415  # only where it is asked for

    context = start_context("local[2]", "tests")
    yield context
    context.stop()

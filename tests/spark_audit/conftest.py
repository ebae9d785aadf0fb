"""One Spark session for all tests of a process: starting a JVM takes longer than most of them."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark_audit.spark.session import start_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = start_session("local[2]", "tests")
    yield session
    session.stop()

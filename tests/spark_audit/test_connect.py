"""The data sources over Spark Connect: a program that has a session and nothing else of Spark."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.audits import drop_a_node, write_history

pytestmark = pytest.mark.spark

PROGRAM = """
import sys
from pyspark.sql import SparkSession
from pubsub_emulator.spark_audit.spark.sources import register

spark = SparkSession.builder.remote("local[1]").config("spark.ui.enabled", "false").getOrCreate()
register(spark)
path, out = sys.argv[1:]
blocks = spark.read.format("pubsub_history").load(path)
spark.sql(f"CREATE TEMPORARY VIEW judged USING pubsub_audit OPTIONS (path '{path}')")
found = spark.sql("SELECT f.block, f.code FROM judged LATERAL VIEW explode(findings) AS f")
joined = blocks.join(found, "block").select("number", "code").distinct().collect()
stream = spark.readStream.format("pubsub_history").load(path).writeStream.format("parquet").option("path", out)
query = stream.option("checkpointLocation", out + "-checkpoint").trigger(availableNow=True).start()
query.awaitTermination()
print(type(spark).__module__, blocks.count(), sorted(map(tuple, joined)), spark.read.parquet(out).count())
spark.stop()
"""


def test_a_client_reads_joins_and_streams(tmp_path: Path) -> None:
    write_history(tmp_path / "history", cheats={3: drop_a_node})
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path / "history", tmp_path / "out"],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    last = done.stdout.strip().splitlines()[-1]
    assert last.startswith("pyspark.sql.connect.session ")
    count = last.split()[1]
    assert last.endswith(f" {count}")
    assert "[(3, 'OmittedBelowBudget')]" in last

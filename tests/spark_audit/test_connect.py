"""The data sources over Spark Connect: a program that has a session and nothing else of Spark."""

import ast
import asyncio
import sys
from pathlib import Path

import pytest
from support.node import serving_beside
from support.processes import PATIENCE, python

from pubsub_emulator.spark_audit.history.store import HistoryWriter
from pubsub_emulator.spark_audit.spark.context import LIGHT_JVM

pytestmark = pytest.mark.spark

PROGRAM = """
import sys
from pyspark.sql import SparkSession
from support.spark import run_stream
from pubsub_emulator.spark_audit import register

spark = SparkSession.builder.remote("local[1]").config("spark.ui.enabled", "false").getOrCreate()
register(spark)
path, url, out = sys.argv[1:]
blocks = spark.read.format("pubsub_history").load(path)
spark.sql(f"CREATE TEMPORARY VIEW judged USING pubsub_audit OPTIONS (path '{path}')")
found = spark.sql("SELECT f.block, f.code FROM judged LATERAL VIEW explode(findings) AS f")
node = spark.readStream.format("pubsub_node").option("table", "candidates").option("finalized", "false").load(url)
run_stream(node.writeStream.format("parquet").option("path", out).option("checkpointLocation", out + "-offsets"))
told = spark.read.parquet(out)
joined = blocks.select("block", "number").join(found, "block").join(told, "block").select("code", "verdict")
counts = [frame.count() for frame in (blocks, told, told.filter("verdict IS NOT NULL"), joined)]
print(type(spark).__module__, counts, sorted(map(tuple, joined.distinct().collect())))
spark.stop()
"""


def test_a_client_streams_from_a_node_and_joins_history_findings_and_node(tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path / "history", "node")
    with serving_beside(observers=lambda _: [writer]) as node:
        ask = {"jsonrpc": "2.0", "id": 1, "method": "pubsub_cheat", "params": [2000, ["omit-node"], 1]}
        for todo in (node.step(3), node.post(ask), node.step(6)):
            asyncio.run_coroutine_threadsafe(todo, node.loop).result(PATIENCE)
        node.server.live.finish()
        writer.close()
        given = ("-c", PROGRAM, tmp_path / "history", node.urls[None], tmp_path / "out")
        done = python(*given, folder=tmp_path, PYSPARK_PYTHON=sys.executable, JDK_JAVA_OPTIONS=LIGHT_JVM)
    assert done.returncode == 0, done.stderr[-4000:]
    module, _, told = done.stdout.strip().splitlines()[-1].partition(" ")
    assert module == "pyspark.sql.connect.session"
    (stored, streamed, refused, joined), verdicts = ast.literal_eval(told.replace("] [", "], ["))
    assert stored == streamed > refused == joined > 0
    assert verdicts == [("OmittedBelowBudget", "OmittedBelowBudget"), ("RootMismatch", "RootMismatch")]

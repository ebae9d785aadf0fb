"""An alert for each block that cheats, from a stream of a node's blocks that can be interrupted."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame

from pubsub_emulator.client import connect
from pubsub_emulator.spark_audit import register, session

NODE = [
    sys.executable,
    "-m",
    "pubsub_emulator",
    "serve",
    "oracle",
    "--port",
    "0",
    "--build",
    "manual",
    "--dev",
]


def alert(findings: DataFrame, _batch: int) -> None:
    """Tell of each finding of a batch; a pager or a table would be told here."""
    for row in findings.orderBy("number").collect():
        print(
            f"  alert: relay block {row.number} refused block {row.chain_number} of {row.chain}:"
            f" {row.verdict}"
        )


async def ask(url: str, method: str, *params: object) -> None:
    """Have the node do something."""
    async with connect(url) as rpc:
        await rpc.call(method, *params)


with (
    TemporaryDirectory() as folder,
    subprocess.Popen(NODE, stdout=subprocess.PIPE, text=True) as node,  # noqa: S603  # our own
):
    url = next(
        found.group() for line in node.stdout or () if (found := re.search(r"ws://\S+", line))
    )
    spark = session(master="local[1]")
    register(spark)
    for cheats in (False, True):
        print("one of two collators of 2000 cheats" if cheats else "all are honest")
        if cheats:
            asyncio.run(ask(url, "pubsub_cheat", 2000, ["omit-node"], 1))
        asyncio.run(ask(url, "dev_newBlock", {"count": 6}))
        blocks = spark.readStream.format("pubsub_node").option("table", "candidates").load(url)
        stream = blocks.filter("verdict IS NOT NULL").writeStream.foreachBatch(alert)
        stream = stream.option("checkpointLocation", str(Path(folder) / "offsets")).trigger(
            availableNow=True
        )
        stream.start().awaitTermination()  # the next one goes on where it ended
    spark.stop()
    node.terminate()

"""The data sources of Spark: a history, its judgement and a node as DataFrames and streams
(AU-14).
"""

import ast
import asyncio
import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, In
from support.node.nodes import serving_beside
from support.plumbing.processes import PATIENCE, python
from support.plumbing.spark import run_stream
from support.spark_audit.audits import (
    digest_of_parquet,
    digest_of_table,
    drop_a_node,
    flip,
    include_invalid,
    write_history,
)

from pubsub_emulator.spark_audit.audit.run import audit
from pubsub_emulator.spark_audit.history.manifest import HISTORY_TABLES
from pubsub_emulator.spark_audit.history.reader import History
from pubsub_emulator.spark_audit.history.schema import BLOCK_MEASURES
from pubsub_emulator.spark_audit.history.store import HistoryWriter
from pubsub_emulator.spark_audit.judge import check
from pubsub_emulator.spark_audit.judge.results import RESULT_TABLES, Results
from pubsub_emulator.spark_audit.spark.java import find_java
from pubsub_emulator.spark_audit.spark.sources import register
from pubsub_emulator.spark_audit.spark.sources.audit import AuditSource
from pubsub_emulator.spark_audit.spark.sources.common import Source, SourceError
from pubsub_emulator.spark_audit.spark.sources.history import HistorySource
from pubsub_emulator.spark_audit.spark.sources.node import NodeSource

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def session(spark: SparkContext) -> SparkSession:
    found = SparkSession(spark)
    register(found)
    return found


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sources") / "history"
    write_history(path, subscribers=2, cheats={3: drop_a_node, 5: include_invalid})
    return path


def rows(wanted: Source) -> list[dict[str, Any]]:
    """All rows that a source hands to Spark."""
    return [
        row for part in wanted.all() for batch in wanted.read(part) for row in batch.to_pylist()
    ]


# Histories


@pytest.mark.parametrize("table", HISTORY_TABLES)
def test_a_table_has_the_rows_of_the_history(history: Path, table: str) -> None:
    wanted = HistorySource({"path": str(history), "table": table})
    found = rows(wanted)
    opened, faults = History.open(history), list[Any]()
    expected = list(opened.rows(opened.files(HISTORY_TABLES[table]), faults))
    assert faults == []
    key = [name for name in HISTORY_TABLES[table].key if name in wanted.columns.names]
    assert Counter(tuple(row[name] for name in key) for row in found) == Counter(
        tuple(row[name] for name in key) for row in expected
    )


def test_filters_leave_files_and_row_groups_out(history: Path) -> None:
    """Row groups by the bounds of whole numbers in a footer that the manifest has a digest of."""
    wanted = HistorySource({"path": str(history)})

    def read(*filters: Filter) -> tuple[set[tuple[int, int]], Counter[int]]:
        wanted.filters = filters
        parts = [part.value for part in wanted.all() if part.value is not None]
        files = {(entry.chain, entry.segment) for entries, _ in parts for entry in entries}
        return files, Counter(row["number"] for row in rows(wanted))

    every, numbers = read()
    chain = min(every)[0]
    for given in (EqualTo(("chain",), chain), In(("chain",), (chain, 9))):
        assert read(given)[0] == {each for each in every if each[0] == chain} < every
    assert read(GreaterThan(("segment",), 10**9)) == (set(), {})
    files, some = read(EqualTo(("number",), 1))
    assert files == every
    assert some[1] == numbers[1] > 0
    assert some.total() < numbers.total()
    assert read(EqualTo(("number",), 10**6)) == (every, {})


def test_a_flipped_byte_is_an_error_or_a_row_of_read_errors(
    session: SparkSession, history: Path, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(history, damaged)
    path = next(damaged.glob("blocks/**/*.parquet"))
    flip(path, path.stat().st_size // 3)
    name = path.relative_to(damaged).as_posix()
    with pytest.raises(PySparkException, match=r"differs? from what was committed"):
        session.read.format("pubsub_history").load(str(damaged)).count()
    reader = session.read.format("pubsub_history").option("mode", "DROPMALFORMED")
    whole = session.read.format("pubsub_history").load(str(history)).count()
    assert reader.load(str(damaged)).count() < whole
    (fault,) = (
        session.read.format("pubsub_history")
        .option("table", "read_errors")
        .load(str(damaged))
        .collect()
    )
    assert fault["path"] == name


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "pubsub_history needs the option 'path'"),
        (
            {"path": "h", "tabel": "blocks"},
            (
                "pubsub_history has no option 'tabel'; it has chain, columns, from,"
                " maxBlocksPerTrigger, maxSegmentsPerTrigger, mode, network, path, table"
            ),
        ),
        ({"path": "h", "table": "block"}, "option table is 'block'; it can be relay_headers"),
        ({"paths": '["h", "i"]'}, "pubsub_history reads one path; the rows of several are a union"),
        ({"path": "h", "mode": "skip"}, "option mode is 'skip'; it can be failfast, dropmalformed"),
        (
            {"path": "h", "columns": "number,none"},
            "pubsub_history has no column 'none'; it has network, chain",
        ),
    ],
)
def test_an_option_that_means_nothing_is_refused_in_one_line(
    given: dict[str, str], said: str
) -> None:
    with pytest.raises(SourceError) as failure:
        HistorySource(given)
    assert said in str(failure.value)
    assert "\n" not in str(failure.value)


# Judged blocks


@pytest.fixture(scope="module")
def results(history: Path, tmp_path_factory: pytest.TempPathFactory) -> Results:
    out = tmp_path_factory.mktemp("sources-audit")
    audit(history, out, engine="python")
    return Results.open(out)


@pytest.mark.parametrize("table", ["block_measures", "publisher_measures", "waste"])
def test_judged_rows_are_those_of_an_audit(history: Path, results: Results, table: str) -> None:
    options = {"table": table}, {"columns": table}
    flat, nested = (rows(AuditSource({"path": str(history), **each})) for each in options)
    assert flat == [row for each in nested for row in each[table]]
    assert len(flat) == len(list(results.rows(RESULT_TABLES[table]))) > 0


def test_findings_about_blocks_are_those_of_an_audit(
    session: SparkSession, history: Path, results: Results
) -> None:
    flat = session.read.format("pubsub_audit").option("table", "findings").load(str(history))
    found = {(row["code"], row["position"]) for row in flat.collect()}
    audited = {(row["code"], row["position"]) for row in results.rows(RESULT_TABLES["findings"])}
    assert found
    assert found < audited
    assert {code for code, _ in audited - found} == {
        "Equivocation"
    }  # a habit: two blocks show it, and not one


def test_columns_of_manifests_alone_judge_nothing(
    history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "check_chain", None)
    wanted = AuditSource({"path": str(history), "columns": "chain,segment,candidates"})
    found = rows(wanted)
    opened = History.open(history)
    assert sum(row["candidates"] for row in found) == sum(
        e.rows for e in opened.files(HISTORY_TABLES["blocks"])
    )
    judged = AuditSource({"path": str(history)})
    with pytest.raises(TypeError):
        rows(judged)


def test_filters_spare_chains(history: Path) -> None:
    wanted = AuditSource({"path": str(history)})
    wanted.filters = [EqualTo(("chain",), 2000)]
    assert {row["chain"] for row in rows(wanted)} == {2000}


# Streams


@pytest.mark.parametrize(
    ("source", "table"),
    [
        ("pubsub_history", "blocks"),
        ("pubsub_audit", "block_measures"),
    ],
)
def test_a_stream_has_every_segment_once_over_restarts(
    session: SparkSession, tmp_path: Path, source: str, table: str
) -> None:
    whole, grown, out = tmp_path / "whole", tmp_path / "grown", tmp_path / "out"
    write_history(whole, 12)
    manifests = sorted(
        (whole / "_commits").iterdir(), key=lambda path: int(path.name.rsplit("-", 2)[1])
    )
    assert len(manifests) > 2
    shutil.copytree(whole, grown, ignore=shutil.ignore_patterns("_commits"))
    (grown / "_commits").mkdir()
    for batch in (manifests[:1], manifests[1:2], [], manifests[2:]):
        for path in batch:
            shutil.copy(path, grown / "_commits")
        stream = session.readStream.format(source).option("table", table).load(str(grown))
        sink = (
            stream.select("segment", "block").writeStream.format("parquet").option("path", str(out))
        )
        run_stream(sink.option("checkpointLocation", str(tmp_path / "checkpoint")))
    written = session.read.parquet(str(out))
    every = session.read.format("pubsub_history").load(str(whole))
    assert written.count() == written.distinct().count() == every.count()
    assert written.select("segment").distinct().count() == len(manifests)


# A node


@contextmanager
def node(blocks: int) -> Iterator[tuple[str, list[str]]]:
    """The URL of a node with some blocks, served by a thread, and the hashes of its blocks."""
    with serving_beside() as running:
        asked = [
            {"jsonrpc": "2.0", "id": at, "method": "chain_getBlockHash", "params": [at]}
            for at in range(1, blocks + 1)
        ]
        asyncio.run_coroutine_threadsafe(running.step(blocks), running.loop).result(PATIENCE)
        answers = asyncio.run_coroutine_threadsafe(running.post(asked), running.loop).result(
            PATIENCE
        )
        yield running.urls[None], [answer["result"] for answer in answers]


def test_a_running_node_is_read_as_tables(session: SparkSession) -> None:
    with node(12) as (url, hashes):
        reader = session.read.format("pubsub_node").option("blocks", "5")
        headers = reader.option("finalized", "false").load(url).orderBy("number").collect()
        assert [f"0x{bytes(row['hash']).hex()}" for row in headers[: len(hashes)]] == hashes
        assert [bytes(row["parent"]) for row in headers[1:]] == [
            bytes(row["hash"]) for row in headers[:-1]
        ]
        events = reader.option("table", "events").load(url)
        assert events.filter("pallet = 'Broadcaster' AND event = 'DataPublished'").count() > 0
        given = {"path": url, "finalized": "false", "blocks": "5", "last": "12"}
        entries = rows(NodeSource({**given, "table": "entries", "publishers": "1000, 1001"}))
        assert {row["number"] for row in entries} == {*range(2, 13)}
        assert all(row["when_inserted"] <= row["number"] for row in entries)
        wanted = NodeSource({"path": url, "finalized": "false", "blocks": "5"})
        wanted.filters = [GreaterThan(("number",), 6)]
        assert [part.value[0] for part in wanted.all()] == [6, 11]


def test_a_stream_of_a_node_has_each_block_once(session: SparkSession, tmp_path: Path) -> None:
    with node(9) as (url, hashes):
        for last in ("4", "9"):
            stream = (
                session.readStream.format("pubsub_node")
                .option("finalized", "false")
                .option("last", last)
                .load(url)
            )
            sink = stream.writeStream.format("parquet").option("path", str(tmp_path / "out"))
            run_stream(sink.option("checkpointLocation", str(tmp_path / "checkpoint")))
        written = session.read.parquet(str(tmp_path / "out")).orderBy("number").collect()
        assert [f"0x{bytes(row['hash']).hex()}" for row in written] == hashes


def test_a_relay_chains_node_tells_what_it_judged() -> None:
    with serving_beside() as running:
        cheat = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "pubsub_cheat",
            "params": [2000, ["omit-node"], 1],
        }
        for todo in (running.step(3), running.post(cheat), running.step(6)):
            asyncio.run_coroutine_threadsafe(todo, running.loop).result(PATIENCE)
        found = rows(
            NodeSource({"path": running.urls[None], "table": "candidates", "finalized": "false"})
        )
    refused = [row for row in found if row["verdict"] is not None]
    assert {(row["chain"], row["verdict"]) for row in refused} == {
        (2000, "OmittedBelowBudget"),
        (2000, "RootMismatch"),
    }
    assert all(row["evidence"] for row in refused)
    assert len({row["block"] for row in found}) == len(found) > len(refused)


# Spark Connect: a program that has a session and nothing else of Spark

PROGRAM = """
import sys
from pyspark.sql import SparkSession
from support.plumbing.spark import run_stream
from pubsub_emulator.spark_audit import register

spark = SparkSession.builder.remote("local[1]").config("spark.ui.enabled", "false").getOrCreate()
assert "connect" in type(spark).__module__
register(spark)
path, url, out = sys.argv[1:]
measures = spark.read.format("pubsub_audit").option("table", "block_measures").load(path)
measures.write.parquet(out + "-measures/0000")
blocks = spark.read.format("pubsub_history").load(path)
spark.sql(f"CREATE TEMPORARY VIEW judged USING pubsub_audit OPTIONS (path '{path}')")
found = spark.sql("SELECT f.block, f.code FROM judged LATERAL VIEW explode(findings) AS f")
source = spark.readStream.format("pubsub_node").option("table", "candidates")
node = source.option("finalized", "false").load(url)
sink = node.writeStream.format("parquet").option("path", out)
run_stream(sink.option("checkpointLocation", out + "-offsets"))
told = spark.read.parquet(out)
joined = blocks.select("block").join(found, "block", "left").join(told, "block")
joined = joined.select("block", "code", "verdict").collect()
print(type(spark).__module__, [(bytes(row.block).hex(), row.code, row.verdict) for row in joined])
spark.stop()
"""


def test_a_client_streams_from_a_node_and_joins_history_findings_and_node(tmp_path: Path) -> None:
    """`pubsub audit` refuses Spark Connect, and its data sources work there."""
    writer = HistoryWriter(tmp_path / "history", "node")
    with serving_beside(observers=lambda _: [writer]) as node:
        ask = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "pubsub_cheat",
            "params": [2000, ["omit-node"], 1],
        }
        for todo in (node.step(3), node.post(ask), node.step(6)):
            asyncio.run_coroutine_threadsafe(todo, node.loop).result(PATIENCE)
        node.server.live.finish()
        writer.close()
        given = ("-c", PROGRAM, tmp_path / "history", node.urls[None], tmp_path / "out")
        done = python(
            *given,
            folder=tmp_path,
            JAVA_HOME=str(find_java().home),
            PYSPARK_PYTHON=sys.executable,
            SPARK_LOCAL_IP="127.0.0.1",
        )
    assert done.returncode == 0, done.stderr[-4000:]
    module, _, told = done.stdout.strip().splitlines()[-1].partition(" ")
    assert module == "pyspark.sql.connect.session"
    joined = ast.literal_eval(told)
    history = History.open(tmp_path / "history")
    stored = {
        row["block"].hex() for row in history.rows(history.files(HISTORY_TABLES["blocks"]), [])
    }
    assert {block for block, _, _ in joined} == stored, "all that is recorded was streamed"
    assert len(joined) == len(stored)
    assert all(code == verdict for _, code, verdict in joined)
    assert {code for _, code, _ in joined} == {None, "OmittedBelowBudget", "RootMismatch"}
    plain = audit(tmp_path / "history", tmp_path / "plain", engine="python")
    assert digest_of_parquet(tmp_path / "out-measures", BLOCK_MEASURES) == digest_of_table(
        plain, BLOCK_MEASURES
    )


# As Spark's own file sources


def test_schemas_catalogs_and_limited_streams_work_in_a_session(
    session: SparkSession, history: Path, tmp_path: Path
) -> None:
    source = session.read.format("pubsub_history")
    whole = source.load(str(history))
    chosen = source.schema("NUMBER long, chain long").load(str(history))
    assert chosen.columns == ["NUMBER", "chain"]
    assert sorted(chosen.collect()) == sorted(whole.select("number", "chain").collect())
    with pytest.raises(PySparkException, match="column chain is bigint, not string"):
        source.schema("chain string").load(str(history)).collect()
    using = f"kept USING pubsub_history OPTIONS (path '{history}', Chain '2000')"
    with pytest.raises(PySparkException, match="cannot be a table of Spark's catalog"):
        session.sql(f"CREATE TABLE {using}")
    session.sql(f"CREATE TEMPORARY VIEW {using}")
    (counted,) = session.sql("SELECT count(*) AS n, max(chain) AS chain FROM kept").collect()
    assert (counted.n, counted.chain) == (whole.filter("chain = 2000").count(), 2000)

    stream = (
        session.readStream.format("pubsub_history")
        .option("maxSegmentsPerTrigger", 1)
        .option("chain", "2000")
        .option("columns", "chain,segment,position")
        .load(str(history))
    )
    sink = stream.writeStream.format("parquet").option("path", str(tmp_path / "got"))
    run_stream(sink.option("checkpointLocation", str(tmp_path / "checkpoint")))
    segments = History.open(history).commits[-1].segment + 1
    # Spark writes the offset at which each batch ends.
    ends = [
        json.loads(path.read_text(encoding="utf-8").splitlines()[-1])["dev"]["next"]
        for path in (tmp_path / "checkpoint/offsets").glob("[0-9]*")
    ]
    assert sorted(ends) == list(range(1, segments + 1))
    assert session.read.parquet(str(tmp_path / "got")).count() == counted.n

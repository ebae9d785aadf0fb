"""Offsets, limits, options and schemas of the data sources, called as Spark calls them."""

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, ReadMaxRows
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType
from support.node.nodes import Running, serving_beside
from support.plumbing.processes import PATIENCE, python
from support.spark_audit.audits import SUBSCRIBER, write_history

from pubsub_emulator.spark_audit.history.manifest import COMMITS
from pubsub_emulator.spark_audit.history.reader import History
from pubsub_emulator.spark_audit.history.schema import BLOCKS
from pubsub_emulator.spark_audit.judge import check
from pubsub_emulator.spark_audit.spark.sources.audit import AuditSource
from pubsub_emulator.spark_audit.spark.sources.common import Source, SourceError
from pubsub_emulator.spark_audit.spark.sources.history import HistorySource
from pubsub_emulator.spark_audit.spark.sources.node import NodeSource

NODE = {"path": "ws://127.0.0.1:1"}


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two networks with five and three segments of two relay blocks."""
    path = tmp_path_factory.mktemp("offsets") / "history"
    write_history(path, 9, segment_length=2, name="one")
    return write_history(path, 5, segment_length=2, name="two")


def _rows(source: Source, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        row
        for part in source.partitions(start, end)
        for batch in source.read(part)
        for row in batch.to_pylist()
    ]


def _batches(source: Source, start: dict[str, Any] | None = None) -> list[list[dict[str, Any]]]:
    """The rows of each batch until a stream has all, with offsets through JSON as in Spark."""
    found = []
    at = source.initialOffset() if start is None else start
    while (
        end := json.loads(json.dumps(source.latestOffset(at, source.getDefaultReadLimit())))
    ) != at:
        found.append(_rows(source, at, end))
        at = end
    return found


def _names(path: Path, network: str) -> list[str]:
    return sorted(each.name for each in (path / COMMITS).glob(f"{network}-*.json"))


def _blocks(rows: list[dict[str, Any]]) -> Counter[bytes]:
    return Counter(row["block"] for row in rows)


@pytest.mark.parametrize("kind", [HistorySource, AuditSource])
def test_a_stream_of_a_history_that_was_replaced_ends_with_an_error(
    history: Path, tmp_path: Path, kind: type[HistorySource] | type[AuditSource]
) -> None:
    path = shutil.copytree(history, tmp_path / "history")
    source = kind({"path": str(path)})
    first = source.latestOffset()
    assert first["one"]["after"] == _names(path, "one")[-1]
    shutil.rmtree(path)
    write_history(path, 9, segment_length=2, name="one", subscribers=2)
    write_history(path, 5, segment_length=2, name="two")
    for start, end in ((first, source.newest()), ({}, first)):
        with pytest.raises(SourceError, match=r"segment \d of network one as .* was replaced"):
            source.partitions(start, end)
    limited = kind({"path": str(path), "maxSegmentsPerTrigger": "1"})
    with pytest.raises(SourceError, match="was replaced"):
        limited.latestOffset(first, ReadMaxFiles(1))


def test_a_stream_of_a_history_that_lost_its_end_fails(history: Path, tmp_path: Path) -> None:
    path = shutil.copytree(history, tmp_path / "history")
    source = HistorySource({"path": str(path)})
    first = source.latestOffset()
    (path / COMMITS / _names(path, "two")[-1]).unlink()
    with pytest.raises(SourceError, match="of network two as"):
        source.partitions(first, source.newest())


def test_a_checkpoint_of_an_earlier_version_goes_on(history: Path) -> None:
    source = HistorySource({"path": str(history)})
    start = {"one": 3, "two": 3}
    assert {row["segment"] for row in _rows(source, start, source.newest())} == {3, 4}


@pytest.mark.parametrize("limit", [1, 3])
def test_batches_have_at_most_so_many_segments(history: Path, limit: int) -> None:
    whole = _batches(HistorySource({"path": str(history)}))
    assert len(whole) == 1
    parts = _batches(HistorySource({"path": str(history), "MAXsegmentspertrigger": str(limit)}))
    segments = [{(row["network"], row["segment"]) for row in rows} for rows in parts]
    assert all(len(each) <= limit for each in segments)
    assert len(parts) == -(-8 // limit)
    assert sum(map(_blocks, parts), Counter()) == _blocks(whole[0])


@pytest.mark.parametrize("limit", [1, 12])
def test_batches_have_at_most_so_many_blocks_or_one_segment(history: Path, limit: int) -> None:
    source = HistorySource({"path": str(history), "maxBlocksPerTrigger": str(limit)})
    assert source.getDefaultReadLimit() == ReadMaxRows(limit)
    for rows in _batches(source):
        places = {(row["network"], row["segment"]) for row in rows}
        assert len(rows) <= limit or len(places) == 1


def test_without_a_limit_from_spark_options_limit_nothing(history: Path) -> None:
    source = HistorySource({"path": str(history), "maxSegmentsPerTrigger": "1"})
    assert source.latestOffset({}, ReadAllAvailable()) == source.newest()
    assert source.getDefaultReadLimit() == ReadMaxFiles(1)


def test_available_now_ends_with_what_was_there(tmp_path: Path) -> None:
    path = write_history(tmp_path / "history", 3, segment_length=1, name="one")
    source = HistorySource({"path": str(path), "maxSegmentsPerTrigger": "2"})
    source.prepareForTriggerAvailableNow()
    write_history(path, 3, segment_length=1, name="two")
    assert {row["network"] for rows in _batches(source) for row in rows} == {"one"}
    assert set(source.reportLatestOffset()) == {"one", "two"}


def test_options_choose_networks_chains_and_the_first_segment(history: Path) -> None:
    given = {"path": str(history), "network": "one", "chain": f"{SUBSCRIBER}, 1000", "from": "2"}
    (rows,) = _batches(HistorySource(given))
    places = {(row["network"], row["chain"], row["segment"]) for row in rows}
    assert places == {("one", chain, at) for chain in (1000, SUBSCRIBER) for at in (2, 3, 4)}
    source = HistorySource(given)
    assert [
        row for part in source.all() for batch in source.read(part) for row in batch.to_pylist()
    ]
    chains = HistorySource({**given, "table": "authorities", "from": "0"})
    assert {row["chain"] for rows in _batches(chains) for row in rows} == {1000, SUBSCRIBER}


def test_a_stream_judges_only_the_chains_that_it_is_asked_for(
    history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = []
    real = check.check_chain

    def noted(task: Any, files: Any, shared: Any) -> Any:
        judged.append((task.network, files.chain, task.segment))
        return real(task, files, shared)

    monkeypatch.setattr(check, "check_chain", noted)
    given = {"path": str(history), "network": "one", "chain": str(SUBSCRIBER), "from": "3"}
    (rows,) = _batches(AuditSource(given))
    # The history ends in the middle of the segment after the fourth one.
    assert judged == [("one", SUBSCRIBER, 3), ("one", SUBSCRIBER, 4)]
    assert all(row["complete"] for row in rows)


@pytest.mark.parametrize("kind", [HistorySource, AuditSource, NodeSource])
def test_names_of_options_and_their_values_have_any_case(history: Path, kind: type[Source]) -> None:
    table = {HistorySource: "NODES", AuditSource: "Findings", NodeSource: "HeaderS"}[kind]
    column = {HistorySource: "HASH", AuditSource: "Code", NodeSource: "Number"}[kind]
    path = NODE["path"] if kind is NodeSource else str(history)
    source = kind({"PATH": path, "Table": table, "COLUMNS": column})
    assert source.columns.names == [column.lower()]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"paths": '["a","b"]'}, "reads one path; the rows of several are a union"),
        ({"colums": "chain"}, "has no option 'colums'; it has chain, columns, from, max"),
        ({"owner": "root", "provider": "x"}, "cannot be a table of Spark's catalog"),
        ({"maxBlocksPerTrigger": "0"}, "maxBlocksPerTrigger must be 1 or more"),
        ({"from": "first"}, "option from is 'first', not a whole number"),
        ({"chain": "1000,x"}, "option chain is 'x', not a whole number"),
        ({"table": "block"}, "option table is 'block'; it can be relay_headers, "),
    ],
)
def test_wrong_options_are_one_line(history: Path, options: dict[str, str], said: str) -> None:
    with pytest.raises(SourceError) as refused:
        HistorySource({"path": str(history), **options})
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


# Schemas


def test_a_schema_of_the_user_chooses_columns_and_their_names(history: Path) -> None:
    source = HistorySource({"path": str(history)})
    wanted = StructType([StructField("NUMBER", LongType()), StructField("chain", LongType())])
    reader = source.reader(wanted)
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    assert {
        tuple(batch.schema.names) for batch in batches if isinstance(batch, pa.RecordBatch)
    } == {("NUMBER", "chain")}
    rows = sum(len(batch) for batch in batches if isinstance(batch, pa.RecordBatch))
    files = History.open(history).files(BLOCKS)
    assert rows == sum(entry.rows for entry in files)


@pytest.mark.parametrize(
    ("field", "said"),
    [
        pytest.param(
            StructField("chain", StringType()),
            "column chain is bigint, not string",
            id="another type",
        ),
        pytest.param(
            StructField("chains", LongType()), "has no column 'chains'", id="an unknown column"
        ),
        pytest.param(
            StructField("proof", ArrayType(StringType())),
            "column proof is array<bigint>, not array",
            id="another type of items",
        ),
    ],
)
def test_a_schema_that_does_not_fit_is_refused(
    history: Path, field: StructField, said: str
) -> None:
    for make in (HistorySource.reader, HistorySource.streamReader):
        with pytest.raises(SourceError, match=said):
            make(HistorySource({"path": str(history)}), StructType([field]))


# Nodes


@pytest.fixture
def node() -> Iterator[Running]:
    with serving_beside() as running:
        _do(running, running.step(8))
        yield running


def _do(running: Running, what: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run_coroutine_threadsafe(what, running.loop).result(PATIENCE)


def _call(running: Running, method: str, *given: object) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": given}
    assert "error" not in _do(running, running.post(asked))


def test_a_stream_of_best_blocks_that_were_reverted_fails(node: Running) -> None:
    source = NodeSource({"path": node.urls[None], "finalized": "false"})
    first = source.latestOffset()
    before = _rows(source, {}, first)
    assert before[-1]["hash"].hex() == first["after"].removeprefix("0x")
    _call(node, "dev_setHead", first["next"] - 5)
    _call(node, "pubsub_publish", 1000, "x", "0x99", 50)
    _do(node, node.step(8))
    now = source.latestOffset()
    # An offset from before is of blocks that are not of the chain any more.
    for start, end in ((first, now), ({}, first)):
        with pytest.raises(SourceError, match=r"the stream has read block .* the chain went back"):
            source.partitions(start, end)
    # The same between planning and reading.
    (part,) = NodeSource(dict(source.options)).partitions({}, now)
    _call(node, "dev_setHead", now["next"] - 5)
    _call(node, "pubsub_publish", 1000, "y", "0x98", 50)
    _do(node, node.step(8))
    with pytest.raises(SourceError, match="the chain went back"):
        list(source.read(part))


def test_batches_of_a_node_have_at_most_so_many_blocks(node: Running) -> None:
    options = {"path": node.urls[None], "finalized": "false", "blocks": "2"}
    whole = _batches(NodeSource(options))
    parts = _batches(NodeSource({**options, "maxBlocksPerTrigger": "3"}))
    assert all(len(rows) <= 3 for rows in parts)
    assert [row for rows in parts for row in rows] == whole[0]
    cut = _batches(NodeSource({**options, "first": "2", "last": "6"}))
    assert [row["number"] for rows in cut for row in rows] == [2, 3, 4, 5, 6]
    assert NodeSource({**options, "first": "99"}).newest() == {"next": 99, "after": ""}


@pytest.mark.parametrize("source", ["audit", "history"])
def test_a_process_of_a_query_imports_only_its_own_source(source: str) -> None:
    """Spark starts several for each query, and waits for one only ten seconds."""
    code = (
        f"import sys, pubsub_emulator.spark_audit.spark.sources.{source}\n"
        "spared = ('aiohttp', 'pubsub_emulator.spark_audit.judge.check')\n"
        "print(*(name for name in spared if name in sys.modules))"
    )
    assert python("-c", code).stdout == "\n"

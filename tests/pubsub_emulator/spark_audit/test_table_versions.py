"""One whole state of each table, in every engine, whenever a run ends or is killed, and whoever
wrote to its log.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark import SparkContext
from pyspark.sql import SparkSession
from support.spark_audit.audits import drop_a_node, write_history
from support.spark_audit.history_forgery import load, store

from pubsub_emulator.spark_audit.audit import rounds
from pubsub_emulator.spark_audit.audit.run import AuditFailed, AuditResult, audit
from pubsub_emulator.spark_audit.history.storage import LocalStore
from pubsub_emulator.spark_audit.judge.results import RESULT_TABLES, Results
from pubsub_emulator.spark_audit.spark.session import register, spark_path
from pubsub_emulator.spark_audit.tables.ask import ask
from pubsub_emulator.spark_audit.tables.delta import LOG
from pubsub_emulator.spark_audit.tables.pack import BOUNDED

Files = frozenset[str]


def _audit(folder: Path, **options: Any) -> AuditResult:
    return audit(folder / "history", folder / "audit", engine="python", **options)


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An audit of the first segments of a history that has grown since."""
    folder = tmp_path_factory.mktemp("grown")
    whole = load(
        write_history(
            folder / "whole", 15, segment_length=3, cheats={5: drop_a_node, 8: drop_a_node}
        )
    )
    store(whole[:2], folder / "history")
    _audit(folder)
    shutil.rmtree(folder / "history")
    store(whole, folder / "history")
    return folder


@pytest.fixture(scope="module")
def states(grown: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[Files, Path]]:
    """For each table the sets of files that its log named after some step of a run, each with a
    folder that has them.

    A step is a write or a removal; what is there before each of them is what a kill leaves. No file
    is ever changed in its place, so links keep what was there.
    """
    taken: list[Path] = []
    running = shutil.copytree(grown, tmp_path_factory.mktemp("running") / "audited")

    def keep() -> None:
        folder = tmp_path_factory.mktemp("killed")
        shutil.copytree(running / "audit", folder / "audit", copy_function=os.link)
        taken.append(folder)

    def kept(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            keep()
            return real(*arguments)

        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "ROUND", 2)
        for name in ("put", "put_new", "remove"):
            patch.setattr(LocalStore, name, kept(getattr(LocalStore, name)))
        _audit(running)
    keep()
    assert len(taken) > 60, "a run writes at least so often"
    out: dict[str, dict[Files, Path]] = {name: {} for name in RESULT_TABLES}
    for folder in taken:
        for name, known in out.items():
            known.setdefault(frozenset(_logged(folder, name)), folder)
        for name, files in (
            Results.open(folder / "audit").tables().items()
        ):  # raises if one is gone or differs
            assert {Path(file).name for file in files} in [set(each) for each in out[name]], (
                "a version that the log had"
            )
    return out


def _table(folder: Path, name: str) -> Path:
    return folder / "audit" / "tables" / name


def _logged(folder: Path, name: str) -> Iterator[str]:
    for uri in DeltaTable(str(_table(folder, name))).file_uris():
        assert Path(uri).is_file(), "what the log names is there"
        yield Path(uri).name


def _plain(rows: list[tuple[Any, ...]]) -> list[str]:
    """Rows in one order, and in the words of one engine."""
    return sorted(repr(tuple(_cell(cell) for cell in row)) for row in rows)


def _cell(cell: Any) -> Any:
    if isinstance(cell, bytearray):
        return bytes(cell)
    if hasattr(cell, "tolist"):
        return cell.tolist()
    return cell.isoformat()[:19].replace(" ", "T") if hasattr(cell, "isoformat") else cell


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.slow
@pytest.mark.spark
def test_a_kill_after_any_step_leaves_one_state_in_every_engine(
    spark: SparkContext, states: dict[str, dict[Files, Path]]
) -> None:
    assert {len(known) for known in states.values()} <= {
        1,
        2,
    }, "the state before the run, or that after it"
    assert len(states["block_measures"]) == 2
    session = SparkSession(spark)
    session.conf.set("spark.sql.session.timeZone", "UTC")
    for name, known in states.items():
        places = {
            file: _table(folder, name) / file for files, folder in known.items() for file in files
        }
        read = session.read.parquet(*[spark_path(f"file://{place}") for place in places.values()])
        kinds = {kind for _, kind in read.dtypes if "int" in kind or "decimal" in kind}
        assert kinds <= {"bigint", "array<bigint>"}
        by_spark = _rows(read.select("*", "_metadata.file_name").toArrow())
        for files, folder in known.items():
            log = DeltaTable(str(_table(folder, name)))
            by_delta = log.to_pyarrow_table()
            by_polars = pl.read_delta(str(_table(folder, name))).to_arrow()
            by_duckdb = (
                duckdb.connect()
                .from_parquet([str(places[file]) for file in sorted(files)])
                .fetchall()
            )
            assert _plain(_rows(by_delta)) == _plain(_rows(by_polars)) == _plain(by_duckdb), name
            assert _plain(_rows(by_delta)) == _plain(
                [row[:-1] for row in by_spark if row[-1] in files]
            ), name
            words = [
                each.map(repr).value_counts().to_dict()
                for each in (log.to_pandas(), by_delta.to_pandas())
            ]
            assert words[0] == words[1], name


def test_a_reader_of_an_older_version_finds_its_files_until_they_expire(
    grown: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(grown, tmp_path / "audited")
    before = DeltaTable(str(_table(folder, "block_measures")))
    count = before.to_pyarrow_table().num_rows
    _audit(folder)
    assert before.to_pyarrow_table().num_rows == count
    assert DeltaTable(str(_table(folder, "chains")), version=0).to_pyarrow_table().num_rows
    _audit(folder, retain=timedelta(0))
    for name in RESULT_TABLES:
        assert {path.name for path in _table(folder, name).glob("*.parquet")} == set(
            _logged(folder, name)
        )


def test_a_log_that_another_engine_went_on_with_is_continued(grown: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(grown, tmp_path / "audited")
    _audit(folder)
    place = str(_table(folder, "block_measures"))
    rows = _plain(_rows(DeltaTable(place).to_pyarrow_table()))
    DeltaTable(place).delete("number = 1")
    version = DeltaTable(place).version()
    assert _plain(_rows(DeltaTable(place).to_pyarrow_table())) != rows
    written = set(_logged(folder, "block_measures"))
    _audit(folder)
    found = DeltaTable(place)
    assert (found.version(), _plain(_rows(found.to_pyarrow_table()))) == (version + 1, rows)
    assert written.isdisjoint(_logged(folder, "block_measures"))
    assert all((_table(folder, "block_measures") / name).is_file() for name in written), (
        "they stay for a time"
    )
    _audit(folder)
    assert DeltaTable(place).version() == version + 1


def test_a_ledger_that_is_gone_leaves_the_log(grown: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(grown, tmp_path / "audited")
    (folder / "audit" / "ledger.json").unlink()
    _audit(folder)
    assert DeltaTable(str(_table(folder, "block_measures"))).version() == 1


FOREIGN = {
    "a version that is missing": ({"commitInfo": {}}, 7, "version 1 is missing"),
    "a later protocol": (
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7}},
        1,
        "needs version 3 of the protocol",
    ),
    "partitions": (
        {"metaData": {"schemaString": '{"fields": []}', "partitionColumns": ["chain"]}},
        1,
        "it has partitions",
    ),
    "no action": ({"add": 7}, 1, "00000000000000000001.json is not a version of a Delta log"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_log_that_cannot_be_continued_is_refused_and_left_alone(
    grown: Path, tmp_path: Path, name: str
) -> None:
    action, version, words = FOREIGN[name]
    folder = shutil.copytree(grown, tmp_path / "audited")
    (folder / "audit" / "ledger.json").unlink()
    log = _table(folder, "waste") / LOG
    (log / f"{version:020d}.json").write_text(json.dumps(action) + "\n")
    before = {path.name: path.read_bytes() for path in log.iterdir()}
    with pytest.raises(AuditFailed, match=words) as failure:
        _audit(folder)
    assert failure.value.exit_code == 4
    assert {path.name: path.read_bytes() for path in log.iterdir()} == before


def test_a_table_without_rows_has_a_file_that_every_engine_reads(grown: Path) -> None:
    result = Results.open(grown / "audit")
    for name in ("proof_parts", "read_errors"):
        (path,) = [str(grown / "audit" / each) for each in result.tables()[name]]
        assert (
            pl.read_parquet(path).height
            == pq.read_table(path).num_rows
            == len(pd.read_parquet(path))
            == 0
        )
        assert duckdb.connect().from_parquet(path).fetchall() == []
        assert DeltaTable(str(_table(grown, name))).to_pyarrow_table().num_rows == 0
        assert ask(grown / "audit", f"SELECT COUNT(*) FROM {name}").rows == [(0,)]  # noqa: S608  # names of our own


def test_the_log_says_which_values_a_file_has(grown: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(grown, tmp_path / "audited")
    _audit(folder)
    for name in RESULT_TABLES:
        actions = pa.table(
            DeltaTable(str(_table(folder, name))).get_add_actions(flatten=True)
        ).to_pylist()
        for action in actions:
            rows = pq.read_table(_table(folder, name) / action["path"])
            for column in (each for each in BOUNDED if each in rows.column_names and rows.num_rows):
                values = [value for value in rows.column(column).to_pylist() if value is not None]
                stated = action.get(f"min.{column}"), action.get(f"max.{column}")
                assert stated == (min(values, default=None), max(values, default=None)), (
                    name,
                    column,
                )
                assert action[f"null_count.{column}"] == rows.num_rows - len(values)
    seen = DeltaTable(str(_table(folder, "block_measures"))).to_pyarrow_dataset()
    assert list(seen.get_fragments(filter=pc.field("chain") == 7)) == [], (
        "no file has it, so none is read"
    )


@pytest.mark.spark
def test_an_audit_in_a_users_session_leaves_nothing_behind(
    spark: SparkContext, grown: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(grown, tmp_path / "audited")
    session = SparkSession(spark)
    spark.setJobGroup("the user's", "what the user does")
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "77")
    try:
        audit(folder / "history", folder / "audit", engine="spark")
        kept = {
            name: spark.getLocalProperty(f"spark.{name}")
            for name in ("jobGroup.id", "job.description")
        }
        assert kept == {"jobGroup.id": "the user's", "job.description": "what the user does"}
        assert session.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == "77"
        register(session, Results.open(folder / "audit"))
        assert session.sql("SELECT COUNT(*) FROM block_measures").collect()[0][0] > 0
    finally:
        session.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
        for name in ("spark.jobGroup.id", "spark.job.description"):
            spark.setLocalProperty(name, None)  # type: ignore[arg-type]  # None takes it away


@pytest.mark.spark
def test_the_name_of_a_folder_decides_nothing_in_spark(
    spark: SparkContext, grown: Path, tmp_path: Path
) -> None:
    session = SparkSession(spark)
    for name in ("a*", "network=x,{a,b}", "ü 空 '\" [b]\nc?"):
        folder = shutil.copytree(grown, tmp_path / name / "audited")
        shutil.copytree(grown, tmp_path / "abc" / "audited", dirs_exist_ok=True)
        register(session, Results.open(folder / "audit"))
        rows = session.sql(BY_CHAIN).collect()
        assert [tuple(row) for row in rows] == ask(grown / "audit", BY_CHAIN).rows


BY_CHAIN = "SELECT chain, COUNT(*) FROM block_measures GROUP BY chain ORDER BY chain"


def test_spark_connect_is_refused_in_one_line(
    grown: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(grown, tmp_path / "audited")
    with pytest.raises(AuditFailed, match="Spark Connect cannot run units") as failure:
        audit(folder / "history", folder / "audit", master="sc://127.0.0.1:15002")
    assert failure.value.exit_code == 2
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:15002")
    with pytest.raises(AuditFailed, match="unset SPARK_REMOTE") as failure:
        audit(folder / "history", folder / "audit", engine="spark")
    assert failure.value.exit_code == 4

"""Questions to an audit's tables, the same in three engines; few files, and a log of versions
(AU-15).
"""

import json
import re
import shutil
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable
from pyspark import SparkContext
from pyspark.sql import SparkSession
from support.spark_audit.audits import add_junk, all_rows, drop_a_node, flip, growing, write_history

from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.primitives.pubsub import node_cost
from pubsub_emulator.spark_audit.audit import ledger
from pubsub_emulator.spark_audit.audit.run import AuditFailed, AuditResult, audit
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.manifest import HISTORY_TABLES
from pubsub_emulator.spark_audit.history.reader import History
from pubsub_emulator.spark_audit.history.storage import open_store
from pubsub_emulator.spark_audit.judge.results import RESULT_TABLES, ResultError
from pubsub_emulator.spark_audit.real_proofs.relay_proofs import import_relay_proofs
from pubsub_emulator.spark_audit.spark.session import register
from pubsub_emulator.spark_audit.tables import delta, pack, parts
from pubsub_emulator.spark_audit.tables.ask import AskError, ask, local_tables
from pubsub_emulator.spark_audit.tables.delta import CHECKPOINT_EVERY, DeltaError

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "questions.md").read_text(encoding="utf-8")
QUESTIONS = re.findall(r"^## (\d+\. .*?)$.*?```sql\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> AuditResult:
    """Blocks that were taken and refused, and real proofs."""
    path = tmp_path_factory.mktemp("questions") / "history"
    write_history(path, 12, subscribers=2, cheats={3: drop_a_node, 6: add_junk})
    import_relay_proofs([ROOT / "examples" / "mainnet"], path)
    return audit(path, path.with_name("audit"), engine="python")


def _plain(rows: list[tuple[Any, ...]]) -> list[list[Any]]:
    return [[_value(cell) for cell in row] for row in rows]


def _value(cell: Any) -> Any:
    if isinstance(cell, bytearray | memoryview):
        return bytes(cell)
    if isinstance(cell, Decimal | float):
        return round(float(cell), 6)
    return cell


def test_au15_the_page_has_ten_questions() -> None:
    assert [title.partition(".")[0] for title, _ in QUESTIONS] == [
        str(number) for number in range(1, 11)
    ]


@pytest.fixture(scope="module")
def session(spark: SparkContext, asked: AuditResult) -> SparkSession:
    made = SparkSession(spark)
    register(made, asked.results)
    return made


@pytest.mark.spark
@pytest.mark.parametrize(("title", "question"), QUESTIONS, ids=[title for title, _ in QUESTIONS])
def test_au15_three_engines_give_one_answer(
    title: str, question: str, asked: AuditResult, session: SparkSession
) -> None:
    del title
    told = ask(asked.out, question)
    assert told.rows
    by_duckdb = _plain(told.rows)
    by_spark = _plain([tuple(row) for row in session.sql(question).collect()])
    with local_tables(asked.out) as files:
        tables = {name: pl.scan_parquet(paths) for name, paths in files.items()}
        by_polars = _plain(pl.SQLContext(tables, eager=True).execute(question).rows())
    # Engines order missing days differently; all else is in the order that the question asks for.
    assert sorted(by_duckdb, key=repr) == sorted(by_spark, key=repr) == sorted(by_polars, key=repr)


def test_au15_waste_is_what_the_blocks_say(asked: AuditResult) -> None:
    rows = list(asked.results.rows(schema.WASTE))
    measures = list(asked.results.rows(schema.BLOCK_MEASURES))
    refused = [row for row in measures if row["status"] == "rejected"]
    total = {
        cause: sum(row["bytes"] for row in rows if row["cause"] == cause)
        for cause in {r["cause"] for r in rows}
    }
    assert total["refused"] == sum(row["proof_bytes"] for row in refused) > 0
    assert total["junk"] == sum(row["junk_bytes"] for row in refused) == node_cost(len(b"junk!"))
    assert total["static"] == sum(row["static_bytes"] or 0 for row in measures)
    assert total["repeated"] == sum(row["repeated_bytes"] or 0 for row in measures)
    assert {row["day"] for row in rows if row["network"] == "dev"} == {date(2026, 1, 1)}


def test_au15_repeated_nodes_are_those_of_the_block_before(asked: AuditResult) -> None:
    history = History.open(asked.report["history"])
    nodes = {
        (row["network"], row["segment"], row["number"]): row["data"]
        for row in history.rows(history.files(schema.NODES), [])
    }
    before: dict[tuple[str, int, int], set[int]] = {}
    wanted: dict[tuple[str, int, int], int] = {}
    for row in sorted(
        history.rows(history.files(schema.BLOCKS), []), key=lambda row: row["position"]
    ):
        if row["status"] == "rejected":
            continue
        place = row["network"], row["chain"], row["segment"]
        again = before.get(place, set()) & set(row["proof"])
        wanted[row["network"], row["chain"], row["position"]] = sum(
            node_cost(len(nodes[row["network"], row["segment"], number])) for number in again
        )
        before[place] = set(row["proof"])
    found = {
        (row["network"], row["chain"], row["position"]): row["repeated_bytes"]
        for row in asked.results.rows(schema.BLOCK_MEASURES)
        if row["repeated_bytes"] is not None
    }
    assert found == wanted
    assert sum(found.values()) > 0


def test_au15_every_integer_of_an_audit_is_signed_and_has_a_delta_type() -> None:
    for table in RESULT_TABLES.values():
        for column in table.wider.columns:
            assert column.type not in {schema.U32, schema.U64}, (table.name, column.name)
        delta._metadata(f"tables/{table.name}", table.doc, pack.published_schema(table))


@pytest.mark.parametrize("unpacked", [1, 4_000, 1 << 30])
def test_au17_another_segment_leaves_full_parts_alone_and_small_ones_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unpacked: int
) -> None:
    """Whatever the parts' size, the tables hold the rows of a single run, and their log says the
    same.
    """
    monkeypatch.setattr(pack, "UNPACKED", unpacked)
    monkeypatch.setattr(parts, "MOST_SMALL", 3)
    monkeypatch.setattr(ledger, "PAGE", 3)
    history, out = tmp_path / "history", tmp_path / "out"
    before: set[str] = set()
    for at in growing(history, 12, cheats={5: drop_a_node}):
        if at % 2 and at > 3:
            result = audit(history, out, engine="python", retain=timedelta(0))
            names = set(result.report["tables"]["block_measures"])
            if unpacked == 1:
                assert before <= names, "each part is full, and none is written again"
            else:
                assert len(names) <= 4 + (unpacked == 4_000) * 8
            before = names
    grown = audit(history, out, engine="python", retain=timedelta(0))
    whole = audit(history, tmp_path / "whole", engine="python")
    assert (grown.digest, all_rows(grown)) == (whole.digest, all_rows(whole))
    for name in RESULT_TABLES:
        found = DeltaTable(str(out / "tables" / name)).file_uris()
        assert {Path(path).name for path in found} == {
            path.name for path in (out / "tables" / name).glob("*.parquet")
        }


def test_au15_versions_up_to_a_checkpoint_need_not_be_there(tmp_path: Path) -> None:
    table, folder = RESULT_TABLES["chains"], "tables/chains"
    store = open_store(tmp_path)
    tables = parts.Tables(store, retain=-60_000)
    for turn in range(2 * CHECKPOINT_EVERY + 2):
        rows = table.arrow([{**_CHAIN, "chain": turn}])
        tables.drop(tables.sources(replaced=True), replaced=True)
        tables.add("chains", f"summary/{turn}", rows, replaced=True)
        tables.flush()
        tables.log()
    assert DeltaTable(str(tmp_path / folder)).version() == 2 * CHECKPOINT_EVERY + 1
    assert len(list((tmp_path / folder / "_delta_log").glob("*.json"))) <= 2 * CHECKPOINT_EVERY
    assert not (tmp_path / folder / "_delta_log" / f"{0:020d}.json").exists()


_CHAIN = {
    "network": "dev",
    "status": "verified",
    "reasons": [],
    **dict.fromkeys(("segments", "complete", "candidates", "judged", "proof_bytes"), 1),
    "end_number": None,
    "end": None,
}


def test_au11_a_table_that_somebody_else_changed_is_not_asked(tmp_path: Path) -> None:
    first = audit(write_history(tmp_path / "history", 3), tmp_path / "audit", engine="python")
    (part,) = first.report["tables"]["block_measures"]
    (tmp_path / "audit" / part).write_bytes(b"short")
    with pytest.raises(ResultError, match="was changed after it was written"):
        ask(tmp_path / "audit", "SELECT * FROM block_measures")
    with pytest.raises(DeltaError, match="somebody else writes to it"):
        delta.log_table(
            first.store,
            "tables/waste",
            "",
            schema=pack.published_schema(schema.WASTE),
            version=0,
            before=[],
            now=[],
            time=0,
        )


def test_au15_a_question_from_the_command_line(asked: AuditResult) -> None:
    run = CliRunner().invoke(pubsub, ["sql", str(asked.out), "SELECT 1000 AS id"])
    assert ("1000" in run.output, "1,000" in run.output) == (True, False), "an id as it is typed"
    run = CliRunner().invoke(
        pubsub, ["sql", str(asked.out), "SELECT chain, day FROM waste LIMIT 1"]
    )
    assert run.exit_code == 0
    assert "1 row" in run.output
    question = "SELECT block, block_time FROM block_measures WHERE chain = 2000 LIMIT 1"
    document = json.loads(
        CliRunner().invoke(pubsub, ["sql", str(asked.out), question, "--json"]).stdout
    )
    assert document["columns"] == ["block", "block_time"]
    assert document["rows"][0][0].startswith("0x")
    assert document["rows"][0][1].startswith("2026-01-01T00:00:")
    with pytest.raises(
        AskError, match=r'Referenced column "nope" was not found.*; the tables are block_measures'
    ):
        ask(asked.out, "SELECT nope")


@pytest.mark.parametrize(
    "statement",
    [
        "COPY (SELECT 1) TO '{file}'",
        "EXPORT DATABASE '{file}'",
        "ATTACH '{file}' AS other",
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM '{file}'",
        "SELECT * FROM glob('{folder}/*')",
        "INSTALL httpfs",
        "LOAD '{file}'",
        "SET enable_external_access = true",
        "SET allowed_paths = ['{file}']",
        "RESET lock_configuration",
    ],
)
def test_a_question_reads_and_writes_nothing_but_the_tables(
    asked: AuditResult, tmp_path: Path, statement: str
) -> None:
    file = tmp_path / "other.csv"
    file.write_text("secret", encoding="utf-8")
    with pytest.raises(AskError) as refused:
        ask(asked.out, statement.format(file=file, folder=tmp_path))
    assert "\n" not in str(refused.value)
    assert file.read_text(encoding="utf-8") == "secret"
    assert list(tmp_path.iterdir()) == [file]


def test_unsafe_lifts_the_limits_of_a_question(asked: AuditResult, tmp_path: Path) -> None:
    file = tmp_path / "other.csv"
    done = CliRunner().invoke(
        pubsub, ["sql", str(asked.out), f"COPY (SELECT 7 AS a) TO '{file}'", "--unsafe"]
    )
    assert done.exit_code == 0, done.output
    assert file.read_text(encoding="utf-8").split() == ["a", "7"]
    query = f"SELECT * FROM '{file}'"  # noqa: S608  # the name of our own file
    assert ask(asked.out, query, unsafe=True).rows == [(7,)]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("", "the SQL is empty"),
        ("  ;\n", "the SQL is empty"),
        ("-- nothing", "the SQL is empty"),
        ("SELECT 1; SELECT 2", "the SQL has 2 statements"),
    ],
)
def test_one_statement_is_answered(asked: AuditResult, question: str, said: str) -> None:
    with pytest.raises(AskError, match=f"^{said}; give exactly one$"):
        ask(asked.out, question)


def test_null_is_shown_as_null(asked: AuditResult) -> None:
    shown = CliRunner().invoke(pubsub, ["sql", str(asked.out), "SELECT NULL AS a, 'x' AS b"])
    assert "NULL" in shown.output
    nested = "SELECT [NULL, 1] AS a, {'x': NULL, 'y': ['NULL', NULL]} AS b"
    shown = CliRunner().invoke(pubsub, ["sql", str(asked.out), nested])
    assert "[NULL, 1]" in shown.output
    assert "{'x': NULL, 'y': ['NULL', NULL]}" in shown.output
    assert "None" not in shown.output


def test_tables_whose_path_looks_like_a_pattern_are_read(
    asked: AuditResult, tmp_path: Path
) -> None:
    place = shutil.copytree(asked.out, tmp_path / "it's [a] *?")
    assert ask(place, "SELECT count(*) FROM chains").rows[0][0] == len(asked.chains)


# SQL over a history: its tables as the manifests name them, each file compared first


@pytest.fixture
def history(tmp_path: Path) -> Path:
    return write_history(tmp_path / "run" / "history", 4)


def test_every_table_of_a_history_can_be_asked(history: Path) -> None:
    opened = History.open(history)
    for name, table in HISTORY_TABLES.items():
        rows = len(list(opened.rows(opened.files(table), [])))
        assert ask(history, f"SELECT count(*) FROM {name}").rows == [(rows,)]  # noqa: S608  # names of our own
    assert ask(history, "SELECT count(DISTINCT chain) FROM blocks").rows == [(3,)]


def test_what_waits_for_an_audit_is_named(history: Path) -> None:
    with pytest.raises(
        AskError, match=r"waste.*the tables are .*blocks.*`pubsub audit` makes .*waste"
    ):
        ask(history, "SELECT * FROM waste")


def test_a_file_that_is_not_as_it_was_written_is_not_read(history: Path) -> None:
    [entry, *_] = History.open(history).files(HISTORY_TABLES["blocks"])
    flip(history / entry.path, entry.row_groups[0].offset)
    with pytest.raises(AskError, match=entry.path):
        ask(history, "SELECT 1")


def test_folders_around_a_history_and_histories_for_audits_are_recognised(history: Path) -> None:
    with pytest.raises(AuditFailed, match="do you mean the folder `history` in it"):
        audit(history.parent, history.parent / "out", engine="python")
    with pytest.raises(
        ResultError, match=r"no run_report\.json; do you mean the folder `history` in it\?$"
    ):
        ask(history.parent, "SELECT 1")


def test_simulated_blocks_have_days_of_2026(asked: AuditResult) -> None:
    sql = (
        "SELECT number, block_time, day FROM block_measures WHERE status = 'included'"
        " AND chain = 2000 ORDER BY number"
    )
    rows = ask(asked.out, sql).rows
    times: list[Any] = [time for _, time, _ in rows]
    assert {day for _, _, day in rows} == {date(2026, 1, 1)}
    assert min(after - before for before, after in pairwise(times)) >= timedelta(seconds=6)

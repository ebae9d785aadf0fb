"""Every table states its grain and its key, and has an example query that runs."""

import json
from pathlib import Path

import pytest
from support.spark_audit.audits import add_junk, drop_a_node, flip, write_history

from pubsub_emulator.spark_audit.audit.ledger import LEDGER
from pubsub_emulator.spark_audit.audit.run import AuditResult, audit
from pubsub_emulator.spark_audit.history.manifest import COMMITS, sealed, unsealed
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.schema import OF_AUDIT, OF_HISTORY, READ_ERRORS, Table
from pubsub_emulator.spark_audit.judge.results import REPORT, ResultError
from pubsub_emulator.spark_audit.real_proofs.relay_proofs import import_relay_proofs
from pubsub_emulator.spark_audit.tables.ask import AskError, ask

MAINNET = Path(__file__).resolve().parents[3] / "examples" / "mainnet"
EVERY = [pytest.param(table, id=table.name) for table in (*OF_HISTORY, *OF_AUDIT)]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By table, a history or an audit that has it.

    The history has blocks of a network and real proofs. When it was audited, one of its files was
    damaged.
    """
    folder = tmp_path_factory.mktemp("documented")
    history = folder / "history"
    write_history(history, 12, subscribers=2, cheats={3: drop_a_node, 6: add_junk})
    import_relay_proofs([MAINNET], history)
    damaged = next(history.glob("deliveries/**/*.parquet"))
    whole = damaged.read_bytes()
    flip(damaged, len(whole) // 3)
    assert audit(history, folder / "audit", engine="python").read_errors
    damaged.write_bytes(whole)
    return {
        **{table.name: history for table in OF_HISTORY},
        **{table.name: folder / "audit" for table in OF_AUDIT},
    }


@pytest.mark.parametrize("table", EVERY)
def test_an_example_query_runs(table: Table, places: dict[str, Path]) -> None:
    assert table.doc.startswith("One row per ")
    assert table.name in table.example
    found = ask(places[table.name], table.example)
    # The authors of this history were not told to cheat by a strategy.
    assert found.rows or table.name == "truth"


@pytest.mark.parametrize("table", EVERY)
def test_the_primary_key_is_unique(table: Table, places: dict[str, Path]) -> None:
    key = ", ".join(table.primary_key)
    sql = f"SELECT {key}, COUNT(*) FROM {table.name} GROUP BY {key} HAVING COUNT(*) > 1"  # noqa: S608  # names of our own
    assert ask(places[table.name], sql).rows == []


@pytest.mark.parametrize("sql", ["SELECT * FROM quarantine", "SELECT vouched FROM block_measures"])
def test_old_names_are_unknown(sql: str, places: dict[str, Path]) -> None:
    with pytest.raises(AskError, match=r"(does not exist|not found)"):
        ask(places["findings"], sql)


def test_an_output_with_old_names_is_refused_and_then_replaced(tmp_path: Path) -> None:
    history = write_history(tmp_path / "history", 6, segment_length=2)
    out = tmp_path / "audit"
    first = audit(history, out, engine="python")
    report = json.loads((out / REPORT).read_text())
    report["tables"]["quarantine"] = report["tables"].pop("read_errors")
    (out / REPORT).write_text(json.dumps(report))
    (out / "tables" / "read_errors").rename(out / "tables" / "quarantine")
    body = unsealed((out / LEDGER).read_bytes())
    (out / LEDGER).write_bytes(sealed({**body, "format": body["format"] - 1, "networks": {}}))
    with pytest.raises(ResultError, match="an audit of an earlier version; `pubsub audit` brings"):
        ask(out, "SELECT 1")
    again = audit(history, out, engine="python")
    assert (again.digest, again.units_judged) == (first.digest, first.units_judged)
    assert not (out / "tables" / "quarantine").exists()
    assert ask(out, "SELECT COUNT(*) FROM read_errors").rows == [(0,)]


def test_an_earlier_ledger_still_tells_what_is_gone_of_a_history(tmp_path: Path) -> None:
    history = write_history(tmp_path / "history", 6, segment_length=2)
    out = tmp_path / "audit"
    audit(history, out, engine="python")
    body = unsealed((out / LEDGER).read_bytes())
    (out / LEDGER).write_bytes(sealed({**body, "format": body["format"] - 1, "networks": {}}))
    max((history / COMMITS).iterdir()).unlink()
    found = audit(history, out, engine="python")
    assert any("an earlier audit has read" in row["error"] for row in _unread(found))


def _unread(result: AuditResult) -> list[Row]:
    return list(result.results.rows(READ_ERRORS))

"""SQL over a history: its tables as the manifests name them, each file compared first; other places are named."""

from pathlib import Path

import pytest
from support.audits import write_history

from pubsub_emulator.spark_audit.audit.run import AuditFailed, audit
from pubsub_emulator.spark_audit.history.manifest import HISTORY_TABLES
from pubsub_emulator.spark_audit.history.reader import History
from pubsub_emulator.spark_audit.judge.results import ResultError
from pubsub_emulator.spark_audit.tables.ask import AskError, ask


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
    with pytest.raises(AskError, match=r"waste.*the tables are .*blocks.*`pubsub audit` makes .*waste"):
        ask(history, "SELECT * FROM waste")


def test_a_file_that_is_not_as_it_was_written_is_not_read(history: Path) -> None:
    [entry, *_] = History.open(history).files(HISTORY_TABLES["blocks"])
    data = bytearray((history / entry.path).read_bytes())
    data[entry.row_groups[0].offset] ^= 1
    (history / entry.path).write_bytes(data)
    with pytest.raises(AskError, match=entry.path):
        ask(history, "SELECT 1")


def test_a_folder_around_a_history_and_a_history_for_an_audit_are_told(history: Path) -> None:
    with pytest.raises(AuditFailed, match="do you mean the folder `history` in it"):
        audit(history.parent, history.parent / "out", engine="python")
    with pytest.raises(ResultError, match=r"no run_report\.json; do you mean the folder `history` in it\?$"):
        ask(history.parent, "SELECT 1")

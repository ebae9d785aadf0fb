"""Chains keep their names from where they are made to the tables and the report (AU-15)."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from support.plumbing.command import TINY
from support.spark_audit.audits import SUBSCRIBER, drop_a_node, write_history

from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.spark_audit.audit.run import audit
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.names import (
    MOST_LETTERS,
    names_path,
    read_names,
    showable,
    write_names,
)
from pubsub_emulator.spark_audit.history.storage import open_store
from pubsub_emulator.spark_audit.report.page import write_report
from pubsub_emulator.spark_audit.tables.ask import ask

PUBLISHER = 1000
EVIL = "<script>alert(1)</script>"
QUESTION = "SELECT chain, name FROM chains ORDER BY chain"


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """A history that names no chain."""
    return write_history(tmp_path / "history", 6, subscribers=2)


def _name(history: Path, names: dict[int, str]) -> None:
    write_names(open_store(history), "dev", names)


def test_au15_a_scenarios_names_are_in_tables_and_report(tmp_path: Path) -> None:
    scenario, out = tmp_path / "named.toml", tmp_path / "audit"
    scenario.write_text(
        TINY.replace("para = 3000", 'para = 3000\nname = "the reader"'), encoding="utf-8"
    )
    ran = CliRunner().invoke(pubsub, ["run", str(scenario), "--out", str(tmp_path / "run")])
    assert ran.exit_code == 0, ran.output
    arguments = [
        "audit",
        str(tmp_path / "run" / "history"),
        "--out",
        str(out),
        "--engine",
        "python",
        "--report",
    ]
    audited = CliRunner().invoke(pubsub, arguments)
    assert "tiny 3000 the reader" in audited.output
    assert ask(out, QUESTION).rows == [(1000, None), (3000, "the reader")]
    assert "the reader" in (out / "report" / "report.html").read_text(encoding="utf-8")


def test_au15_an_imported_proofs_chain_keeps_its_name(tmp_path: Path) -> None:
    real, out = tmp_path / "real", tmp_path / "audit"
    proof = Path(__file__).parents[3] / "examples" / "mainnet" / "moonbeam-11728459.json"
    told = json.loads(proof.read_bytes())["chain"]
    assert (
        CliRunner()
        .invoke(pubsub, ["import-relay-proofs", str(proof), "--out", str(real)])
        .exit_code
        == 0
    )
    audit(real, out, engine="python")
    assert ask(out, "SELECT name FROM chains").rows == [(told,)]


def test_au15_a_name_is_in_no_digest(history: Path, tmp_path: Path) -> None:
    before = audit(history, tmp_path / "audit", engine="python")
    _name(history, {SUBSCRIBER: "first"})
    after = audit(history, tmp_path / "audit", engine="python")
    assert (after.digest, after.head, after.units_judged) == (before.digest, before.head, 0)
    assert [row["name"] for row in after.chains if row["chain"] == SUBSCRIBER] == ["first"]
    assert (SUBSCRIBER, "first") in ask(tmp_path / "audit", QUESTION).rows


def test_au5_a_damaged_name_file_is_a_read_error_for_itself_only(
    history: Path, tmp_path: Path
) -> None:
    path = history / names_path("dev")
    path.parent.mkdir()
    path.write_bytes(b"{")
    result = audit(history, tmp_path / "audit", engine="python")
    assert result.exit_code == 3
    assert {row["status"] for row in result.chains} == {"verified"}
    assert [row["path"] for row in result.results.rows(schema.READ_ERRORS)] == [names_path("dev")]
    path.unlink()
    assert audit(history, tmp_path / "audit", engine="python").exit_code == 0


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'{"format": 2, "chains": {}}',
        b'{"format": 1, "chains": {"x": "a"}}',
        b'{"format": 1, "chains": {"2000": "turned \\u202e round"}}',
    ],
)
def test_names_from_a_damaged_file_are_not_believed(tmp_path: Path, body: bytes) -> None:
    path = tmp_path / names_path("dev")
    path.parent.mkdir()
    path.write_bytes(body)
    names, fault = read_names(open_store(tmp_path), "dev")
    assert not names
    assert fault is not None


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("oracle", "oracle"),
        ("two\nlines\x1b[31m", "two lines [31m"),
        ("turned \u202e round", "turned round"),
        ("x" * 500, "x" * MOST_LETTERS),
        (" \t\x00 ", None),
        (EVIL, EVIL),
    ],
)
def test_a_name_of_a_stranger_is_bounded_and_printable(told: str, shown: str | None) -> None:
    assert showable(told) == shown


def test_a_name_is_text_in_the_report(history: Path, tmp_path: Path) -> None:
    _name(history, {SUBSCRIBER: EVIL, PUBLISHER: EVIL})
    arguments = [
        "audit",
        str(history),
        "--out",
        str(tmp_path / "audit"),
        "--engine",
        "python",
        "--report",
    ]
    assert CliRunner().invoke(pubsub, arguments).exit_code == 0
    page = (tmp_path / "audit" / "report" / "report.html").read_text(encoding="utf-8")
    assert EVIL not in page
    assert "&lt;script&gt;alert(1)" in page
    drawn = [
        ET.parse(path).getroot()  # noqa: S314  # our own charts
        for path in (tmp_path / "audit" / "report" / "charts").glob("*.svg")
    ]
    assert drawn
    assert not [each for root in drawn for each in root.iter() if each.tag.endswith("script")]


def test_the_report_names_chains_and_publishers_wherever_it_shows_them(tmp_path: Path) -> None:
    history = write_history(tmp_path / "history", 6, subscribers=2, cheats={3: drop_a_node})
    _name(history, {SUBSCRIBER: "the reader", PUBLISHER: "the source"})
    audit(history, tmp_path / "audit", engine="python")
    (tmp_path / "out").mkdir()
    write_report(tmp_path / "audit", tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert f"publisher {PUBLISHER} the source" in page
    assert f">dev {PUBLISHER}, " not in page, "the list of chains"
    charts = {
        path.name: path.read_text(encoding="utf-8")
        for path in (tmp_path / "out" / "charts").glob("*.svg")
    }
    for name in ("savings.svg", "collators.svg"):
        assert "the reader" in charts[name]
    trees = [text for name, text in charts.items() if name.endswith("-bytes.svg")]
    assert any(
        f"dev {SUBSCRIBER} the reader" in text and f"{PUBLISHER} the source" in text
        for text in trees
    )


def test_names_that_are_there_stay(history: Path) -> None:
    _name(history, {SUBSCRIBER: "first"})
    _name(history, {SUBSCRIBER: "second", SUBSCRIBER + 1: "third"})
    assert read_names(open_store(history), "dev") == (
        {SUBSCRIBER: "first", SUBSCRIBER + 1: "third"},
        None,
    )

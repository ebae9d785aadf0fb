"""What is noted of one segment of one chain: its result, faults and findings, and waste."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from support.spark_audit.forged_report import block

from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.manifest import FileEntry
from pubsub_emulator.spark_audit.history.reader import Fault
from pubsub_emulator.spark_audit.judge.evidence import figures_evidence, seam_evidence
from pubsub_emulator.spark_audit.judge.findings import SEAM_MISMATCH, Severity, finding_id
from pubsub_emulator.spark_audit.judge.notes import (
    ChainResult,
    Judged,
    Place,
    Receipt,
    contradictions,
    evidence_error,
    short,
)
from pubsub_emulator.spark_audit.judge.task import ChainFiles
from pubsub_emulator.spark_audit.judge.waste import waste_rows

REACHED = Header(Hash(bytes(32)), 7, Hash(b"\1" * 32), Hash(b"\2" * 32), ())
SEAM = seam_evidence(REACHED, b"\1" + REACHED.encode()[1:], REACHED.state_root)
FIGURES = figures_evidence({"blocks": 3})


def _files(table: schema.Table) -> tuple[FileEntry, ...]:
    return (FileEntry(table.name, 1, f"{table.name}.parquet", "dev", 5, 3, 1, 1, "", ()),)


PLACE = Place(
    "dev",
    5,
    3,
    files=ChainFiles(
        5,
        checkpoints=_files(schema.CHECKPOINTS),
        blocks=_files(schema.BLOCKS),
        deliveries=_files(schema.DELIVERIES),
        next_position=None,
    ),
    changes=_files(schema.AUTHORITIES),
)
FAULT = PLACE.fault("broken")


def _result() -> ChainResult:
    return ChainResult(Receipt("dev", 5, 3))


def test_a_result_is_whole_until_something_cannot_be_read() -> None:
    out = _result()
    out.add(Judged(measures={"n": 1}, publishers=[{"p": 1}, {"p": 2}], parts=[{"q": 1}]))
    out.add(Judged(measures={"n": 2}, notes=[{"code": "X"}]))
    assert (out.whole, out.transient, out.receipt.judged) == (True, False, 2)
    assert out.block_measures == [{"n": 1}, {"n": 2}]
    assert out.publisher_measures == [{"p": 1}, {"p": 2}]
    assert (out.proof_parts, out.findings) == ([{"q": 1}], [{"code": "X"}])
    out.add(Judged(whole=False))
    assert (out.whole, out.receipt.judged) == (False, 2)
    out.add(Judged())
    assert not out.whole


@pytest.mark.parametrize("order", [(False, True), (True, False)])
def test_one_read_that_may_succeed_later_makes_a_result_transient(order: tuple[bool, ...]) -> None:
    out = _result()
    out.note([replace(FAULT, transient=transient) for transient in order])
    assert (out.transient, out.whole) == (True, False)
    out.note([FAULT])
    assert out.transient
    assert [row["error"] for row in out.read_errors] == ["broken"] * 3
    other = _result()
    other.note([FAULT])
    assert (other.transient, other.whole) == (False, False)


@pytest.mark.parametrize(
    ("table", "path"),
    [
        (schema.BLOCKS, "blocks.parquet"),
        (schema.CHECKPOINTS, "checkpoints.parquet"),
        (schema.DELIVERIES, "deliveries.parquet"),
        (schema.AUTHORITIES, "authorities.parquet"),
        (schema.FINDINGS, "blocks.parquet"),
    ],
)
def test_a_fault_names_the_segments_file_of_its_table(table: schema.Table, path: str) -> None:
    fault = PLACE.fault("broken", 9, table=table)
    assert fault == Fault(path, "broken", network="dev", chain=5, segment=3, position=9)


def test_a_fault_without_files_names_where_they_would_be() -> None:
    empty = replace(PLACE, files=ChainFiles(5, (), (), (), next_position=None), changes=())
    for table in (schema.BLOCKS, schema.DELIVERIES):
        assert empty.fault("", table=table).path == "blocks/network=dev/chain=5"
    assert empty.fault("", table=schema.CHECKPOINTS).path == "checkpoints/network=dev/chain=5"


def test_a_finding_is_made_only_if_its_evidence_shows_it() -> None:
    row = {"segment": 3, "position": 9, "number": 7, "block": b"\7" * 32, "collator": None}
    found: Any = PLACE.finding(row, "Any", Severity.INFO, evidence=FIGURES, detail="words")
    subject = (9).to_bytes(8, "little") + row["block"]  # type: ignore[operator]  # bytes
    assert found["id"] == finding_id("dev", 5, "Any", subject)
    assert {name: found[name] for name in row} == row
    assert (found["network"], found["chain"], found["severity"]) == ("dev", 5, "info")
    assert (found["code"], found["detail"], found["evidence"]) == ("Any", "words", FIGURES)
    nameless: Any = PLACE.finding(
        row | {"block": None}, "Any", Severity.INFO, evidence=FIGURES, detail=""
    )
    assert nameless["id"] == finding_id("dev", 5, "Any", (9).to_bytes(8, "little"))
    fault = PLACE.finding(row, "Other", Severity.ERROR, evidence=SEAM, detail="words")
    assert isinstance(fault, Fault)
    assert fault.position == 9
    assert fault.error == (
        "the evidence of a finding Other does not show it: it shows SeamMismatch"
    )


def test_evidence_is_an_error_unless_it_shows_the_code_or_is_figures() -> None:
    good = seam_evidence(REACHED, REACHED.encode(), REACHED.state_root)
    assert evidence_error("Any", FIGURES) is None
    assert evidence_error(SEAM_MISMATCH, SEAM) is None
    assert evidence_error("Other", SEAM) == "it shows SeamMismatch"
    assert evidence_error(SEAM_MISMATCH, good) == "it shows a valid block"
    assert "does not decode" in (evidence_error("Any", b"") or "")


def test_each_column_that_contradicts_the_block_is_a_fault() -> None:
    row = {"position": 9, "a": 1, "b": b"\1", "c": "x"}
    faults = contradictions(PLACE, row, {"a": 1, "b": b"\2", "c": "y\nz"})
    assert [fault.error for fault in faults] == [
        "the row says b 01, its block says 02",
        "the row says c x, its block says y",
    ]
    assert [fault.position for fault in faults] == [9, 9]
    assert (short(""), short("a" * 300), short(None)) == ("", "a" * 200, "None")


def test_waste_is_summed_by_day_and_cause() -> None:
    monday, tuesday = date(2026, 3, 2), date(2026, 3, 3)
    figures = {"network": "dev", "chain": 5, "segment": 3, "status": "included"}
    rows = [
        block(1, **figures, day=monday, repeated_bytes=5, static_bytes=7, cache_charges=0),
        block(2, **figures, day=monday, repeated_bytes=6, static_bytes=0, cache_charges=None),
        block(3, **{**figures, "status": "rejected"}, day=tuesday, proof_bytes=50, junk_bytes=8),
        block(4, **{**figures, "status": "rejected"}, day=tuesday, proof_bytes=9, junk_bytes=None),
    ]
    place = {"network": "dev", "chain": 5, "segment": 3}
    parts = [
        {**place, "position": 2, "kind": "unread", "bytes": 3},
        {**place, "position": 2, "kind": "read", "bytes": 100},
        {**place, "position": 7, "kind": "unread", "bytes": 4},
    ]
    found = waste_rows(rows, parts)
    assert all({name: row[name] for name in place} == place for row in found)
    assert [(row["day"], row["cause"], row["blocks"], row["bytes"]) for row in found] == [
        (monday, "repeated", 2, 11),
        (monday, "static", 1, 7),
        (tuesday, "refused", 2, 59),
        (tuesday, "junk", 1, 8),
        (monday, "unread", 1, 3),
        (None, "unread", 1, 4),
    ]

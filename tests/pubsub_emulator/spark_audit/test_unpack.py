"""Parquet that unpacks to far more than it is: refused before it is unpacked, by every command that
reads Parquet.
"""

import json
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.spark_audit.audits import write_history
from support.spark_audit.history_forgery import load, store

from pubsub_emulator.spark_audit.audit.run import audit
from pubsub_emulator.spark_audit.history import commit, unpack
from pubsub_emulator.spark_audit.history.manifest import HISTORY_TABLES, CommitError, digest_of
from pubsub_emulator.spark_audit.history.migrate import _write
from pubsub_emulator.spark_audit.history.reader import Fault, History
from pubsub_emulator.spark_audit.history.schema import Table
from pubsub_emulator.spark_audit.history.unpack import (
    MOST_UNPACKED,
    MOST_VALUES,
    TooLarge,
    batches,
    check_group,
    read_group,
)

MEBIBYTE = 1_048_576
LONG = "x" * (MEBIBYTE // 2)
ROWS = 3000
"""Rows that refer to one long value: together three halves of what a row group may take."""

assert ROWS * len(LONG) > MOST_UNPACKED


def _file(table: pa.Table, **options: object) -> tuple[pq.ParquetFile, BytesIO]:
    file = BytesIO()
    pq.write_table(table, file, compression="zstd", row_group_size=1 << 40, **options)
    return pq.ParquetFile(file), file


def _often(value: object, count: int, kind: pa.DataType) -> pa.Array:
    return pa.DictionaryArray.from_arrays(
        pa.array([0] * count, pa.int32()), pa.array([value], kind)
    )


NESTED = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"a": pa.array([LONG] * 9)}),
        pa.table({"a": pa.array([[{"key": "k", "value": LONG.encode()}] * 9], NESTED)}),
        pa.table({"a": pa.array([bytes(4096)] * 2000, pa.binary(4096))}),
        pa.table({"a": pa.array([0] * 1_000_000)}),
        pa.table({"a": pa.array([[None] * 500_000] * 2, pa.list_(pa.int64()))}),
    ],
    ids=["texts", "texts in lists", "hashes", "numbers", "nothing in lists"],
)
@pytest.mark.parametrize(
    "options",
    [
        pytest.param(
            {},
            id="defaults",
        ),
        pytest.param(
            {"use_dictionary": False},
            id="no dictionary",
        ),
        pytest.param(
            {"data_page_version": "2.0"},
            id="page version 2",
        ),
        pytest.param(
            {"compression": "gzip"},
            id="gzip",
        ),
    ],
)
def test_a_row_group_that_unpacks_to_more_than_the_limit_is_refused(
    table: pa.Table, options: dict[str, object]
) -> None:
    file = BytesIO()
    pq.write_table(table, file, row_group_size=1 << 40, **{"compression": "zstd", **options})
    parquet = pq.ParquetFile(file)
    assert len(file.getvalue()) < table.nbytes / 4
    check_group(parquet, file, 0, limit=3 * table.nbytes)
    assert read_group(parquet, file, 0) == table
    with pytest.raises(TooLarge, match="unpacks to more"):
        check_group(parquet, file, 0, limit=table.nbytes // 2)


def test_more_values_than_a_row_group_may_have_are_refused() -> None:
    parquet, file = _file(pa.table({"a": pa.nulls(MOST_VALUES + 1, pa.int8())}))
    assert len(file.getvalue()) < 32_768
    with pytest.raises(TooLarge, match="more than 8388608 values"):
        check_group(parquet, file, 0)
    parquet, file = _file(pa.table({"a": pa.nulls(MOST_VALUES, pa.int8())}))
    check_group(parquet, file, 0)


def test_row_groups_of_one_file_are_added_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_history(tmp_path / "first", 3)
    segments = load(tmp_path / "first")
    place = next(place for place in segments[0].parts if place[0] == "blocks")
    row = {**segments[0].parts[place][0], "detail": LONG}
    segments[0].parts[place] = [{**row, "position": at} for at in range(9)]
    store(segments, tmp_path / "history", rows_per_group=3)
    history = History.open(tmp_path / "history")
    file = next(each for each in history.files(HISTORY_TABLES["blocks"], chain=place[1]))
    sizes = [group.nbytes for group in history.read(file)]
    parquet = pq.ParquetFile(tmp_path / "history" / file.path)
    with (tmp_path / "history" / file.path).open("rb") as source:
        values = check_group(parquet, source, 0)
    for limit, most, faults in (
        ("MOST_UNPACKED", 2 * sum(sizes), 0),
        ("MOST_UNPACKED", 5 * sizes[0] // 2, 1),
        ("MOST_FILE_VALUES", 5 * values // 2, 1),
    ):
        monkeypatch.setattr(unpack, limit, most)
        found = [unit.error for unit in history.read(file) if isinstance(unit, Fault)]
        assert len(found) == faults, found
        assert all("row group 2 and those before it" in error for error in found)
    with pytest.raises(CommitError, match="was not migrated"):
        _write(history.root, history.commits[0], None)


def test_the_size_that_a_footer_states_is_not_what_counts() -> None:
    large, file = _file(pa.table({"a": pa.array([LONG] * 9)}))
    column = large.metadata.row_group(0).column(0)
    with pytest.raises(TooLarge):
        check_group(large, file, 0, limit=column.total_uncompressed_size)


@pytest.mark.parametrize("damage", [b"\x00", b"\xff" * 9, b"\x19"])
def test_pages_that_cannot_be_told_are_refused(damage: bytes) -> None:
    parquet, file = _file(pa.table({"a": pa.array([1, 2, 3])}))
    file.seek(4)
    file.write(damage)
    with pytest.raises(TooLarge, match="a page"):
        check_group(parquet, file, 0)


def test_strangers_rows_come_in_small_batches_and_too_long_fields_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = pa.table({"a": pa.array([LONG] * 600), "b": pa.array(range(600))})
    parquet, file = _file(table)
    found = list(batches(parquet, file, ["a", "b"]))
    assert sum(batch.num_rows for batch in found) == 600
    assert max(batch.nbytes for batch in found) <= 64 * MEBIBYTE + MEBIBYTE
    monkeypatch.setattr(unpack, "MOST_FIELD", len(LONG) - 1)
    with pytest.raises(TooLarge, match="a page of more than"):
        list(batches(parquet, file, ["a"]))


# Every command that reads Parquet, in a process of its own, whose memory is measured

PEAK = 1024
"""MiB that a command may take at its peak: no bomb in it is unpacked, and an answer of SQL has at
most 256.
"""


@pytest.fixture(scope="module")
def bombs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history, an audit and an export, each with a table that unpacks to more than it may."""
    folder = tmp_path_factory.mktemp("bombs")
    for out in ("audit", "good.audit"):
        audit(write_history(folder / out / "history", 3), folder / out, engine="python")
    segments = load(folder / "audit" / "history")
    place = next(place for place in segments[0].parts if place[0] == "blocks")
    many = [{**segments[0].parts[place][0], "position": at} for at in range(ROWS)]
    segments[0].parts = {
        at: rows for at, rows in segments[0].parts.items() if at[0] != "blocks"
    } | {place: many}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commit, "_encode", _encoded)
        store(segments, folder / "history")
    _plant(folder / "audit")
    (folder / "export").mkdir()
    head, call = dict.fromkeys(EXPORT[:7], "0"), {"section": "x", "method": "x", "params": "x"}
    for name, row in (
        ("blocks", {**head, "number": "9"}),
        ("extrinsics", {"block_number": "9", **call}),
    ):
        (folder / "export" / f"{name}.parquet").write_bytes(
            _bomb(pa.Table.from_pylist([row] * ROWS), tuple(row)[1])
        )
    return folder


EXPORT = (
    "number",
    "hash",
    "parent_hash",
    "state_root",
    "block_time",
    "relay_block_number",
    "relay_state_root",
)


ENCODE = commit._encode


def _encoded(table: Table, parts: list[list[dict[str, Any]]], rows_per_group: int) -> bytes:
    if table is HISTORY_TABLES["blocks"] and len(parts[0]) == ROWS:
        return _bomb(table.arrow(parts[0]), "detail")
    return ENCODE(table, parts, rows_per_group)


def _bomb(table: pa.Table, column: str | None) -> bytes:
    """A file with one row group, in which a column of texts has the long one in each row."""
    file = BytesIO()
    if column is not None:
        table = table.set_column(
            table.column_names.index(column), column, _often(LONG, table.num_rows, pa.string())
        )
    with pq.ParquetWriter(
        file, table.schema, compression="zstd", store_schema=column is None
    ) as writer:
        writer.write_table(table, row_group_size=1 << 40)
        writer.add_key_value_metadata(table.schema.metadata or {})
    return file.getvalue()


def _plant(out: Path) -> None:
    """Put a bomb in the place of an audit's chains, and its name into the report."""
    report = json.loads((out / "run_report.json").read_bytes())
    rows = pq.read_table(out / report["tables"]["chains"][0]).slice(0, 1)
    data = _bomb(pa.concat_tables([rows] * ROWS), "status")
    path = f"tables/chains/part-{digest_of(data)[:32]}.parquet"
    (out / path).write_bytes(data)
    report["tables"]["chains"] = [path]
    (out / "run_report.json").write_text(json.dumps(report))


COMMANDS = {
    "audit": (
        ["audit", "history", "--out", "out", "--engine", "python"],
        3,
        "unpacks to more than 1073741824 bytes",
    ),
    "inspect a history": (["inspect", "history"], 3, "unpacks to more than"),
    "inspect a file": (["inspect", "BLOCKS"], 0, "3,000"),
    "report": (["report", "audit", "--out", "report.html"], 2, "unpacks to more than"),
    "sql": (["sql", "audit", "SELECT SUM(LENGTH(status)) FROM chains"], 2, "unpacks to more than"),
    "sql, an answer": (
        ["sql", "good.audit", "SELECT repeat('x', 1048576) FROM range(300)"],
        2,
        "has more than",
    ),
    "fetch": (
        [
            "fetch",
            "--export",
            "export",
            *["--network", "x", "--chain", "2", "--from", "9", "--to", "9", "--out", "f"],
        ],
        2,
        "no set_validation_data",
    ),
}
"""Commands on the bombs, with their exit codes and some of their words."""


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_takes_little_memory_for_a_bomb(bombs: Path, name: str) -> None:
    line, code, words = COMMANDS[name]
    files = (bombs / "history").glob("blocks/*/*.parquet")
    blocks = max(files, key=lambda file: pq.read_metadata(file).num_rows).relative_to(bombs)
    program = (
        "from pathlib import Path\nfrom pubsub_emulator.cli.main import main\ntry:\n   "
        " main()\nfinally:\n    print('peak',"
        " Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0])\n"
    )
    arguments = [str(blocks) if word == "BLOCKS" else word for word in line]
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=bombs,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, words in ended.stdout + ended.stderr) == (code, True), (
        ended.stdout + ended.stderr
    )
    assert int(ended.stdout.rpartition("peak ")[2]) >> 10 < PEAK

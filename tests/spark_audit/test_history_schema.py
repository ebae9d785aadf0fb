"""The tables say what they are, take only rows that fit, and come back from disk as they went (AU tables)."""

from datetime import UTC
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.canonical import digest_rows, encode_row
from pubsub_emulator.spark_audit.history.commit import HistoryPart, encode_parquet, write_commit
from pubsub_emulator.spark_audit.history.manifest import HISTORY_TABLES, digest_of
from pubsub_emulator.spark_audit.history.reader import read_file
from pubsub_emulator.spark_audit.history.schema import SchemaError, Table
from pubsub_emulator.spark_audit.history.storage import open_store
from pubsub_emulator.spark_audit.judge.results import RESULT_TABLES, read_rows

TABLES = {**HISTORY_TABLES, **RESULT_TABLES}


def _values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_boolean(kind):
        return st.booleans()
    if pa.types.is_integer(kind):
        signed = pa.types.is_signed_integer(kind)
        return st.integers(-(2**63) if signed else 0, 2 ** (kind.bit_width - signed) - 1)
    if pa.types.is_timestamp(kind):
        return st.datetimes(timezones=st.just(UTC)).map(lambda time: time.replace(microsecond=0))
    if pa.types.is_date(kind):
        return st.dates()
    if pa.types.is_string(kind):
        return st.text(max_size=8)
    if pa.types.is_fixed_size_binary(kind):
        return st.binary(min_size=kind.byte_width, max_size=kind.byte_width)
    if pa.types.is_binary(kind):
        return st.binary(max_size=12)
    if pa.types.is_list(kind):
        return st.lists(_values(kind.value_type), max_size=3)
    return st.fixed_dictionaries({field.name: _values(field.type) for field in kind})


def _rows(table: Table) -> st.SearchStrategy[list[dict[str, Any]]]:
    columns = {
        column.name: st.none() | _values(column.type) if column.nullable else _values(column.type)
        for column in table.columns
    }
    return st.lists(
        st.fixed_dictionaries(columns), max_size=4, unique_by=lambda row: repr([row[name] for name in table.key])
    )


@pytest.mark.parametrize("name", sorted(TABLES))
@settings(max_examples=8)
@given(data=st.data())
def test_rows_come_back_from_a_file_as_they_were_written(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    table = TABLES[name]
    rows = data.draw(_rows(table))
    store = open_store(tmp_path_factory.mktemp("rows"))
    content = encode_parquet(table, rows)
    path = f"rows-{digest_of(content)[:32]}.parquet"
    store.put(path, content)
    back = list(read_rows(store, path, table))

    def ordered(some: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return sorted(some, key=lambda row: encode_row(table, row))

    assert ordered(back) == ordered(rows)
    assert digest_rows(table, back) == digest_rows(table, rows)


@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_table_tells_name_version_and_the_meaning_of_every_column(name: str) -> None:
    table = TABLES[name]
    metadata = table.schema.metadata
    assert metadata == {b"pubsub.table": name.encode(), b"pubsub.version": str(table.version).encode()}
    assert all(field.metadata[b"doc"] for field in table.schema)
    assert set(table.key) | set(table.partitions) <= {column.name for column in table.columns}


def test_no_column_of_a_history_is_unsigned_and_of_64_bits() -> None:
    for table in HISTORY_TABLES.values():
        assert "uint64" not in str(table.wider.schema.types), table.name


def _read(folder: Path, table: Table, rows: list[dict[str, Any]], chain: int | None = None) -> list[Any]:
    """What is read of rows that were written as `table`."""
    commit = write_commit(folder, "dev", 0, [HistoryPart(table, rows, "p", chain)], {})
    return list(read_file(folder, commit.files[0]))


def test_a_file_with_unsigned_integers_is_read_as_if_they_had_a_sign(tmp_path: Path) -> None:
    former = schema.TRUTH.former
    assert former is not None
    place = {"network": "dev", "chain": 1, "segment": 0, "number": 1, "block": bytes(32), "collator": None}
    said = {"strategy": "any", "verdict": "BadSeal", "due": ["BadSeal"]}
    slots = [None, 7, 2**63 - 1, 2**63, 2**64 - 1]
    rows = [{**place, **said, "position": at, "slot": slot} for at, slot in enumerate(slots)]
    (found,) = _read(tmp_path / "old", former, rows)
    assert found.schema.equals(schema.TRUTH.schema)
    assert found.column("slot").to_pylist() == [None, 7, 2**63 - 1, None, None]
    (fault,) = _read(tmp_path / "far", former, [{**rows[0], "position": 2**63}])
    assert fault.error == "truth.position has a number beyond 63 bits"
    (fault,) = _read(tmp_path / "below", schema.TRUTH, [{**rows[0], "position": -1}])
    assert fault.error == "truth.position has a number below 0"


def test_no_two_tables_share_a_name_unless_they_are_one() -> None:
    for name in HISTORY_TABLES.keys() & RESULT_TABLES.keys():
        assert HISTORY_TABLES[name] is RESULT_TABLES[name]


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        (None, "without a name"),
        ({b"pubsub.table": b"nodes"}, "version without a name"),
        ({b"pubsub.table": b"blocks", b"pubsub.version": b"1"}, "this is table 'blocks', not nodes"),
        ({b"pubsub.table": b"nodes", b"pubsub.version": b"3"}, "version '3' is not version 2"),
    ],
)
def test_a_schema_of_another_table_or_version_is_refused(metadata: dict[bytes, bytes] | None, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        schema.NODES.check(schema.NODES.schema.with_metadata(metadata))


def test_a_schema_with_other_columns_is_refused() -> None:
    other = pa.schema([*schema.NODES.schema, pa.field("more", pa.int64())], metadata=schema.NODES.schema.metadata)
    with pytest.raises(SchemaError, match="columns are not those of nodes"):
        schema.NODES.check(other)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"data": None}, "no value"),
        ({"hash": b"short"}, "does not fit"),
        ({"segment": -1}, "does not fit"),
        ({"segment": "one"}, "does not fit"),
        ({"more": 1}, "lacks or does not know more"),
    ],
)
def test_a_row_that_does_not_fit_is_refused_before_anything_is_written(change: dict[str, Any], reason: str) -> None:
    row = {"network": "dev", "segment": 0, "number": 0, "hash": bytes(32), "data": b"", **change}
    with pytest.raises(SchemaError, match=reason):
        schema.NODES.arrow([row])


def test_files_are_zstd_compressed_and_carry_page_checksums(tmp_path: Any) -> None:
    path = tmp_path / "nodes.parquet"
    row = {"network": "dev", "segment": 0, "number": 0, "hash": bytes(32), "data": b"x"}
    path.write_bytes(encode_parquet(schema.NODES, [row]))
    assert pq.read_metadata(path).row_group(0).column(4).compression == "ZSTD"


@settings(max_examples=25)
@given(_rows(schema.QUARANTINE), _rows(schema.QUARANTINE))
def test_the_digest_is_of_the_set_of_rows_and_of_nothing_else(
    some: list[dict[str, Any]], others: list[dict[str, Any]]
) -> None:
    """AU-4: order does not matter, a difference in any value does."""
    table = schema.QUARANTINE
    assert digest_rows(table, some) == digest_rows(table, reversed(some))
    encoded = [sorted(encode_row(table, row) for row in rows) for rows in (some, others)]
    assert (digest_rows(table, some) == digest_rows(table, others)) == (encoded[0] == encoded[1])


def test_equal_rows_of_different_tables_have_different_digests() -> None:
    assert digest_rows(schema.NODES, []) != digest_rows(schema.BLOCKS, [])

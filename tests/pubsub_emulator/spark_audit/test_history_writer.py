"""Tables say what they are, rows come back as they went, and a history has whole segments or
nothing of them (AU-6).
"""

from datetime import UTC
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.plumbing.examples import scaled
from support.plumbing.processes import python
from support.spark_audit.audits import SUBSCRIBER, small_network, write_history

from pubsub_emulator.emulator.network.records import BlockRecord, CheckpointRecord
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.canonical import digest_rows, encode_row
from pubsub_emulator.spark_audit.history.commit import HistoryPart, encode_parquet, write_commit
from pubsub_emulator.spark_audit.history.manifest import HISTORY_TABLES, CommitError, digest_of
from pubsub_emulator.spark_audit.history.reader import Fault, History, read_file
from pubsub_emulator.spark_audit.history.rows import candidate_of, state_of
from pubsub_emulator.spark_audit.history.schema import SchemaError, Table
from pubsub_emulator.spark_audit.history.storage import open_store
from pubsub_emulator.spark_audit.history.store import HistoryWriter
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
        st.fixed_dictionaries(columns),
        max_size=4,
        unique_by=lambda row: repr([row[name] for name in table.key]),
    )


@pytest.mark.parametrize("name", sorted(TABLES))
@settings(max_examples=scaled(8))
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
    assert metadata == {
        b"pubsub.table": name.encode(),
        b"pubsub.version": str(table.version).encode(),
    }
    assert all(field.metadata[b"doc"] for field in table.schema)
    assert set(table.key) | set(table.partitions) <= {column.name for column in table.columns}


def test_no_column_of_a_history_is_unsigned_and_of_64_bits() -> None:
    for table in HISTORY_TABLES.values():
        assert "uint64" not in str(table.wider.schema.types), table.name


def _read(
    folder: Path, table: Table, rows: list[dict[str, Any]], chain: int | None = None
) -> list[Any]:
    """What is read of rows that were written as `table`."""
    commit = write_commit(folder, "dev", 0, [HistoryPart(table, rows, "p", chain)], {})
    return list(read_file(folder, commit.files[0]))


def test_a_file_with_unsigned_integers_is_read_as_signed(tmp_path: Path) -> None:
    former = schema.TRUTH.former
    assert former is not None
    place = {
        "network": "dev",
        "chain": 1,
        "segment": 0,
        "number": 1,
        "block": bytes(32),
        "collator": None,
    }
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


def test_no_two_tables_share_a_name() -> None:
    """A folder can hold both a history and results, and a file's table is found by its name."""
    names = [table.name for table in (*schema.OF_HISTORY, *schema.OF_AUDIT)]
    assert sorted(names) == sorted(TABLES)


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        (None, "without a name"),
        ({b"pubsub.table": b"nodes"}, "version without a name"),
        (
            {b"pubsub.table": b"blocks", b"pubsub.version": b"1"},
            "this is table 'blocks', not nodes",
        ),
        ({b"pubsub.table": b"nodes", b"pubsub.version": b"3"}, "version '3' is not version 2"),
    ],
)
def test_a_schema_of_another_table_or_version_is_refused(
    metadata: dict[bytes, bytes] | None, reason: str
) -> None:
    with pytest.raises(SchemaError, match=reason):
        schema.NODES.check(schema.NODES.schema.with_metadata(metadata))


def test_a_schema_with_other_columns_is_refused() -> None:
    other = pa.schema(
        [*schema.NODES.schema, pa.field("more", pa.int64())], metadata=schema.NODES.schema.metadata
    )
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
def test_a_row_that_does_not_fit_is_refused_before_anything_is_written(
    change: dict[str, Any], reason: str
) -> None:
    row = {"network": "dev", "segment": 0, "number": 0, "hash": bytes(32), "data": b"", **change}
    with pytest.raises(SchemaError, match=reason):
        schema.NODES.arrow([row])


def test_files_are_zstd_compressed_and_carry_page_checksums(tmp_path: Any) -> None:
    path = tmp_path / "nodes.parquet"
    row = {"network": "dev", "segment": 0, "number": 0, "hash": bytes(32), "data": b"x"}
    path.write_bytes(encode_parquet(schema.NODES, [row]))
    assert pq.read_metadata(path).row_group(0).column(4).compression == "ZSTD"


@settings(max_examples=scaled(25))
@given(_rows(schema.READ_ERRORS), _rows(schema.READ_ERRORS))
def test_the_digest_is_of_the_set_of_rows_and_of_nothing_else(
    some: list[dict[str, Any]], others: list[dict[str, Any]]
) -> None:
    """AU-4: order does not matter, a difference in any value does."""
    table = schema.READ_ERRORS
    assert digest_rows(table, some) == digest_rows(table, reversed(some))
    encoded = [sorted(encode_row(table, row) for row in rows) for rows in (some, others)]
    assert (digest_rows(table, some) == digest_rows(table, others)) == (encoded[0] == encoded[1])


def test_equal_rows_of_different_tables_have_different_digests() -> None:
    assert digest_rows(schema.NODES, []) != digest_rows(schema.BLOCKS, [])


def _tables(path: Path) -> dict[str, list[dict[str, object]]]:
    history = History.open(path)
    faults: list[Fault] = list(history.faults)
    tables = (
        schema.RELAY_HEADERS,
        schema.BLOCKS,
        schema.NODES,
        schema.CHECKPOINTS,
        schema.DELIVERIES,
    )
    rows = {table.name: list(history.rows(history.files(table), faults)) for table in tables}
    assert not faults
    return rows


class _Tape(HistoryWriter):
    """A writer that keeps what it is told."""

    def __init__(self, path: Path, name: str) -> None:
        super().__init__(path, name)
        self.told: tuple[list[BlockRecord], list[CheckpointRecord]] = [], []

    def checkpoint(self, record: CheckpointRecord) -> None:
        self.told[1].append(record)
        super().checkpoint(record)

    def candidate(self, record: BlockRecord) -> None:
        self.told[0].append(record)
        super().candidate(record)


def test_every_candidate_and_state_can_be_rebuilt_byte_for_byte(tmp_path: Path) -> None:
    network = small_network(subscribers=2)
    with _Tape(tmp_path, "dev") as tape:
        network.observe(tape)
        for at in range(9):
            network.publish(1000, blake2_256(b"%d" % at), b"value" * at)  # type: ignore[arg-type]  # any 32 bytes
            network.step()
        network.finish()
    rows = _tables(tmp_path)
    nodes = {(row["segment"], row["number"]): row["data"] for row in rows["nodes"]}
    by_place = {(row["chain"], row["position"]): row for row in rows["blocks"]}
    positions: dict[int, int] = {}
    for record in tape.told[0]:
        position = positions.get(record.chain, 0)
        positions[record.chain] = position + 1
        row = by_place.pop((record.chain, position))
        mine = {
            number: data for (segment, number), data in nodes.items() if segment == row["segment"]
        }
        assert candidate_of(row, mine).encode() == record.candidate.encode()  # type: ignore[arg-type]
        assert (row["included_at"], row["slot_now"]) == (record.included_at, record.slot_now)
    assert not by_place
    stored = {(row["chain"], row["segment"]): row for row in rows["checkpoints"]}
    assert len(stored) == len(tape.told[1])
    for checkpoint in tape.told[1]:
        header, state = state_of(stored[checkpoint.chain, checkpoint.segment])
        assert (header, state.root()) == (checkpoint.header, checkpoint.state.root())


def test_equal_networks_write_equal_histories_to_the_byte(tmp_path: Path) -> None:
    """PS-90."""
    first, second = (write_history(tmp_path / name, 6) for name in ("first", "second"))

    def contents(root: Path) -> dict[str, bytes]:
        return {
            path.relative_to(root).as_posix(): path.read_bytes()
            for path in root.rglob("*")
            if path.is_file()
        }

    assert contents(first) == contents(second)


def test_each_segment_is_committed_when_the_next_one_starts(tmp_path: Path) -> None:
    network = small_network(segment_length=3)
    with HistoryWriter(tmp_path, "dev") as writer:
        network.observe(writer)
        for blocks, commits in ((3, 0), (1, 1), (2, 1), (1, 2)):
            network.step(blocks)
            assert len(writer.commits) == commits
        network.finish()
    assert [commit.segment for commit in History.open(tmp_path).commits] == [0, 1, 2]
    chains = {(row["chain"], row["segment"]) for row in _tables(tmp_path)["checkpoints"]}
    assert {segment for chain, segment in chains if chain == SUBSCRIBER} == {0, 1, 2, 3}


def test_a_writer_that_is_left_by_an_exception_keeps_whole_segments_only(tmp_path: Path) -> None:
    network = small_network(segment_length=3)

    def run() -> None:
        with HistoryWriter(tmp_path, "dev") as writer:
            network.observe(writer)
            network.step(5)
            raise RuntimeError("the network broke")

    with pytest.raises(RuntimeError, match="broke"):
        run()
    assert [commit.segment for commit in History.open(tmp_path).commits] == [0]


def test_a_network_is_not_written_over_itself(tmp_path: Path) -> None:
    write_history(tmp_path, 2)
    with pytest.raises(CommitError, match="already holds dev up to segment 0"):
        HistoryWriter(tmp_path, "dev")
    write_history(tmp_path, 2, name="other")
    assert {commit.network for commit in History.open(tmp_path).commits} == {"dev", "other"}


@pytest.mark.parametrize("name", ["", "..", "a/b", ".hidden", "with space"])
def test_a_network_name_that_could_leave_its_directory_is_refused(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(CommitError, match="name"):
        HistoryWriter(tmp_path, name)


def test_nodes_that_repeat_are_stored_once_a_segment(tmp_path: Path) -> None:
    rows = _tables(write_history(tmp_path, 8, subscribers=3))
    stored = [(row["segment"], row["hash"]) for row in rows["nodes"]]
    assert len(stored) == len(set(stored))
    references = sum(len(row["proof"]) for row in rows["blocks"])  # type: ignore[arg-type]
    assert len(stored) < references / 3


def _first_commit(path: Path) -> None:
    rows = [{"network": "dev", "segment": 0, "number": 0, "hash": bytes(32), "data": b"old"}]
    write_commit(path, "dev", 0, [HistoryPart(schema.NODES, rows, "old")], {})


_FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from pubsub_emulator.spark_audit.history import commit
from pubsub_emulator.spark_audit.history import schema
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
import random
noise = random.Random(1).randbytes
rows = [
    {"network": "dev", "segment": 1, "number": number, "hash": noise(32), "data": noise(500)}
    for number in range(300)
]
part = commit.HistoryPart(schema.NODES, rows, "new")
try:
    commit.write_commit(Path(sys.argv[1]), "dev", 1, [part], {})
except commit.CommitError as error:
    sys.exit(f"refused: {error}")
"""


def test_a_disk_without_room_leaves_the_history_as_it_was(tmp_path: Path) -> None:
    """The file size limit of the process stands in for the disk: writes fail as they do when it is
    full.
    """
    _first_commit(tmp_path)
    before = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*"))
    assert python("-c", _FULL_DISK, tmp_path, "20000").returncode == 1
    after = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*"))
    assert after == before
    assert [row["data"] for row in _tables(tmp_path)["nodes"]] == [b"old"]


def test_manifests_form_a_chain_with_one_head(tmp_path: Path) -> None:
    """AU-13: each manifest names the one before it, and the head follows from the last of each
    network.
    """
    write_history(tmp_path / "one", 6)
    opened = History.open(tmp_path / "one")
    assert opened.commits[0].previous is None
    assert [commit.previous for commit in opened.commits[1:]] == [
        commit.digest for commit in opened.commits[:-1]
    ]
    write_history(tmp_path / "same", 6)
    assert History.open(tmp_path / "same").head == opened.head
    write_history(tmp_path / "one", 2, name="other")
    assert History.open(tmp_path / "one").head != opened.head


def test_a_second_writer_of_a_segment_is_told(tmp_path: Path) -> None:
    """Its manifest does not stay, so that readers see one history."""
    rows = [{"network": "dev", "segment": 0, "number": 0, "hash": bytes(32), "data": b"new"}]
    _first_commit(tmp_path)
    with pytest.raises(CommitError, match="another writer added segment 0 of dev"):
        write_commit(tmp_path, "dev", 0, [HistoryPart(schema.NODES, rows, "new")], {}, None)
    opened = History.open(tmp_path)
    assert len(opened.commits) == 1
    assert opened.head is not None
    assert opened.faults == ()

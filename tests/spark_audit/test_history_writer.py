"""A history holds whole segments or nothing of them, whatever happens to its writer (AU-6)."""

from pathlib import Path

import pytest
from support.audits import SUBSCRIBER, small_network, write_history
from support.processes import python

from pubsub_emulator.emulator.network.records import BlockRecord, CheckpointRecord
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.commit import HistoryPart, write_commit
from pubsub_emulator.spark_audit.history.manifest import CommitError
from pubsub_emulator.spark_audit.history.reader import Fault, History
from pubsub_emulator.spark_audit.history.rows import candidate_of, state_of
from pubsub_emulator.spark_audit.history.store import HistoryWriter


def _tables(path: Path) -> dict[str, list[dict[str, object]]]:
    history = History.open(path)
    faults: list[Fault] = list(history.faults)
    tables = (schema.RELAY_HEADERS, schema.BLOCKS, schema.NODES, schema.CHECKPOINTS, schema.DELIVERIES)
    rows = {table.name: list(history.rows(history.files(table), faults)) for table in tables}
    assert not faults
    return rows


class _Tape:
    """An observer that keeps what it is told."""

    def __init__(self, writer: HistoryWriter) -> None:
        self.writer = writer
        self.candidates: list[BlockRecord] = []
        self.checkpoints: list[CheckpointRecord] = []
        self.relay_block = writer.relay_block
        self.authorities = writer.authorities
        self.subscriptions = writer.subscriptions

    def checkpoint(self, record: CheckpointRecord) -> None:
        self.checkpoints.append(record)
        self.writer.checkpoint(record)

    def candidate(self, record: BlockRecord) -> None:
        self.candidates.append(record)
        self.writer.candidate(record)


def test_every_candidate_and_state_can_be_rebuilt_byte_for_byte(tmp_path: Path) -> None:
    network = small_network(subscribers=2)
    with HistoryWriter(tmp_path, "dev") as writer:
        tape = _Tape(writer)
        network.observe(tape)
        for at in range(9):
            network.publish(1000, blake2_256(b"%d" % at), b"value" * at)  # type: ignore[arg-type]  # any 32 bytes
            network.step()
        network.finish()
    rows = _tables(tmp_path)
    nodes = {(row["segment"], row["number"]): row["data"] for row in rows["nodes"]}
    by_place = {(row["chain"], row["position"]): row for row in rows["blocks"]}
    positions: dict[int, int] = {}
    for record in tape.candidates:
        position = positions.get(record.chain, 0)
        positions[record.chain] = position + 1
        row = by_place.pop((record.chain, position))
        mine = {number: data for (segment, number), data in nodes.items() if segment == row["segment"]}
        assert candidate_of(row, mine).encode() == record.candidate.encode()  # type: ignore[arg-type]
        assert (row["included_at"], row["slot_now"]) == (record.included_at, record.slot_now)
    assert not by_place
    stored = {(row["chain"], row["segment"]): row for row in rows["checkpoints"]}
    assert len(stored) == len(tape.checkpoints)
    for checkpoint in tape.checkpoints:
        header, state = state_of(stored[checkpoint.chain, checkpoint.segment])
        assert (header, state.root()) == (checkpoint.header, checkpoint.state.root())


def test_equal_networks_write_equal_histories_to_the_byte(tmp_path: Path) -> None:
    """PS-90."""
    first, second = (write_history(tmp_path / name, 6) for name in ("first", "second"))

    def contents(root: Path) -> dict[str, bytes]:
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}

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
def test_a_network_name_that_could_leave_its_directory_is_refused(tmp_path: Path, name: str) -> None:
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
rows = [{"network": "dev", "segment": 1, "number": at, "hash": noise(32), "data": noise(500)} for at in range(300)]
try:
    commit.write_commit(Path(sys.argv[1]), "dev", 1, [commit.HistoryPart(schema.NODES, rows, "new")], {})
except commit.CommitError as error:
    sys.exit(f"refused: {error}")
"""


def test_a_disk_without_room_leaves_the_history_as_it_was(tmp_path: Path) -> None:
    """The file size limit of the process stands in for the disk: writes fail as they do when it is full."""
    _first_commit(tmp_path)
    before = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*"))
    assert python("-c", _FULL_DISK, tmp_path, "20000").returncode == 1
    after = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*"))
    assert after == before
    assert [row["data"] for row in _tables(tmp_path)["nodes"]] == [b"old"]


def test_manifests_form_a_chain_with_one_head(tmp_path: Path) -> None:
    """AU-13: each manifest names the one before it, and the head follows from the last of each network."""
    write_history(tmp_path / "one", 6)
    opened = History.open(tmp_path / "one")
    assert opened.commits[0].previous is None
    assert [commit.previous for commit in opened.commits[1:]] == [commit.digest for commit in opened.commits[:-1]]
    write_history(tmp_path / "same", 6)
    assert History.open(tmp_path / "same").head == opened.head
    write_history(tmp_path / "one", 2, name="other")
    assert History.open(tmp_path / "one").head != opened.head


def test_a_second_writer_of_a_segment_is_told(tmp_path: Path) -> None:
    """Both manifests stay, as both writers committed; the second is told, and readers see that two histories are in
    one."""
    rows = [{"network": "dev", "segment": 0, "number": 0, "hash": bytes(32), "data": b"new"}]
    _first_commit(tmp_path)
    with pytest.raises(CommitError, match="another writer added segment 0 of dev"):
        write_commit(tmp_path, "dev", 0, [HistoryPart(schema.NODES, rows, "new")], {}, None)
    opened = History.open(tmp_path)
    assert opened.head is None
    assert ["two writers" in fault.error for fault in opened.faults] == [True]

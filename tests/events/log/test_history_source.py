"""The log of a written history equals that of the observer (EV-4)."""

from pathlib import Path

import pytest
from support.event_networks import busy_network, run_busy

from pubsub_emulator.events.errors import SourceError
from pubsub_emulator.events.log.follow import copy_all
from pubsub_emulator.events.log.memory import MemoryStore
from pubsub_emulator.events.log.sources.history import history_blocks, history_networks
from pubsub_emulator.events.log.sources.network import NetworkLog
from pubsub_emulator.spark_audit.history.commit import CommitError
from pubsub_emulator.spark_audit.history.store import HistoryWriter


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, MemoryStore]:
    """A history of more than one segment, and the observer's log of the same network."""
    network, store = busy_network(), MemoryStore("net")
    with HistoryWriter(tmp_path / "history", "net") as writer, NetworkLog(network, store):
        network.observe(writer)
        run_busy(network, 110)
        network.finish()
    return tmp_path / "history", store


def test_ev_4_the_log_of_a_history_equals_the_observers(written: tuple[Path, MemoryStore]) -> None:
    root, observed = written
    read = MemoryStore("net")
    assert history_networks(root) == ["net"]
    assert copy_all(read, history_blocks(root, "net")) == 110
    assert read.read(0, 10**6).rows == observed.read(0, 10**6).rows
    assert (read.head().anchor, read.head().hash) == (observed.head().anchor, observed.head().hash)
    assert copy_all(read, history_blocks(root, "net")) == 0


def test_what_cannot_be_read_is_said_with_its_place(written: tuple[Path, MemoryStore]) -> None:
    root, _ = written
    with pytest.raises(SourceError, match="no events of 'other'"):
        list(history_blocks(root, "other"))
    with pytest.raises(CommitError, match="no history"):
        list(history_blocks(root / "nowhere", "net"))
    (first, *_) = sorted((root / "events").rglob("*.parquet"))
    data = bytearray(first.read_bytes())
    data[200] ^= 1
    first.write_bytes(bytes(data))
    with pytest.raises(SourceError, match=r"events/network=net/.*: the row group differs"):
        copy_all(MemoryStore("net"), history_blocks(root, "net"))
    first.unlink()
    with pytest.raises(SourceError, match="the file is missing"):
        copy_all(MemoryStore("net"), history_blocks(root, "net"))

"""The log of an emulated network, by its observer and of a written history; every event's fields
(EV-1, EV-3, EV-4).
"""

import random
from pathlib import Path

import pytest
from support.client.chain_metadata import metadata_of_chains
from support.events.event_networks import OTHER, busy_network, run_busy

from interchain_events.events import Chain, Field, Kind, MemoryStore
from interchain_events.events.errors import AnotherChain, NotTheNextBlock, SourceError
from interchain_events.events.log.sources.fields import fields_of, kind_of
from interchain_events.events.log.sources.history import history_blocks, history_networks
from interchain_events.events.log.sources.network import NetworkLog
from interchain_events.events.log.store import copy_all
from interchain_events.events.rows import event_id
from interchain_events.events.values import canonical
from pubsub_emulator.client.metadata import Enum, Metadata, parse_metadata
from pubsub_emulator.client.node import decode_events
from pubsub_emulator.emulator.runtimes import every_runtime
from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.runtime.framework.events import EventRecord, Finalization, encode_records
from pubsub_emulator.runtime.framework.pallet import Event
from pubsub_emulator.spark_audit.history.commit import CommitError
from pubsub_emulator.spark_audit.history.store import HistoryWriter


def test_ev_1_a_row_for_each_event_in_order() -> None:
    network, store = busy_network(), MemoryStore("net")
    told: list[tuple[int, int | None, Event]] = []
    with NetworkLog(network, store):
        for _ in range(6):
            network.publish(3000, OTHER, b"value")
            (step,) = network.step()
            told += [(step.number, None, event) for event in step.events]
            included = [record for record in step.records if record.outcome is not None]
            told += [
                (step.number, record.chain, each.event)
                for record in included
                for each in record.outcome.events
            ]
    rows = store.read(0, 10**6).rows
    assert [(row.anchor, row.chain, row.kind) for row in rows] == [
        (anchor, chain, f"{event.PALLET}.{type(event).__name__}") for anchor, chain, event in told
    ]
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    published = store.read(0, 100, Kind("Broadcaster.DataPublished")).rows
    assert published
    assert published[0].fields == {"publisher": 3000, "key": "0x" + OTHER.hex(), "value_size": 5}
    relay = network.relay.block(published[0].anchor)
    assert relay is not None
    assert published[0].id == event_id(relay.header.hash(), published[0][4])
    assert published[0].time == (1_000_000 + published[0].anchor) * 6_000
    delivered = store.read(0, 100, Kind("Subscriber.*")).rows
    assert {row.chain for row in delivered} == {2000}
    assert store.read(0, 100, Field("origin.Ump.Para", "=", 3000)).rows


def test_ev_4_the_same_network_again_adds_nothing() -> None:
    store = MemoryStore("net")
    for _ in range(2):
        network = busy_network()
        with NetworkLog(network, store):
            run_busy(network)
        head = store.head()
    assert head == store.head()
    assert head.anchor == 12
    assert len(store.read(0, 10**6, Chain(2000)).rows) > 0


def test_ev_3_a_restored_network_takes_its_events_back() -> None:
    network, store = busy_network(), MemoryStore("net")
    with NetworkLog(network, store) as log:
        network.step(5)
        moment = network.snapshot()
        network.step(4)
        log.flush()
        before = store.head()
        network.restore(moment)
        network.publish(1000, OTHER, b"otherwise")
        network.step(2)
    after = store.head()
    assert (before.anchor, before.epoch, after.anchor, after.epoch) == (9, 0, 7, 1)
    assert store.common(0) is not None


def test_another_networks_log_is_refused() -> None:
    store = MemoryStore("net")
    with NetworkLog(busy_network(), store):
        pass
    other = busy_network()
    other.step(300)  # block 0 is no longer kept: its parent says that it does not belong here
    with NetworkLog(busy_network("events"), store) as log:
        log._network.step(1)
    with pytest.raises(NotTheNextBlock), NetworkLog(other, store):
        other.step(1)
    from pubsub_emulator.emulator.network.network import Network  # noqa: PLC0415

    with pytest.raises(AnotherChain):
        NetworkLog(Network.of(publishers=[1500], subscribers={}), store)


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
    first, *_ = sorted((root / "events").rglob("*.parquet"))
    data = bytearray(first.read_bytes())
    data[200] ^= 1
    first.write_bytes(bytes(data))
    with pytest.raises(SourceError, match=r"events/network=net/.*: the row group differs"):
        copy_all(MemoryStore("net"), history_blocks(root, "net"))
    first.unlink()
    with pytest.raises(SourceError, match="the file is missing"):
        copy_all(MemoryStore("net"), history_blocks(root, "net"))


CHAINS = {name: parse_metadata(raw) for name, raw in metadata_of_chains().items()}
ASKED_FOR = ("DomeEvents", "Prism")
"""Pallets that a relay chain has only when it is asked for them: not in the vectors' metadata."""
EVENTS = [
    kind
    for pallet in sorted(every_runtime().pallets.values(), key=str)
    if pallet.name not in ASKED_FOR
    for _, kind in sorted(pallet.events.items())
]


def samples(kind: type[Event], count: int = 20) -> list[Event]:
    """Events from random bytes, those that decode."""
    draw = random.Random(kind.__qualname__)
    found: list[Event] = []
    for _ in range(20_000):
        reader = every_runtime().reader(
            bytes(draw.choice((0, 0, 1, 2, 101, draw.randrange(256))) for _ in range(400))
        )
        try:
            found.append(kind(*(codec.read(reader) for _, codec in kind.CODECS)))
        except (PubsubError, IndexError):
            continue
        if len(found) == count:
            break
    return found


def knows(metadata: Metadata, kind: type[Event]) -> bool:
    pallet = metadata.pallets.get(kind.PALLET.name)
    events = (
        metadata.types.get(pallet.events)
        if pallet is not None and pallet.events is not None
        else None
    )
    return isinstance(events, Enum) and kind.VARIANT in events.variants


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: f"{kind.PALLET}.{kind.__name__}")
def test_ev_4_fields_are_as_metadata_gives_them(kind: type[Event]) -> None:
    chains = [metadata for metadata in CHAINS.values() if knows(metadata, kind)]
    compared = 0
    for event in samples(kind):
        record = encode_records([EventRecord(Finalization(), event, ())])
        for metadata in chains:
            try:
                (decoded,) = decode_events(metadata, record)
            except ScaleError:  # a byte for which Rust has no variant
                continue
            compared += 1
            assert f"{decoded.pallet}.{decoded.name}" == kind_of(event)
            assert canonical(decoded.fields) == fields_of(event)
            assert list(decoded.fields) == list(fields_of(event))
    assert compared

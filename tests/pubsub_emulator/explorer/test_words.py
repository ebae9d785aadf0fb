"""Names, values, events and outcomes in front of people."""

from support.explorer.run_page import Explored

from pubsub_emulator.emulator.network import Network
from pubsub_emulator.explorer.changes import MOST_ROWS, ChangedRow, state_changes
from pubsub_emulator.explorer.words import (
    VERDICTS,
    DisplayNames,
    execution_words,
    preview,
    short,
    static_labels,
    ttl_words,
    with_names,
)
from pubsub_emulator.primitives.pubsub import Infinite, TimedOut, ValidFor, key_from_data
from pubsub_emulator.primitives.storage_keys import ACTIVE_CONFIG, hrmp_channel
from pubsub_emulator.primitives.types import Hash, ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.runtime.framework.static_keys import fixed_keys
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.storage import CacheInfo, LastDelivered
from pubsub_emulator.runtime.parachain.block import Verdict


def test_every_verdict_is_explained() -> None:
    assert set(VERDICTS) == set(Verdict)


def test_values_are_text_where_all_of_them_is_and_hashes_are_shortened() -> None:
    assert preview(b"7.42") == '"7.42"'
    assert preview(b"\x007.42") == "0x00372e3432"
    assert preview(b"") == "0x"
    assert preview(b"v" * 100, 4) == f'"{"v" * 8}"…'
    assert preview(bytes(100), 4) == "0x00000000…"
    assert short(bytes(range(32))) == "0x00010203…1e1f"
    assert short(b"\x01\x02") == "0x0102"


def test_keys_are_called_by_their_names_where_these_are_known() -> None:
    key = key_from_data(b"price")
    names = DisplayNames(keys={key: "price"})
    assert with_names(f"node at key {key.hex()}, lost", names) == "node at key price, lost"
    assert with_names(f"key {ACTIVE_CONFIG.hex()}", names) == "Configuration.ActiveConfig"
    first = fixed_keys(ParaId(3000))[0]
    assert with_names(f"key {first.hex()}", names) == "Babe.AuthorVrfRandomness"
    assert with_names(f"key {'ab' * 32} of {key.hex()}", names) == f"key {'ab' * 32} of {key.hex()}"


def test_lifetimes_are_said_in_blocks() -> None:
    assert ttl_words(Infinite()) == "never expires"
    assert ttl_words(ValidFor(1)) == "valid for 1 relay block"
    assert ttl_words(ValidFor(20)) == "valid for 20 relay blocks"
    assert ttl_words(TimedOut()) == "timed out"
    assert ttl_words(None) == ""


def test_every_static_key_has_a_name() -> None:
    keys = (*fixed_keys(ParaId(3000)), hrmp_channel(ParaId(1000), ParaId(3000)))
    labels = list(static_labels(keys).values())
    assert len(set(labels)) == len(keys)
    assert labels[0] == "Babe.AuthorVrfRandomness"
    assert "Configuration.ActiveConfig" in labels
    assert labels[-1] == "Hrmp.HrmpChannels 1000 → 3000"
    assert not any("no known" in label for label in labels)


def test_messages_say_how_they_ended_and_why() -> None:
    network = Network.of(publishers=[1000], subscribers={})
    key = key_from_data(b"key")
    network.publish(1000, key, b"v")
    network.step()
    network.publish(1000, key, b"v" * 3000)
    network.step()
    (done,) = network.relay.executions
    network.step()
    (failed,) = network.relay.executions
    names = DisplayNames({ParaId(1000): "prices"})
    assert execution_words(done, names).startswith("from 1000 prices: done, ")
    said = execution_words(failed, names)
    assert said.startswith("from 1000 prices: stopped, ")
    assert "instruction 0: " in said
    assert "ValueTooLong" in said


# What a block wrote, in words: nothing that differs goes untold.

ME, OTHER = ParaId(1000), ParaId(1001)
KEY = PubsubKey(b"k" * 32)
ROOT = Hash(b"r" * 32)


def written(*writes: object) -> State:
    storage = Storage(State())
    for write in writes:
        write(storage)  # type: ignore[operator]  # calls of items
    storage.commit()
    return storage.state


def test_maps_are_told_by_the_publishers_that_changed() -> None:
    before = written(lambda s: items.PROCESSED_ROOTS.put(s, {ME: ROOT, OTHER: ROOT}))
    after = written(lambda s: items.PROCESSED_ROOTS.put(s, {ME: ROOT}))
    assert state_changes(before, after, DisplayNames()) == [
        ChangedRow("Subscriber.ProcessedRoots", "1001", "0x72727272…7272", "")
    ]


def test_rows_are_told_in_words() -> None:
    after = written(
        lambda s: items.PROCESSING_CURSOR.put(s, (ME, KEY)),
        lambda s: items.LAST_DELIVERED.insert(
            s, ME, KEY, LastDelivered(ROOT, 7, RelayBlockNumber(3))
        ),
        lambda s: items.CACHE_INFO.insert(s, ME, CacheInfo(1, 2, 300)),
    )
    told = {
        change.item: change
        for change in state_changes(State(), after, DisplayNames(keys={KEY: "DOT/USD"}))
    }
    assert told["Subscriber.ProcessingCursor"].after == "1000, DOT/USD"
    assert told["Subscriber.LastDelivered"].where == "1000, DOT/USD"
    assert told["Subscriber.LastDelivered"].after == "entry 0x72727272…7272, ttl 7, inserted in 3"
    assert told["Subscriber.CacheInfo"].after == "generation 1: 2 nodes, 300 B"


def test_cached_nodes_are_counted_by_generation() -> None:
    def add(storage: Storage) -> None:
        for number in range(30):
            items.CACHED_TRIE_NODES.insert(storage, (ME, 4), Hash(bytes((number,)) * 32), b"node")

    after = written(add)
    assert state_changes(State(), after, DisplayNames()) == [
        ChangedRow("Subscriber.CachedTrieNodes", "1000, generation 4", "", "nodes added: 30")
    ]
    assert state_changes(after, State(), DisplayNames())[0].after == "nodes removed: 30"


def test_the_first_rows_of_an_item_are_shown_and_the_others_counted() -> None:
    def add(storage: Storage) -> None:
        for number in range(40):
            row = LastDelivered(ROOT, 0, RelayBlockNumber(1))
            items.LAST_DELIVERED.insert(storage, ME, PubsubKey(bytes((number,)) * 32), row)

    changes = state_changes(State(), written(add), DisplayNames())
    assert len(changes) == MOST_ROWS + 1
    assert changes[-1].after == f"{40 - MOST_ROWS} more"


def test_a_row_that_does_not_decode_is_shown_as_bytes() -> None:
    after = written(lambda s: s.put(items.PROCESSED_ROOTS.key, b"\xff\xff"))
    assert state_changes(State(), after, DisplayNames()) == [
        ChangedRow("Subscriber.ProcessedRoots", "", "", "0xffff")
    ]


def test_every_item_that_a_block_wrote_is_told(explored: Explored) -> None:
    for _, outcome, at in explored.accepted():
        before = explored.told.before[at]
        changes = state_changes(before, outcome.state, explored.names)
        assert not any(change.item.startswith("a key of") for change in changes)
        differing = {key[:32] for key, _, _ in before.top.differences(outcome.state.top)}
        assert len({change.item for change in changes}) == len(differing)

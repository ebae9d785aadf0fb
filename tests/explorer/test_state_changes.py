"""What a block wrote, in words: nothing that differs goes untold."""

from support.explorer import Explored

from pubsub_emulator.explorer.changes import MOST_ROWS, Change, state_changes
from pubsub_emulator.explorer.words import Names
from pubsub_emulator.primitives.types import Hash, ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.storage import CacheInfo, LastDelivered

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
    assert state_changes(before, after, Names()) == [Change("Subscriber.ProcessedRoots", "1001", "0x72727272…7272", "")]


def test_rows_are_told_in_words() -> None:
    after = written(
        lambda s: items.PROCESSING_CURSOR.put(s, (ME, KEY)),
        lambda s: items.LAST_DELIVERED.insert(s, ME, KEY, LastDelivered(ROOT, 7, RelayBlockNumber(3))),
        lambda s: items.CACHE_INFO.insert(s, ME, CacheInfo(1, 2, 300)),
    )
    told = {change.item: change for change in state_changes(State(), after, Names(keys={KEY: "DOT/USD"}))}
    assert told["Subscriber.ProcessingCursor"].after == "1000, DOT/USD"
    assert told["Subscriber.LastDelivered"].where == "1000, DOT/USD"
    assert told["Subscriber.LastDelivered"].after == "entry 0x72727272…7272, ttl 7, inserted in 3"
    assert told["Subscriber.CacheInfo"].after == "generation 1: 2 nodes, 300 B"


def test_cached_nodes_are_counted_by_generation() -> None:
    def add(storage: Storage) -> None:
        for number in range(30):
            items.CACHED_TRIE_NODES.insert(storage, (ME, 4), Hash(bytes((number,)) * 32), b"node")

    after = written(add)
    assert state_changes(State(), after, Names()) == [
        Change("Subscriber.CachedTrieNodes", "1000, generation 4", "", "nodes added: 30")
    ]
    assert state_changes(after, State(), Names())[0].after == "nodes removed: 30"


def test_of_many_rows_of_one_item_the_first_are_shown_and_the_others_counted() -> None:
    def add(storage: Storage) -> None:
        for number in range(40):
            row = LastDelivered(ROOT, 0, RelayBlockNumber(1))
            items.LAST_DELIVERED.insert(storage, ME, PubsubKey(bytes((number,)) * 32), row)

    changes = state_changes(State(), written(add), Names())
    assert len(changes) == MOST_ROWS + 1
    assert changes[-1].after == f"{40 - MOST_ROWS} more"


def test_a_row_that_does_not_decode_is_shown_as_bytes() -> None:
    after = written(lambda s: s.put(items.PROCESSED_ROOTS.key, b"\xff\xff"))
    assert state_changes(State(), after, Names()) == [Change("Subscriber.ProcessedRoots", "", "", "0xffff")]


def test_every_item_that_a_block_wrote_is_told(explored: Explored) -> None:
    for before, block in zip(explored.told.before, explored.told.blocks, strict=True):
        if block.outcome is None:
            continue
        changes = state_changes(before, block.outcome.state, explored.names)
        assert not any(change.item.startswith("a key of") for change in changes)
        differing = {key[:32] for key, _, _ in before.top.differences(block.outcome.state.top)}
        assert len({change.item for change in changes}) == len(differing)

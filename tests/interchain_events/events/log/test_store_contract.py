"""The contract of every store: memory, SQLite and PostgreSQL (EV-2, EV-3, EV-5, EV-6)."""

import importlib
import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing

import pytest
from support.events.blocks import block_hash, counted, make_block

from interchain_events.database.errors import StoreError
from interchain_events.events import Chain, Field, Kind, Not, open_store
from interchain_events.events.errors import AnotherChain, NotTheNextBlock
from interchain_events.events.log.store import Head, Store
from interchain_events.events.rows import ChainBlock


def test_ev_1_rows_are_numbered_without_gaps_and_ordered_by_inclusion(store: Store) -> None:
    para = [
        ChainBlock(2000, 5, b"p" * 32, 42_000, [("C.Done", {"ok": True})]),
        ChainBlock(1000, 9, b"q" * 32, 1, []),
    ]
    store.append(
        [counted(7, 2), make_block(8, [("A.B", {"who": b"\x01", "amount": 2**100})], para)]
    )
    rows = store.read(0, 10).rows
    assert [row.seq for row in rows] == [1, 2, 3, 4]
    assert [(row.anchor, row.chain, row.block, row.index) for row in rows] == [
        (7, None, 7, 0),
        (7, None, 7, 1),
        (8, None, 8, 0),
        (8, 2000, 5, 0),
    ]
    assert rows[2].fields == {"who": "0x01", "amount": 2**100}
    assert rows[3].time == 42_000


def test_ev_2_the_same_block_again_changes_nothing(store: Store) -> None:
    assert store.append([counted(1, 2), counted(2, 1)]) == 2
    head = store.head()
    assert store.append([counted(1, 2), counted(2, 1)]) == 0
    assert store.head() == head
    assert store.append([counted(2, 1), counted(3, 1)]) == 1
    assert store.head().seq == 4


@pytest.mark.parametrize("number", [1, 4, 9])
def test_ev_2_a_block_that_does_not_follow_is_refused_with_its_batch(
    store: Store, number: int
) -> None:
    store.append([counted(2, 1)])
    head = store.head()
    with pytest.raises(NotTheNextBlock, match=f"block {number} .* does not follow block 2"):
        store.append([make_block(number, parent=b"x" * 32) if number == 4 else counted(number, 1)])
    with pytest.raises(NotTheNextBlock, match="block 5 "):
        store.append([counted(3, 5), counted(5, 1)])
    assert store.head() == head
    assert len(store.read(0, 100).rows) == 1


def test_ev_2_another_block_of_the_same_height_is_refused(store: Store) -> None:
    store.append([counted(1, 1), counted(2, 1)])
    with pytest.raises(NotTheNextBlock):
        store.append([make_block(2, branch=1, parent=block_hash(1))])


def test_ev_3_a_rewind_takes_back_rows_and_raises_the_epoch(store: Store) -> None:
    store.append([counted(1, 2), counted(2, 3), counted(3, 1)])
    assert store.rewind(3) == store.head()
    assert store.head().epoch == 0
    back = store.rewind(1)
    assert back == Head(1, 2, 1, block_hash(1)) == store.head()
    assert [row.seq for row in store.read(0, 10).rows] == [1, 2]
    assert store.append([make_block(2, [("Other.Thing", {})], branch=1, parent=block_hash(1))]) == 1
    assert store.read(2, 10).rows[0].kind == "Other.Thing"
    store.rewind(1)
    assert (store.common(0), store.common(1), store.common(2)) == (2, 2, None)
    with pytest.raises(NotTheNextBlock, match="no block 7"):
        store.rewind(7)


def test_ev_5_reading_filters_limits_and_says_where_to_go_on(store: Store) -> None:
    store.append(
        [make_block(1, [("A.X", {"n": at}) if at % 3 else ("B.X", {"n": at}) for at in range(10)])]
    )
    page = store.read(0, 2, Kind("B.*"))
    assert [row.seq for row in page.rows] == [1, 4]
    assert page.through == 4
    assert not page.is_last
    page = store.read(page.through, 10, Kind("B.*"))
    assert [row.seq for row in page.rows] == [7, 10]
    assert page.is_last
    page = store.read(0, 10, Field("n", ">=", 9), span=5)
    assert (page.rows, page.through, page.is_last) == ([], 5, False)
    assert store.read(99, 10).through == 99
    assert len(store.read(0, 10, Not(Chain(None))).rows) == 0


def woken(reader: Store, writer: Store, seconds: float) -> bool:
    """Whether a reader hears so soon of what a writer appends while it waits."""
    thread = threading.Thread(target=lambda: (time.sleep(0.2), writer.append([counted(1, 1)])))
    thread.start()
    heard = reader.wait(reader.head(), seconds)
    thread.join()
    return heard


def test_ev_5_a_waiting_reader_is_woken_by_another_writer(opened: Callable[[], Store]) -> None:
    reader = opened()
    assert not reader.wait(reader.head(), 0.05)
    assert woken(reader, opened(), 10)
    assert reader.head().seq == 1


def test_ev_5_a_wake_up_that_is_lost_costs_time_only(database_place: str) -> None:
    with (
        closing(open_store(database_place, "net")) as reader,
        closing(open_store(database_place, "net")) as writer,
    ):
        writer.database.notify = lambda _session, _channel: None  # type: ignore[method-assign]
        assert woken(reader, writer, 90)


def test_attempts_to_reach_an_absent_database_are_not_logged_one_by_one() -> None:
    importlib.import_module("interchain_events.database.postgres")
    assert not logging.getLogger("psycopg.pool").isEnabledFor(logging.WARNING)


def test_ev_2_writers_at_once_append_each_block_once(opened: Callable[[], Store]) -> None:
    blocks = [counted(number, 3) for number in range(1, 30)]
    stores = [opened() for _ in range(3)]
    appended: list[int] = []

    def write(store: Store) -> None:
        for block in blocks:
            while True:
                try:
                    appended.append(store.append([block]))
                    break
                except NotTheNextBlock:  # the empty log of a reader that saw nothing yet
                    time.sleep(0.001)

    threads = [threading.Thread(target=write, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(appended) == len(blocks)
    assert [row.seq for row in stores[0].read(0, 1000).rows] == list(range(1, 88))


def test_a_log_takes_the_blocks_of_one_genesis_only(store: Store) -> None:
    store.bind(b"g" * 32)
    store.bind(b"g" * 32)
    with pytest.raises(AnotherChain, match="0x6868"):
        store.bind(b"h" * 32)


def test_a_place_holds_the_log_of_one_network(database_place: str) -> None:
    first = open_store(database_place, "net")
    again = open_store(database_place, "net")
    beside = open_store(database_place, "other", prefix="beside")
    assert first.id == again.id != beside.id
    beside.append([counted(1, 1)])
    assert first.head().seq == 0
    for store in (first, again, beside):
        store.close()
    with pytest.raises(AnotherChain, match="holds the log of 'net', not of 'mine'"):
        open_store(database_place, "mine")


def test_ev_6_newer_tables_are_refused_in_one_line(database_place: str) -> None:
    store = open_store(database_place, "net")
    with store.database.transaction(write=True) as session:
        session.run("UPDATE migrations SET version = 9")
    store.close()
    with pytest.raises(StoreError, match="its log tables have version 9, this program knows 1"):
        open_store(database_place, "net")


@pytest.mark.parametrize("prefix", ["", "a b", "A", "x;drop", "1a"])
def test_a_prefix_is_a_plain_name(database_place: str, prefix: str) -> None:
    with pytest.raises(StoreError, match="prefix"):
        open_store(database_place, "net", prefix=prefix)


def test_what_is_no_database_is_refused_in_one_line(tmp_path: object) -> None:
    place = f"{tmp_path}/x.db"
    with open(place, "w") as file:  # noqa: PTH123  # any file
        file.write("no database at all, but long enough to be looked at" * 10)
    with pytest.raises(StoreError, match="not a database"):
        open_store(place, "net")
    with pytest.raises(StoreError, match="mysql://"):
        open_store("mysql://host/db", "net")

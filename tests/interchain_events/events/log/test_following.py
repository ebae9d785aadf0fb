"""A log is followed while it grows and while blocks are taken back (EV-3, EV-5)."""

import pytest
from support.events.blocks import block_hash, counted, make_block

from interchain_events.events import Kind
from interchain_events.events.log.following import RowsTakenBack, follow
from interchain_events.events.log.store import Store
from interchain_events.events.rows import Row


def _seqs(found: list[Row | RowsTakenBack]) -> list[int]:
    return [each.seq for each in found]


def test_all_rows_are_yielded_in_order_and_then_it_ends(store: Store) -> None:
    store.append([counted(1, 2), counted(2, 3)])
    assert _seqs(list(follow(store))) == [1, 2, 3, 4, 5]
    assert _seqs(list(follow(store, after=3))) == [4, 5]
    assert _seqs(list(follow(store, limit=2))) == [1, 2]
    assert list(follow(store, limit=0)) == []


def test_only_matching_rows_count_against_the_limit(store: Store) -> None:
    store.append([counted(1, 3), make_block(2, [("Other.Thing", {})], parent=block_hash(1))])
    (row,) = follow(store, limit=1, where=Kind("Other.Thing"))
    assert row.seq == 4


@pytest.mark.parametrize("after", [0, 2])
def test_rows_that_come_later_are_waited_for(store: Store, after: int) -> None:
    store.append([counted(1, 2)])
    rows = follow(store, after=after, limit=4 - after, wait=True)
    seen = [next(rows).seq for _ in range(2 - after)]
    store.append([counted(2, 2)])
    assert [*seen, *_seqs(list(rows))] == list(range(after + 1, 5))


def test_rows_that_are_taken_back_are_noticed_and_replaced(store: Store) -> None:
    store.append([counted(1, 2), counted(2, 3)])
    rows = follow(store, limit=7, wait=True)
    assert [next(rows).seq for _ in range(5)] == [1, 2, 3, 4, 5]
    store.rewind(1)
    store.append([make_block(2, [("Other.Thing", {})], branch=1, parent=block_hash(1))])
    assert next(rows) == RowsTakenBack(2)
    replaced = next(rows)
    assert isinstance(replaced, Row)
    assert (replaced.seq, replaced.kind) == (3, "Other.Thing")

"""From a source into a store: appends what follows, rewinds where the chain took a branch back (EV-2, EV-3)."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from pubsub_emulator.events.errors import NotTheNextBlock
from pubsub_emulator.events.log.store import Store
from pubsub_emulator.events.rows import Block

BATCH: Final = 100
"""Blocks of one transaction."""


def put(store: Store, blocks: Sequence[Block]) -> int:
    """Append blocks; if the first is on an older block of the log, rewind to that one. Returns how many were new.

    Raises `NotTheNextBlock` when the log does not have its parent.
    """
    try:
        return store.append(blocks)
    except NotTheNextBlock:
        first = blocks[0]
        if store.hash_at(first.number) == first.hash or store.hash_at(first.number - 1) != first.parent:
            raise
        store.rewind(first.number - 1)
        return store.append(blocks)


def copy_all(store: Store, blocks: Iterable[Block]) -> int:
    """Append all blocks of a source that ends, `BATCH` at a time; returns how many were new."""
    waiting, count = iter(blocks), 0
    while batch := list(islice(waiting, BATCH)):
        count += put(store, batch)
    return count

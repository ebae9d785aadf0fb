"""Counts what reads of the parachain's own state add to its storage proof, during a walk.

A row is charged `ROW_COST` and its length. What it really adds depends on the shape of the trie: the rows of a thousand
publishers may take a thousand paths. So the nodes are counted too, and what they take beyond all charges and a fixed
allowance is charged as well. Nobody can choose a shape that is not paid for.

    charged  >=  bytes of the nodes read  -  OWN_STATE_ALLOWANCE         after every stretch of a walk

The nodes are those that `sp_trie` records: on the paths of the keys read, each once, with detached values.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Final

from pubsub_emulator.primitives.pubsub import node_cost
from pubsub_emulator.primitives.storage_keys import CODE
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber import storage as items

OWN_STATE_ALLOWANCE: Final = 40_960
"""Bytes of own state that a walk reads for free: the paths that all rows share, and small rows."""

OWN_STATE_BOUND: Final = OWN_STATE_ALLOWANCE + 24_576
"""The most bytes that reading own state adds to a block's proof beyond what the ledger charged for it.

The second summand is for the rows that every block reads: those of `System`, and the heads of message queues. Reads of
handlers are not included; handlers count them with `HandlerContext.consume`.
"""


def _cache_prefixes() -> tuple[bytes, ...]:
    """A function, since mypyc reads this module before it knows the types of these items."""
    return items.CACHED_TRIE_NODES.prefix, items.CACHE_INFO.prefix, items.CACHE_SLOTS.prefix


class OwnState:
    """The nodes of a top trie that reads touch, and their bytes; `without_cache` is the part without caches' rows."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._keys: dict[bytes, None] = {}
        self._mine: dict[Hash, bytes] = {}
        self._cached: dict[Hash, bytes] = {}
        self.total = 0
        self.without_cache = 0

    def add(self, keys: Iterable[bytes]) -> None:
        """Count the nodes of more keys, each node once."""
        known, top = self._keys, self._state.top
        mine: list[bytes] = []
        cached: list[bytes] = []
        prefixes = _cache_prefixes()
        for key in keys:
            if key not in known and key != CODE:
                known[key] = None
                (cached if key.startswith(prefixes) else mine).append(key)
        if mine:
            count = len(self._mine)
            top.prove(mine, self._mine)
            for node_hash, node in islice(self._mine.items(), count, None):
                cost = node_cost(len(node))
                self.without_cache += cost
                if node_hash not in self._cached:
                    self.total += cost
        if cached:
            count = len(self._cached)
            top.prove(cached, self._cached)
            for node_hash, node in islice(self._cached.items(), count, None):
                if node_hash not in self._mine:
                    self.total += node_cost(len(node))

    def keys(self) -> Iterable[bytes]:
        """The keys counted so far."""
        return self._keys

    def of(self, state: State) -> "OwnState":
        """A copy of this count to continue with, if it is of `state`; otherwise an empty one."""
        if state.top.root() != self._state.top.root():
            return OwnState(state)
        copy = OwnState(state)
        copy._keys, copy._mine, copy._cached = dict(self._keys), dict(self._mine), dict(self._cached)
        copy.total, copy.without_cache = self.total, self.without_cache
        return copy


@contextmanager
def recorded(storage: Storage) -> Iterator[dict[bytes, bytes | None]]:
    """Records the keys read of the state below, with their values, in order; also in the storage's own record."""
    outer = storage.recorded
    if outer is not None and not outer:
        yield outer  # nothing is in it that the walk would not have read
        return
    mine = storage.recorded = dict[bytes, bytes | None]()
    try:
        yield mine
    finally:
        storage.recorded = outer
        if outer is not None:
            for key, value in mine.items():
                outer.setdefault(key, value)

"""The bytes that reads of the parachain's own state add to its storage proof, during a walk.

A row is charged `ROW_COST` and its length. The bytes that it really adds depend on the shape of the
trie: the rows of a thousand publishers may take a thousand paths. So the nodes are counted too, and
their bytes beyond all charges and a fixed allowance are charged as well. An attacker thus pays for
any shape of the trie.

    charged  >=  bytes of the nodes read  -  OWN_STATE_ALLOWANCE      after every stretch of a walk

The nodes are those that `sp_trie` records: the nodes on the paths of the read keys, each once, with
detached values.
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
"""Bytes of own state that a walk reads for free.

They cover the paths that all rows share, and small rows.
"""

OWN_STATE_BOUND: Final = OWN_STATE_ALLOWANCE + 24_576
"""The maximum of the bytes that own state adds to a block's proof beyond its charges.

The second summand is for the rows that every block reads: those of `System`, and the heads of
message queues. Reads of handlers are not included; handlers count them with
`HandlerContext.consume`.
"""


def _cache_prefixes() -> tuple[bytes, ...]:
    """Return the prefixes of the cache's rows.

    This is not a constant, since mypyc reads this module before it knows the types of these items.
    """
    return items.CACHED_TRIE_NODES.prefix, items.CACHE_INFO.prefix, items.CACHE_SLOTS.prefix


class OwnState:
    """The nodes of a top trie that reads touch, and their bytes.

    `without_cache` is the part without the rows of caches.
    """

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
        """Return the keys that were counted so far."""
        return self._keys

    def of(self, state: State) -> "OwnState":
        """Return a copy of this count, to continue with, if it is of `state`.

        Otherwise return an empty one.
        """
        if state.top.root() != self._state.top.root():
            return OwnState(state)
        copy = OwnState(state)
        copy._keys = dict(self._keys)
        copy._mine = dict(self._mine)
        copy._cached = dict(self._cached)
        copy.total, copy.without_cache = self.total, self.without_cache
        return copy


@contextmanager
def recorded(storage: Storage) -> Iterator[dict[bytes, bytes | None]]:
    """Record the keys that are read from the state below, with their values, in order.

    They are also added to the storage's own record.
    """
    outer = storage.recorded
    if outer is not None and not outer:
        # The storage's record is empty, so it can serve as the walk's own.
        yield outer
        return
    mine = storage.recorded = dict[bytes, bytes | None]()
    try:
        yield mine
    finally:
        storage.recorded = outer
        if outer is not None:
            for key, value in mine.items():
                outer.setdefault(key, value)

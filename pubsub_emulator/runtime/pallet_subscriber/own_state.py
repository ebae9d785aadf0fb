"""The bytes that reads of the parachain's own state add to its storage proof, during a walk.

A row is charged `ROW_COST` and its length. The bytes that it really adds depend on the shape of the
trie: the rows of a thousand publishers may be on a thousand paths. So the nodes are counted, too.
If their bytes exceed all charges plus a fixed allowance, the excess is also charged. An attacker
thus pays for any shape of the trie.

    charged  >=  bytes of the nodes read  -  OWN_STATE_ALLOWANCE      after every stretch of a walk

The nodes are those that `sp_trie` records: the nodes on the paths of the read keys, each once, with
detached values.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Final

from pubsub_emulator.primitives.pubsub import nodes_cost
from pubsub_emulator.primitives.storage_keys import CODE
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber import storage as items

OWN_STATE_ALLOWANCE: Final = 40_960
"""The bytes of own state that a walk reads for free.

They are for the paths that all rows share, and for small rows.
"""
OWN_STATE_BOUND: Final = OWN_STATE_ALLOWANCE + 24_576
"""The maximum bytes that own state adds to a block's proof beyond its charges.

The second summand is for the rows that every block reads: those of `System`, and the heads of
message queues. Reads of handlers are not included, because handlers count them with
`HandlerContext.consume`.
"""


def _cache_prefixes() -> tuple[bytes, ...]:
    """Return the prefixes of the cache's rows.

    This is not a constant, because mypyc reads this module before it knows the types of the items.
    """
    return items.CACHED_TRIE_NODES.prefix, items.CACHE_INFO.prefix, items.CACHE_SLOTS.prefix


class OwnState:
    """The nodes of a top trie on the paths of keys that are read, and their sizes in bytes.

    The trie must not be written while they are counted. `_cached` has the nodes on the paths of
    rows of caches, and `_mine` those on the paths of all other rows. A node may be in both.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._prefixes = _cache_prefixes()
        self._keys: dict[bytes, None] = {}
        self._mine: dict[Hash, bytes] = {}
        self._cached: dict[Hash, bytes] = {}
        self._mine_visited: set[object] = set()
        self._cached_visited: set[object] = set()
        # The nodes that `_total` includes, and how many of them are in each dictionary above.
        self._nodes: dict[Hash, bytes] = {}
        self._mine_counted = 0
        self._cached_counted = 0
        self._total = 0
        self._without_cache = 0

    def read(self, key: bytes) -> bytes | None:
        """Return the value under `key`, and count the nodes on the way to it."""
        top = self._state.top
        if key == CODE:
            return top.get(key)
        self._keys[key] = None
        if key.startswith(self._prefixes):
            return top.get_recorded(key, self._cached, self._cached_visited)
        return top.get_recorded(key, self._mine, self._mine_visited)

    def add(self, keys: Iterable[bytes]) -> None:
        """Count the nodes of more keys, each node once."""
        mine: list[bytes] = []
        cached: list[bytes] = []
        for key in sorted(set(keys) - self._keys.keys()):
            if key != CODE:
                self._keys[key] = None
                (cached if key.startswith(self._prefixes) else mine).append(key)
        if mine:
            self._state.top.prove(mine, self._mine)
        if cached:
            self._state.top.prove(cached, self._cached)

    @property
    def total(self) -> int:
        """Return the bytes of all nodes so far."""
        self._count()
        return self._total

    @property
    def without_cache(self) -> int:
        """Return the bytes of the nodes so far that are on paths of rows outside caches."""
        self._count()
        return self._without_cache

    def _count(self) -> None:
        """Add the nodes that are new since the last call to the totals."""
        nodes = self._nodes
        before = len(nodes)
        mine = self._mine
        if len(mine) > self._mine_counted:
            fresh = dict(islice(mine.items(), self._mine_counted, None))
            self._mine_counted = len(mine)
            self._without_cache += nodes_cost(fresh.values())
            nodes.update(fresh)
        cached = self._cached
        if len(cached) > self._cached_counted:
            nodes.update(islice(cached.items(), self._cached_counted, None))
            self._cached_counted = len(cached)
        if len(nodes) > before:
            self._total += nodes_cost(islice(nodes.values(), before, None))

    def keys(self) -> Iterable[bytes]:
        """Return the keys that were counted so far."""
        return self._keys

    def of(self, state: State) -> "OwnState":
        """Return a copy of this count if it is of `state`, or else an empty one."""
        if state.top.root() != self._state.top.root():
            return OwnState(state)
        copy = OwnState(state)
        copy._keys = dict(self._keys)
        copy._mine = dict(self._mine)
        copy._cached = dict(self._cached)
        copy._nodes = dict(self._nodes)
        copy._mine_counted = self._mine_counted
        copy._cached_counted = self._cached_counted
        copy._total = self._total
        copy._without_cache = self._without_cache
        return copy


@contextmanager
def recorded(storage: Storage, own_state: OwnState) -> Iterator[dict[bytes, bytes | None]]:
    """Record the keys that are read from the state of `storage`, with their values, in order.

    They are also added to the storage's own record. `own_state` must be of the same state. It
    counts the nodes of keys that are read, but not those of keys that are found by iterating.
    """
    outer = storage.recorded
    # If the storage's record is empty, it can be used as the walk's record.
    reads = dict[bytes, bytes | None]() if outer is None or outer else outer
    storage.recorded = reads
    old_reader = storage.reader
    storage.reader = own_state.read
    try:
        yield reads
    finally:
        storage.reader = old_reader
        storage.recorded = outer
        if outer is not None and outer is not reads:
            for key, value in reads.items():
                outer.setdefault(key, value)

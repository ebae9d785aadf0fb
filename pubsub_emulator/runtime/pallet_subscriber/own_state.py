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
from typing import Final

from pubsub_emulator.primitives.storage_keys import CODE
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.trie.recording import Recording

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
        self._top = state.top
        self._root = state.top.root()
        self._prefixes = _cache_prefixes()
        self._keys: dict[bytes, None] = {}
        self._mine = Recording()
        self._cached = Recording(self._mine)
        self._mine.beside = self._cached

    def read(self, key: bytes) -> bytes | None:
        """Return the value under `key`, and count the nodes on the way to it."""
        if key == CODE:
            return self._top.get(key)
        self._keys[key] = None
        recording = self._cached if key.startswith(self._prefixes) else self._mine
        return self._top.get_recorded(key, recording)

    def add(self, keys: Iterable[bytes]) -> None:
        """Count the nodes of more keys, each node once."""
        for key in sorted(set(keys) - self._keys.keys()):
            if key != CODE:
                self.read(key)

    @property
    def total(self) -> int:
        """Return the bytes of all nodes so far."""
        mine = self._mine
        cached = self._cached
        return mine.cost + cached.cost - mine.shared - cached.shared

    @property
    def without_cache(self) -> int:
        """Return the bytes of the nodes so far that are on paths of rows outside caches."""
        return self._mine.cost

    def keys(self) -> Iterable[bytes]:
        """Return the keys that were counted so far."""
        return self._keys

    def of(self, state: State) -> "OwnState":
        """Return a copy of this count if it counts nodes of `state`, and otherwise an empty one."""
        copy = OwnState(state)
        if copy._root == self._root:
            copy._keys = dict(self._keys)
            copy._mine.copy_from(self._mine)
            copy._cached.copy_from(self._cached)
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

"""A state that is stored elsewhere.

Its tries are fetched on demand, writes go to them, and their roots are those of the whole state.
"""

from collections.abc import Iterator, MutableMapping
from typing import Protocol

from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX, child_root_key
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.trie import StateTrie
from pubsub_emulator.trie.lazy import LazyTrie, NodeFetcher, StateUnavailable


class StateSource(Protocol):
    """A source of the tries of one state."""

    def trie(self, child_key: bytes | None) -> NodeFetcher:
        """Return the source of the top trie, or of the child trie with that storage key.

        The storage key has no prefix.
        """


def lazy_state(root: Hash, source: StateSource) -> State:
    """Return the state with a root.

    Everything that reads it may raise `StateUnavailable`.
    """
    top = LazyTrie(root, source.trie(None))
    return State(top, _Children(top.fork(), source), borrowed=True)


def is_lazy(state: State) -> bool:
    """Return whether a state is fetched on demand.

    Walking through all of such a state takes long.
    """
    return isinstance(state.top, LazyTrie)


class _Children(MutableMapping[bytes, StateTrie]):
    """Child tries by storage key.

    Tries that were read or written are held here. All others come from the fetched state.
    """

    def __init__(self, base: LazyTrie, source: StateSource) -> None:
        self._base = base
        self._source = source
        self._tries: dict[bytes, StateTrie] = {}
        self._removed: set[bytes] = set()

    def __copy__(self) -> "_Children":
        """Return the same tries, which can then be written separately."""
        copied = _Children(self._base, self._source)
        copied._tries = dict(self._tries)
        copied._removed = set(self._removed)
        return copied

    def __getitem__(self, key: bytes) -> StateTrie:
        trie = self._tries.get(key)
        if trie is None:
            root = None if key in self._removed else self._base.get(child_root_key(key))
            if root is None:
                raise KeyError(key)
            if len(root) != 32:
                raise StateUnavailable(
                    f"the fetched state has a child root of {len(root)} bytes, at {key.hex()}"
                )
            trie = self._tries[key] = LazyTrie(Hash(root), self._source.trie(key))
        return trie

    def __setitem__(self, key: bytes, trie: StateTrie) -> None:
        self._removed.discard(key)
        self._tries[key] = trie

    def __delitem__(self, key: bytes) -> None:
        if key not in self:
            raise KeyError(key)
        self._removed.add(key)
        self._tries.pop(key, None)

    def __iter__(self) -> Iterator[bytes]:
        fetched = (
            key[len(CHILD_STORAGE_PREFIX) :] for key in self._base.keys(CHILD_STORAGE_PREFIX)
        )
        return iter(sorted({*(key for key in fetched if key not in self._removed), *self._tries}))

    def __len__(self) -> int:
        return sum(1 for _ in self)

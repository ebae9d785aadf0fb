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

    They are the tries that were read or written, and behind them those of the fetched state.
    """

    def __init__(self, base: LazyTrie, source: StateSource) -> None:
        self._base = base
        self._source = source
        self._here: dict[bytes, StateTrie] = {}
        self._gone: set[bytes] = set()

    def __copy__(self) -> "_Children":
        """Return the same tries, which can then be written separately."""
        out = _Children(self._base, self._source)
        out._here = dict(self._here)
        out._gone = set(self._gone)
        return out

    def __getitem__(self, key: bytes) -> StateTrie:
        found = self._here.get(key)
        if found is None:
            root = None if key in self._gone else self._base.get(child_root_key(key))
            if root is None:
                raise KeyError(key)
            if len(root) != 32:
                raise StateUnavailable(
                    f"the fetched state has a child root of {len(root)} bytes, at {key.hex()}"
                )
            found = self._here[key] = LazyTrie(Hash(root), self._source.trie(key))
        return found

    def __setitem__(self, key: bytes, trie: StateTrie) -> None:
        self._gone.discard(key)
        self._here[key] = trie

    def __delitem__(self, key: bytes) -> None:
        if key not in self:
            raise KeyError(key)
        self._gone.add(key)
        self._here.pop(key, None)

    def __iter__(self) -> Iterator[bytes]:
        fetched = (
            key[len(CHILD_STORAGE_PREFIX) :] for key in self._base.keys(CHILD_STORAGE_PREFIX)
        )
        return iter(sorted({*(key for key in fetched if key not in self._gone), *self._here}))

    def __len__(self) -> int:
        return sum(1 for _ in self)

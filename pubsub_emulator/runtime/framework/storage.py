"""Chain state, and the overlay to which a block writes before any trie changes.

`State` has the tries to which a state root commits: one top trie, and the child tries whose roots
it stores. `Storage` holds the changes of one block over a `State`. Its layers nest. A layer that
fails is undone from a journal, so a failing call leaves the state and the log of events as they
were (PS-10).

    get ──► changes (dict) ──► trie          put ──► changes, and the journal while a layer is open
    commit: changes ──► tries ──► child roots into the top trie ──► root
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from copy import copy
from itertools import islice
from typing import Any, Final

from sortedcontainers import SortedList

from pubsub_emulator.primitives.errors import DefensiveFailure, PubsubError
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX, child_root_key
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.trie import StateTrie, Trie

STATE_VERSION: Final = 1
"""State version 1: nodes name values of more than 32 bytes by hash."""

Entries = Iterable[tuple[bytes, bytes]]
ChildKeys = Mapping[bytes, Iterable[bytes]]
"""Keys of child tries, by child storage key."""


class ProtectedKey(PubsubError):
    """A write to a key of a child root.

    `sp_io` ignores such a write.
    """


class State:
    """The tries of one state root.

    Only `Storage.commit` writes to them. `children` maps a child storage key (without its prefix)
    to its trie, which is never empty: the root of a child trie is stored in `top` and removed with
    the last key (PS-2). Forks share tries until one of them is written.
    """

    def __init__(
        self,
        top: StateTrie | None = None,
        children: MutableMapping[bytes, StateTrie] | None = None,
        *,
        borrowed: bool = False,
    ) -> None:
        """Hold these tries; `top` must have the roots of `children`.

        `borrowed` says that another state may use `children` too.
        """
        self.top: StateTrie = Trie(STATE_VERSION) if top is None else top
        self.children: MutableMapping[bytes, StateTrie] = {} if children is None else children
        self._borrowed = borrowed
        # The owned tries, which no fork can see. The dict is used as an ordered set.
        self._owned = {} if borrowed else dict.fromkeys(self.children)

    @classmethod
    def from_entries(cls, top: Entries, children: Mapping[bytes, Entries] | None = None) -> "State":
        """Build a state in bulk, child roots included.

        Raises `DefensiveFailure` if `top` has any child roots.
        """
        entries = list(top)
        if any(key.startswith(CHILD_STORAGE_PREFIX) for key, _ in entries):
            raise DefensiveFailure("child roots follow from child entries and are never given")
        tries: dict[bytes, StateTrie] = {}
        for child_key, rows in (children or {}).items():
            trie = Trie.from_entries(rows, STATE_VERSION)
            if trie:
                tries[child_key] = trie
                entries.append((child_root_key(child_key), trie.root()))
        return cls(Trie.from_entries(entries, STATE_VERSION), tries)

    def root(self) -> Hash:
        """Return the state root."""
        return self.top.root()

    def fork(self) -> "State":
        """Return an independent copy in O(1).

        Neither copy sees later writes to the other.
        """
        # From now on, this state too copies the shared tries before it writes to them.
        self._owned = {}
        self._borrowed = True
        return State(self.top.fork(), self.children, borrowed=True)

    def child_root(self, child_key: bytes) -> Hash | None:
        """Return the root of a child trie, `None` if it has no keys."""
        trie = self.children.get(child_key)
        return None if trie is None else trie.root()

    def top_entries(self) -> Iterator[tuple[bytes, bytes]]:
        """Return all top entries, ascending, child roots included."""
        return self.top.items()

    def child_entries(self, child_key: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Return the entries of a child trie, ascending.

        There are none if there is no such trie.
        """
        trie = self.children.get(child_key)
        return iter(()) if trie is None else trie.items()

    def prove(
        self, top_keys: Iterable[bytes], child_keys: ChildKeys, into: dict[Hash, bytes]
    ) -> None:
        """Add to `into` every node that reading these keys touches.

        This includes nodes that prove absences, and the paths to child roots.
        """
        self.top.prove([*top_keys, *map(child_root_key, child_keys)], into)
        for child_key, keys in child_keys.items():
            trie = self.children.get(child_key)
            if trie is not None:
                trie.prove(keys, into)

    def apply(
        self,
        top: Mapping[bytes, bytes | None],
        children: Mapping[bytes, Mapping[bytes, bytes | None]],
    ) -> None:
        """Apply changes (`None` deletes a key) to the tries.

        The roots of the changed child tries are set in the top trie (PS-5).
        """
        if not children:
            self.top.update(top)
            return
        roots = dict(top)
        for child_key, changes in children.items():
            if changes:
                roots[child_root_key(child_key)] = self._apply_child(child_key, changes)
        self.top.update(roots)

    def _apply_child(self, child_key: bytes, changes: Mapping[bytes, bytes | None]) -> Hash | None:
        """Apply changes to one child trie.

        Returns its new root, or `None` if it has no keys left.
        """
        trie = self.children.get(child_key)
        if trie is None:
            trie = Trie(STATE_VERSION)
        elif child_key not in self._owned:
            trie = trie.fork()
        _write(trie, changes)
        if self._borrowed:
            self.children = copy(self.children)
            self._borrowed = False
        if trie:
            self.children[child_key] = trie
            self._owned[child_key] = None
            return trie.root()
        self.children.pop(child_key, None)
        self._owned.pop(child_key, None)
        return None


def _write(trie: StateTrie, changes: Mapping[bytes, bytes | None]) -> None:
    """Apply changes to a child trie, whose keys are hashes with short common prefixes."""
    removals: dict[bytes, bytes | None] = {}
    for key, value in changes.items():
        if value is None:
            removals[key] = None
        else:
            trie.insert(key, value)
    if removals:
        trie.update(removals)


class _Unwritten:
    """The type of the marker for keys that had no entry in the overlay before a write."""


_UNWRITTEN: Final = _Unwritten()


class _Changes:
    """The changes of a block to one trie.

    `values` has the newest value of each key (`None`: removed). Most blocks never iterate, so a new
    key is only appended to `fresh`. The first seek that may concern it sorts it into `order`.
    `passed` has the prefix of the last seek, and the number of fresh keys known not to start with
    it.
    """

    def __init__(self) -> None:
        self.values: dict[bytes, bytes | None] = {}
        self.fresh: list[bytes] = []
        self.order: Any = None
        self.passed = (b"", 0)

    def forget(self, key: bytes) -> None:
        """Undo the first write of `key`.

        Writes are undone backwards, so a key that is still fresh is the last one there.
        """
        del self.values[key]
        if self.fresh and self.fresh[-1] == key:
            self.fresh.pop()
            self.passed = (b"", 0)
        else:
            self.order.remove(key)

    def seek(self, prefix: bytes, after: bytes | None) -> bytes | None:
        """Return the first changed key that starts with `prefix` and comes after `after`."""
        if not self.values:
            return None
        sought, passed = self.passed
        fresh = islice(self.fresh, passed, None) if sought == prefix else self.fresh
        if [key for key in fresh if key.startswith(prefix)]:
            if self.order is None:
                self.order = SortedList()
            self.order.update(self.fresh)
            self.fresh.clear()
        self.passed = (prefix, len(self.fresh))
        order = self.order
        if order is None:
            return None
        index = (
            order.bisect_left(prefix)
            if after is None or after < prefix
            else order.bisect_right(after)
        )
        if index == len(order):
            return None
        key: bytes = order[index]
        return key if key.startswith(prefix) else None


class Layer:
    """A layer of a `Storage`, as a context manager.

    It is a class, since a generator takes twice as long per publish. It may be entered again.
    `_journal` and `_log` are the lengths of journal and log on entry, and `_depth` is the number of
    layers that were open.
    """

    __slots__ = ("_depth", "_journal", "_log", "_storage")

    def __init__(self, storage: "Storage") -> None:
        self._storage = storage
        self._depth = self._journal = self._log = 0

    def __enter__(self) -> None:
        storage = self._storage
        self._depth = storage.depth
        self._journal = len(storage.journal)
        self._log = len(storage.log)
        storage.depth += 1

    def __exit__(self, error: type[BaseException] | None, *rest: object) -> None:
        storage = self._storage
        if error is not None:
            storage.undo(self._journal, self._log)
        # This also ends layers that were left open inside.
        storage.depth = self._depth
        if not self._depth:
            # Outside of all layers, nothing is undone.
            storage.journal.clear()


class Storage:
    """The changes of one block over a `State`, with layers, child storage and iteration.

    `log` holds the events of a block and rolls back with the layers. `phase` is the phase of the
    events that are deposited now. `journal` has the values that open layers replaced. While
    recording, `recorded` holds the top keys that were read from the state below and their values,
    in the order of the first reads. They are read with `reader`, if there is one, which must return
    what the state has.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.depth = 0
        self.log: list[object] = []
        self.phase: Any = None
        self.recorded: dict[bytes, bytes | None] | None = None
        self.reader: Callable[[bytes], bytes | None] | None = None
        self._top = _Changes()
        self._children: dict[bytes, _Changes] = {}
        self.journal: list[tuple[_Changes, bytes, bytes | _Unwritten | None]] = []

    # Top storage

    def get(self, key: bytes) -> bytes | None:
        """Return the value under `key`, or `None`; a child root is that of the last commit."""
        values = self._top.values
        if key in values:
            return values[key]
        recorded = self.recorded
        if recorded is None:
            return self.state.top.get(key)
        if key in recorded:
            return recorded[key]
        reader = self.reader
        value = self.state.top.get(key) if reader is None else reader(key)
        recorded[key] = value
        return value

    def exists(self, key: bytes) -> bool:
        """Return whether `key` has a value."""
        return self.get(key) is not None

    def put(self, key: bytes, value: bytes) -> None:
        """Set a value.

        Raises `ProtectedKey` for keys of child roots, which follow from child storage.
        """
        if key.startswith(CHILD_STORAGE_PREFIX):
            raise ProtectedKey(f"a child root cannot be written: {key.hex()}")
        self._set(self._top, key, value)

    def kill(self, key: bytes) -> None:
        """Remove the value, if there is one.

        Raises `ProtectedKey` as `put` does.
        """
        if key.startswith(CHILD_STORAGE_PREFIX):
            raise ProtectedKey(f"a child root cannot be removed: {key.hex()}")
        self._set(self._top, key, None)

    def iter_prefix(
        self, prefix: bytes = b"", after: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Return the entries whose key starts with `prefix` and is greater than `after`.

        They ascend bytewise. Each step finds the key that is the next one at that moment, so
        storage may be written meanwhile, but not committed.
        """
        return self._merge(self.state.top, self._top, prefix, after, top=True)

    def next_keys(self, prefix: bytes = b"", after: bytes | None = None) -> Iterator[bytes]:
        """Yield the keys of `iter_prefix`."""
        for key, _ in self._merge(self.state.top, self._top, prefix, after, top=True):
            yield key

    def clear_prefix(self, prefix: bytes, limit: int | None = None) -> int:
        """Remove at most `limit` entries under `prefix`, in key order.

        Returns how many were removed. Unlike upstream's, this also counts entries that this block
        wrote. Raises `ProtectedKey` if there could be child roots.
        """
        if CHILD_STORAGE_PREFIX.startswith(prefix) or prefix.startswith(CHILD_STORAGE_PREFIX):
            raise ProtectedKey("child roots cannot be removed by prefix")
        return self._clear(self.state.top, self._top, prefix, limit, top=True)

    # Child storage

    def child_get(self, child_key: bytes, key: bytes) -> bytes | None:
        """Return the value under `key` in a child trie, or `None` if either does not exist."""
        changes = self._children.get(child_key)
        if changes is not None and key in changes.values:
            return changes.values[key]
        trie = self.state.children.get(child_key)
        return None if trie is None else trie.get(key)

    def child_put(self, child_key: bytes, key: bytes, value: bytes) -> None:
        """Set a value in a child trie.

        The trie is created with its first key.
        """
        self._set(self._children.get(child_key) or self._child(child_key), key, value)

    def child_kill(self, child_key: bytes, key: bytes) -> None:
        """Remove a value from a child trie, if there is one.

        The trie is removed with its last key.
        """
        self._set(self._child(child_key), key, None)

    def child_iter(
        self, child_key: bytes, prefix: bytes = b"", after: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Return the entries of a child trie as `iter_prefix` does."""
        trie = self.state.children.get(child_key)
        return self._merge(trie, self._child(child_key), prefix, after, top=False)

    def child_clear(self, child_key: bytes, prefix: bytes = b"", limit: int | None = None) -> int:
        """Remove entries of a child trie as `clear_prefix` does.

        Without prefix and limit, the whole trie is removed.
        """
        trie = self.state.children.get(child_key)
        return self._clear(trie, self._child(child_key), prefix, limit, top=False)

    def child_root(self, child_key: bytes) -> Hash | None:
        """Return the root of a child trie with the changes so far, or `None` if it has no keys."""
        changes = self._children.get(child_key)
        if changes is None or not changes.values:
            return self.state.child_root(child_key)
        trie = self.state.children.get(child_key)
        trie = Trie(STATE_VERSION) if trie is None else trie.fork()
        _write(trie, changes.values)
        return trie.root() if trie else None

    def written(self) -> dict[bytes, bytes | None]:
        """Return the top keys written since the last commit, with their newest values.

        They are in no particular order. The value is `None` if the key was removed.
        """
        return dict(self._top.values)

    # Layers, commit, recording

    def transaction(self) -> "Layer":
        """Open a nested layer.

        Its writes remain on normal exit and are undone by any exception (PS-10).
        """
        return Layer(self)

    def undo(self, journal: int, log: int) -> None:
        """Roll back to the given journal and log lengths."""
        entries = self.journal
        while len(entries) > journal:
            changes, key, before = entries.pop()
            if isinstance(before, _Unwritten):
                changes.forget(key)
            else:
                changes.values[key] = before
        del self.log[log:]

    def commit(self) -> Hash:
        """Write all changes and return the root.

        The log remains. Raises `DefensiveFailure` if a layer is open.
        """
        if self.depth:
            raise DefensiveFailure("a layer is still open")
        self.state.apply(
            self._top.values, {child_key: c.values for child_key, c in self._children.items()}
        )
        self._top = _Changes()
        self._children = {}
        if self.recorded is not None:
            self.start_recording()
        return self.state.root()

    def start_recording(self) -> None:
        """Start a new record of the top keys that are read from the state below.

        While recording, a commit starts one too.
        """
        self.recorded = {}

    # Shared by top and child storage

    def _child(self, child_key: bytes) -> _Changes:
        changes = self._children.get(child_key)
        if changes is None:
            changes = self._children[child_key] = _Changes()
        return changes

    def _set(self, changes: _Changes, key: bytes, value: bytes | None) -> None:
        values = changes.values
        if key not in values:
            changes.fresh.append(key)
            if self.depth:
                self.journal.append((changes, key, _UNWRITTEN))
        elif self.depth:
            self.journal.append((changes, key, values[key]))
        values[key] = value

    def _merge(
        self,
        trie: StateTrie | None,
        changes: _Changes,
        prefix: bytes,
        after: bytes | None,
        *,
        top: bool,
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries of a trie and of the changes to it, in one order.

        The next changed key is sought at each step, so that writes during the iteration count.
        """
        below = iter(()) if trie is None else trie.items(prefix, after)
        head: tuple[bytes, bytes] | None = None
        # `pull` says that `head` is used up. The next entry is pulled late, so that reading does
        # not run ahead of the caller.
        pull = True
        while True:
            if pull:
                head = next(below, None)
                pull = False
                if top and head is not None and self.recorded is not None:
                    self.recorded.setdefault(*head)
            changed = changes.seek(prefix, after)
            if changed is not None and (head is None or changed <= head[0]):
                pull = head is not None and changed == head[0]
                after, value = changed, changes.values[changed]
                if value is not None:
                    yield changed, value
            elif head is not None:
                pull = True
                after = head[0]
                yield head
            else:
                return

    def _clear(
        self,
        trie: StateTrie | None,
        changes: _Changes,
        prefix: bytes,
        limit: int | None,
        *,
        top: bool,
    ) -> int:
        removed = 0
        if limit == 0:
            return 0
        for key, _ in self._merge(trie, changes, prefix, None, top=top):
            self._set(changes, key, None)
            removed += 1
            if removed == limit:
                break
        return removed

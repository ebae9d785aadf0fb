"""The overlay: nested layers, ordered iteration and child storage behave as a plain dictionary
would (PS-10).
"""

from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.pubsub import derive_child_key, publisher_root_key
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX
from pubsub_emulator.primitives.types import EMPTY_TRIE_ROOT, ParaId
from pubsub_emulator.runtime.framework.storage import ProtectedKey, State, Storage
from pubsub_emulator.trie import state_root

KEYS = st.binary(max_size=3)
VALUES = st.one_of(st.binary(max_size=4), st.binary(min_size=33, max_size=40))
CHILDREN = st.sampled_from([b"a", b"ab", b"pubsub\x00\x00\x00\x00"])


class Undo(Exception):
    """Leaves a layer by failing."""


class OverlayIsADictionary(RuleBasedStateMachine):
    """Storage against dictionaries that are copied for every layer."""

    def __init__(self) -> None:
        super().__init__()
        self.storage = Storage(State())
        self.models: list[
            tuple[dict[bytes, bytes], dict[bytes, dict[bytes, bytes]], list[object]]
        ] = [({}, {}, [])]
        self.layers: list[object] = []

    @property
    def top(self) -> dict[bytes, bytes]:
        return self.models[-1][0]

    def child(self, key: bytes) -> dict[bytes, bytes]:
        return self.models[-1][1].setdefault(key, {})

    @rule(key=KEYS, value=VALUES)
    def put(self, key: bytes, value: bytes) -> None:
        self.storage.put(key, value)
        self.top[key] = value

    @rule(key=KEYS)
    def kill(self, key: bytes) -> None:
        self.storage.kill(key)
        self.top.pop(key, None)

    @rule(child=CHILDREN, key=KEYS, value=VALUES)
    def child_put(self, child: bytes, key: bytes, value: bytes) -> None:
        self.storage.child_put(child, key, value)
        self.child(child)[key] = value

    @rule(child=CHILDREN, key=KEYS)
    def child_kill(self, child: bytes, key: bytes) -> None:
        self.storage.child_kill(child, key)
        self.child(child).pop(key, None)

    @rule(prefix=st.binary(min_size=1, max_size=2), limit=st.none() | st.integers(0, 4))
    def clear_prefix(self, prefix: bytes, limit: int | None) -> None:
        if CHILD_STORAGE_PREFIX.startswith(prefix):
            with pytest.raises(ProtectedKey):
                self.storage.clear_prefix(prefix, limit)
            return
        doomed = sorted(key for key in self.top if key.startswith(prefix))[:limit]
        assert self.storage.clear_prefix(prefix, limit) == len(doomed)
        for key in doomed:
            del self.top[key]

    @rule(child=CHILDREN, prefix=st.binary(max_size=1), limit=st.none() | st.integers(0, 4))
    def child_clear(self, child: bytes, prefix: bytes, limit: int | None) -> None:
        doomed = sorted(key for key in self.child(child) if key.startswith(prefix))[:limit]
        assert self.storage.child_clear(child, prefix, limit) == len(doomed)
        for key in doomed:
            del self.child(child)[key]

    @rule(entry=st.integers())
    def report(self, entry: int) -> None:
        self.storage.log.append(entry)
        self.models[-1][2].append(entry)

    @rule()
    def open_layer(self) -> None:
        layer = self.storage.transaction()
        layer.__enter__()
        self.layers.append(layer)
        top, children, log = self.models[-1]
        self.models.append((dict(top), {k: dict(v) for k, v in children.items()}, list(log)))

    @precondition(lambda self: self.layers)
    @rule(keep=st.booleans())
    def close_layer(self, keep: bool) -> None:
        layer = self.layers.pop()
        newest = self.models.pop()
        if keep:
            layer.__exit__(None, None, None)  # type: ignore[attr-defined]
            self.models[-1] = newest
        else:
            layer.__exit__(Undo, Undo(), None)  # type: ignore[attr-defined]

    @precondition(lambda self: not self.layers)
    @rule()
    def commit(self) -> None:
        before = self.storage.state.fork()
        root_before = before.root()
        assert self.storage.commit() == self.root()
        assert before.root() == root_before, "a fork never sees later writes"

    @rule(prefix=st.binary(max_size=2), after=st.none() | KEYS)
    def iterate(self, prefix: bytes, after: bytes | None) -> None:
        wanted = sorted(
            item
            for item in self.top.items()
            if item[0].startswith(prefix) and (after is None or item[0] > after)
        )
        found = self.storage.iter_prefix(prefix, after)
        found = [item for item in found if not item[0].startswith(b":child_storage:")]
        assert list(found) == wanted

    @rule(child=CHILDREN, prefix=st.binary(max_size=2), after=st.none() | KEYS)
    def child_iterate(self, child: bytes, prefix: bytes, after: bytes | None) -> None:
        wanted = sorted(
            item
            for item in self.child(child).items()
            if item[0].startswith(prefix) and (after is None or item[0] > after)
        )
        assert list(self.storage.child_iter(child, prefix, after)) == wanted

    @rule(key=KEYS, child=CHILDREN)
    def read(self, key: bytes, child: bytes) -> None:
        assert self.storage.get(key) == self.top.get(key)
        assert self.storage.exists(key) == (key in self.top)
        assert self.storage.child_get(child, key) == self.child(child).get(key)

    @rule(child=CHILDREN)
    def child_root(self, child: bytes) -> None:
        entries = self.child(child)
        assert self.storage.child_root(child) == (state_root(entries.items()) if entries else None)

    @invariant()
    def log_is_kept(self) -> None:
        assert self.storage.log == self.models[-1][2]

    def root(self) -> bytes:
        entries = dict(self.top)
        for child, rows in self.models[-1][1].items():
            if rows:
                entries[b":child_storage:default:" + child] = state_root(rows.items())
        return state_root(entries.items())


TestOverlayIsADictionary = OverlayIsADictionary.TestCase


def test_keys_written_while_iterating_are_met_once_and_in_order() -> None:
    storage = Storage(State.from_entries([(bytes([i]), b"old") for i in range(0, 10, 2)]))
    seen = []
    for key, value in storage.iter_prefix():
        seen.append((key[0], value))
        if key[0] == 2:
            storage.put(b"\x03", b"new")
            storage.put(b"\x01", b"behind")
            storage.kill(b"\x04")
            storage.put(b"\x06", b"changed")
    assert seen == [(0, b"old"), (2, b"old"), (3, b"new"), (6, b"changed"), (8, b"old")]


def test_ps2_a_child_root_is_in_the_top_trie_until_its_last_key() -> None:
    storage = Storage(State())
    child, top_key = derive_child_key(ParaId(1000)), publisher_root_key(ParaId(1000))
    storage.child_put(child, b"k", b"v")
    assert storage.child_root(child) == state_root([(b"k", b"v")])
    storage.commit()
    assert storage.get(top_key) == state_root([(b"k", b"v")])
    storage.child_kill(child, b"k")
    assert storage.child_root(child) is None
    assert storage.commit() == EMPTY_TRIE_ROOT
    assert storage.get(top_key) is None
    assert storage.state.children == {}


def test_child_roots_cannot_be_written_around_the_child_trie() -> None:
    storage = Storage(State())
    attempts: list[Callable[[], object]] = [
        lambda: storage.put(publisher_root_key(ParaId(1)), b"x"),
        lambda: storage.kill(publisher_root_key(ParaId(1))),
        lambda: storage.clear_prefix(b":child_storage:default:pubsub"),
        lambda: storage.clear_prefix(b""),
        lambda: storage.clear_prefix(b":"),
    ]
    for attempt in attempts:
        with pytest.raises(ProtectedKey):
            attempt()
    with pytest.raises(DefensiveFailure):
        State.from_entries([(publisher_root_key(ParaId(1)), b"x")])


def test_a_commit_inside_a_layer_is_a_defect() -> None:
    storage = Storage(State())
    with storage.transaction(), pytest.raises(DefensiveFailure):
        storage.commit()


def test_reads_of_the_state_below_are_recorded_once_and_in_order() -> None:
    storage = Storage(State.from_entries([(b"a1", b"1"), (b"a2", b"2"), (b"b", b"3")]))
    storage.put(b"written", b"here")
    storage.start_recording()
    storage.get(b"b")
    storage.get(b"absent")
    storage.get(b"written")
    storage.put(b"a1", b"changed")
    assert [key for key, _ in storage.iter_prefix(b"a")] == [b"a1", b"a2"]
    storage.get(b"b")
    assert storage.recorded == {b"b": b"3", b"absent": None, b"a1": b"1", b"a2": b"2"}
    assert list(storage.recorded) == [b"b", b"absent", b"a1", b"a2"]


def test_a_commit_starts_a_new_record_and_reads_see_what_was_written() -> None:
    storage = Storage(State.from_entries([(b"a", b"1")]))
    storage.start_recording()
    assert storage.get(b"a") == storage.get(b"a") == b"1"
    storage.put(b"a", b"2")
    storage.commit()
    assert storage.recorded == {}
    assert (storage.get(b"a"), storage.recorded) == (b"2", {b"a": b"2"})


def test_iteration_records_nothing_beyond_what_was_asked_for() -> None:
    storage = Storage(State.from_entries([(bytes([i]), b"") for i in range(5)]))
    storage.start_recording()
    keys = storage.next_keys()
    assert [next(keys), next(keys)] == [b"\x00", b"\x01"]
    assert list(storage.recorded or {}) == [b"\x00", b"\x01"]

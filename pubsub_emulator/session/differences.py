"""Decoded differences of two states: every storage entry and every published key, by chain.

Entries that each block writes (slots, block numbers, hashes, events) come last: they always differ.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from pubsub_emulator.emulator.runtimes import decoded_key
from pubsub_emulator.emulator.state_diff import child_name, key_name
from pubsub_emulator.files.pages import Grid, Line, Shown
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.pubsub import PublishedEntry
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.framework.words import printable, words
from pubsub_emulator.trie import Trie

FEW: Final = 12
"""Rows per chain that are shown when no chain was named."""

CELL: Final = 120
"""Characters of a value that are shown when no item was named."""

_NOTHING: Final = "nothing"
_EVERY_BLOCK: Final = (
    *("System.", "Babe.", "Timestamp.", "ParachainSystem.", "Aura.", "MessageQueue."),
    *(
        "Paras.Heads",
        "Paras.MostRecentContext",
        "Hrmp.HrmpWatermarks",
        "Subscriber.LastRelayParent",
    ),
)


class Difference(NamedTuple):
    """An entry that differs between two states, in words."""

    item: str
    """The storage item, or the child trie of a published key."""
    keys: str
    """The keys of an entry of a map, or the published key."""
    a: str
    b: str

    @property
    def of_every_block(self) -> bool:
        """Whether every block writes this entry."""
        return self.item.startswith(_EVERY_BLOCK)


Name = Callable[[bytes], str]


def differences(a: State, b: State, name: Name, *, relay: bool) -> list[Difference]:
    """Return all entries that differ between two states of one chain.

    Published keys come first, entries that every block writes come last.
    """
    unsorted = [*_published(a, b, name), *_stored(a, b, name, relay=relay)]
    return sorted(unsorted, key=lambda difference: difference.of_every_block)


def _published(a: State, b: State, name: Name) -> Iterator[Difference]:
    """Yield the differences of the child tries. `name` shows a key of 32 bytes."""
    empty = Trie(1)
    for child in sorted({*a.children, *b.children}):
        old_trie = a.children.get(child, empty)
        new_trie = b.children.get(child, empty)
        for key, old, new in old_trie.differences(new_trie):
            yield Difference(child_name(child), name(key), _entry(old), _entry(new))


def _entry(value: bytes | None) -> str:
    """Return a published entry in words. Bytes that do not decode are shown as bytes."""
    if value is None:
        return _NOTHING
    try:
        entry = PublishedEntry.decode(value)
    except ScaleError:
        return words(value)
    life = f"ttl {entry.ttl}" if entry.ttl else "no expiry"
    return f"{printable(entry.value)} ({life}, published in {entry.when_inserted})"


def _stored(a: State, b: State, name: Name, *, relay: bool) -> Iterator[Difference]:
    """Yield the differences of the top tries, decoded if the key belongs to a known item.

    `relay` says that the states are those of the relay chain.
    """
    for key, old, new in a.top.differences(b.top):
        of_child = key.startswith(CHILD_STORAGE_PREFIX)
        decoded = None if of_child else decoded_key(key, relay=relay)
        if decoded is None:
            yield _differs(key_name(key), "" if of_child else words(key, None), old, new)
            continue
        item, keys = decoded
        key_words = ", ".join(
            name(part) if isinstance(part, bytes) and len(part) == 32 else words(part)
            for part in keys
        )
        try:
            values = tuple(
                None if value is None else item.codec.decode(value) for value in (old, new)
            )
        except ScaleError:
            yield _differs(item.name, key_words, old, new)
        else:
            yield from _value(item.name, key_words, *values)


def _differs(item: str, keys: str, old: object, new: object) -> Difference:
    """Return the difference of two values, `None` for a missing one, in words."""
    a = _NOTHING if old is None else words(old)
    b = _NOTHING if new is None else words(new)
    return Difference(item, keys, a, b)


def _value(item: str, keys: str, old: object, new: object) -> Iterator[Difference]:
    """Yield a row for a value that differs.

    Two mappings give a row for each key with different values.
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys([*old, *new]):
            if old.get(key) != new.get(key):
                yield _differs(
                    item, ", ".join(filter(None, (keys, words(key)))), old.get(key), new.get(key)
                )
    else:
        yield _differs(item, keys, old, new)


def pages(
    chain: str, all_differences: list[Difference], item: str | None, most: int | None
) -> Iterator[Shown]:
    """Yield a table of the differences of one chain, with at most `most` rows.

    With `item`, it has only the rows of that item, with full values.
    """
    chosen = [row for row in all_differences if item is None or _is_of_item(row, item)]
    if item is not None and not chosen:
        yield Line(f"no entry of {item} differs on {chain}")
        return
    rows = chosen if most is None else chosen[:most]
    shown = (
        rows if item is not None else [row._replace(a=_cut(row.a), b=_cut(row.b)) for row in rows]
    )
    yield Grid(f"differences on {chain}", ("item", "key", "A", "B"), tuple(shown))
    if len(chosen) > len(rows):
        yield Line(f"and {len(chosen) - len(rows):,} more on {chain}: `diff A B {chain}` shows all")


def _is_of_item(difference: Difference, item: str) -> bool:
    return item.lower().replace("::", ".") in (
        difference.item.lower(),
        difference.item.lower().rpartition(".")[2],
    )


def _cut(text: str) -> str:
    return text if len(text) <= CELL else f"{text[:CELL]}…"

"""Describes how a block changes its parachain's state. Bookkeeping items come last."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pubsub_emulator.explorer.words import DisplayNames, preview, short, state_key_words
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.delivered import PACK

MOST_ROWS: Final = 12
"""The maximum number of listed rows of one item. The number of further rows follows."""

_BOOKKEEPING: Final = ("System.", "ParachainSystem.", "Aura.", "ParachainInfo.")
"""The beginnings of items that every block writes."""


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """One changed row."""

    item: str
    """The storage item."""
    where: str
    """The keys of the row in words."""
    before: str
    """The old value in words. It is empty if the row is new."""
    after: str
    """The new value in words. It is empty if the row was removed."""

    @property
    def bookkeeping(self) -> bool:
        """Return whether every block writes the item."""
        return self.item.startswith(_BOOKKEEPING)


def state_changes(before: State, after: State, names: DisplayNames) -> list[ChangedRow]:
    """Return all differences between the top tries of two states of a parachain.

    Cached nodes are counted instead of listed.
    """
    rows: list[ChangedRow] = []
    cached: Counter[tuple[str, str]] = Counter()
    shown: Counter[str] = Counter()
    for key, old, new in before.top.differences(after.top):
        if key.startswith(items.CACHED_TRIE_NODES.prefix):
            # A hash of 16 bytes precedes the publisher and the generation.
            suffix = key[len(items.CACHED_TRIE_NODES.prefix) + 16 :]
            publisher = int.from_bytes(suffix[:4], "little")
            generation = int.from_bytes(suffix[4:8], "little")
            where = f"{publisher}, generation {generation}"
            if new is None:
                action = "removed"
            elif old is None:
                action = "added"
            else:
                action = "replaced"
            cached[where, f"nodes {action}:"] += 1
            continue
        for change in _changes(key, old, new, names=names):
            shown[change.item] += 1
            if change.bookkeeping or shown[change.item] <= MOST_ROWS:
                rows.append(change)
    rows += [
        ChangedRow(item, "further rows", "", after=f"{count - MOST_ROWS:,} more")
        for item, count in shown.items()
        if count > MOST_ROWS and not item.startswith(_BOOKKEEPING)
    ]
    rows += [
        ChangedRow(
            f"{items.PALLET}.CachedTrieNodes",
            where,
            "",
            after=f"{action} {cached[where, action]:,}",
        )
        for where, action in sorted(cached)
    ]
    return sorted(rows, key=lambda change: (change.bookkeeping, change.item))


def _changes(
    key: bytes, old: bytes | None, new: bytes | None, names: DisplayNames
) -> Iterator[ChangedRow]:
    """Yield the changes of one key. Values that do not decode are shown as bytes."""
    item, where = state_key_words(key, names)
    try:
        match item.removeprefix(f"{items.PALLET}."):
            case "ProcessedRoots" | "SubscriptionHash":
                yield from _map_changes(item, old, new)
            case "LastDeliveredPacked":
                yield ChangedRow(item, where, "", after=_packed(old or b"", new or b""))
            case name:
                before = "" if old is None else _value_words(name, old, names)
                after = "" if new is None else _value_words(name, new, names)
                yield ChangedRow(item, where, before, after=after)
    except ScaleError:
        before = "" if old is None else _plain(old)
        after = "" if new is None else _plain(new)
        yield ChangedRow(item, where, before, after=after)


def _map_changes(item: str, old: bytes | None, new: bytes | None) -> Iterator[ChangedRow]:
    """Yield the changed entries of a map that is stored as one value."""
    codec = items.PROCESSED_ROOTS.codec
    old_map: Mapping[ParaId, Hash] = {} if old is None else codec.decode(old)
    new_map: Mapping[ParaId, Hash] = {} if new is None else codec.decode(new)
    for para in sorted({*old_map, *new_map}):
        if old_map.get(para) != new_map.get(para):
            before = short(old_map[para]) if para in old_map else ""
            after = short(new_map[para]) if para in new_map else ""
            yield ChangedRow(item, str(para), before, after=after)


def _packed(old: bytes, new: bytes) -> str:
    """Return in words how many cells of a packed row changed. A cell has 40 bytes."""
    cells = [
        (old[start : start + 40], new[start : start + 40])
        for start in range(0, max(len(old), len(new)), 40)
    ]
    changed = sum(before != after for before, after in cells)
    filled = sum(any(after) for _, after in cells)
    return f"{changed} of {min(len(cells), PACK)} written, {filled} not empty"


def _value_words(item: str, value: bytes, names: DisplayNames) -> str:
    """Return a value in words. Raises `ScaleError`.

    `item` is the name of the item, without the pallet if it is the subscriber's.
    """
    match item:
        case "ProcessingCursor":
            para, key = items.item.decode(value)
            return f"{para}, {names.key(key)}"
        case "LastDelivered":
            row = items.last_delivered.decode(value)
            return f"entry {short(row.entry_hash)}, ttl {row.ttl}, inserted in {row.when_inserted}"
        case "CacheInfo":
            info = items.cache_info.decode(value)
            return f"generation {info.generation}: {info.nodes:,} nodes, {info.bytes:,} B"
        case "CacheSlots":
            slots = [value[start : start + 32] for start in range(0, len(value), 32)]
            return f"{sum(any(slot) for slot in slots)} of {len(slots)} slots filled"
        case "DisabledPublishers":
            return items.disable_reason.decode(value).value
        case "LastRelayParent" | "System.Number":
            return str(int.from_bytes(value, "little"))
    return _plain(value)


def _plain(value: bytes) -> str:
    return preview(value, 32) if len(value) <= 32 else f"{preview(value, 12)} ({len(value)} B)"

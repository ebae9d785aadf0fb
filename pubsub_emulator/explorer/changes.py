"""A block's changes of its parachain's state in words, bookkeeping last."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pubsub_emulator.explorer.words import Names, preview, short, state_key_words
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.delivered import PACK

MOST_ROWS: Final = 12
"""The most rows of one item that are listed; the number of others follows."""

_BOOKKEEPING: Final = ("System.", "ParachainSystem.", "Aura.", "ParachainInfo.")


@dataclass(frozen=True, slots=True)
class Change:
    """One row: the storage item, its arguments, and the values before and after, empty for none."""

    item: str
    where: str
    before: str
    after: str

    @property
    def bookkeeping(self) -> bool:
        """Whether every block writes it."""
        return self.item.startswith(_BOOKKEEPING)


def state_changes(before: State, after: State, names: Names) -> list[Change]:
    """Everything that differs between the top tries of two states of a parachain."""
    rows: list[Change] = []
    cached: Counter[tuple[str, str]] = Counter()
    shown: Counter[str] = Counter()
    for key, old, new in before.top.differences(after.top):
        if key.startswith(items.CACHED_TRIE_NODES.prefix):
            _count_node(cached, key, old, new)
            continue
        for change in _changes(key, old, new, names):
            shown[change.item] += 1
            if change.bookkeeping or shown[change.item] <= MOST_ROWS:
                rows.append(change)
    rows += [
        Change(item, "further rows", "", f"{count - MOST_ROWS:,} more")
        for item, count in shown.items()
        if count > MOST_ROWS and not item.startswith(_BOOKKEEPING)
    ]
    rows += [
        Change(f"{items.PALLET}.CachedTrieNodes", where, "", f"{what} {cached[where, what]:,}")
        for where, what in sorted(cached)
        if not what.endswith("bytes")
    ]
    return sorted(rows, key=lambda change: (change.bookkeeping, change.item))


def _count_node(cached: Counter[tuple[str, str]], key: bytes, old: bytes | None, new: bytes | None) -> None:
    rest = key[len(items.CACHED_TRIE_NODES.prefix) + 16 :]
    where = f"{int.from_bytes(rest[:4], 'little')}, generation {int.from_bytes(rest[4:8], 'little')}"
    cached[where, "nodes removed:" if new is None else "nodes added:" if old is None else "nodes replaced:"] += 1


def _changes(key: bytes, old: bytes | None, new: bytes | None, names: Names) -> Iterator[Change]:
    item, where = state_key_words(key, names)
    try:
        if item in _MAPS:
            yield from _map_changes(item, old, new)
        elif item == f"{items.PALLET}.LastDeliveredPacked":
            yield Change(item, where, "", _packed(old or b"", new or b""))
        elif item == f"{items.PALLET}.CacheSlots":
            yield Change(item, where, _slots(old), _slots(new))
        else:
            tell = _VALUES.get(item, _plain)
            before, after = ("" if value is None else tell(value, names) for value in (old, new))
            yield Change(item, where, before, after)
    except ScaleError:
        before, after = ("" if value is None else _plain(value, names) for value in (old, new))
        yield Change(item, where, before, after)


def _map_changes(item: str, old: bytes | None, new: bytes | None) -> Iterator[Change]:
    codec = items.PROCESSED_ROOTS.codec
    mine: Mapping[ParaId, Hash] = {} if old is None else codec.decode(old)
    theirs: Mapping[ParaId, Hash] = {} if new is None else codec.decode(new)
    for para in sorted({*mine, *theirs}):
        if mine.get(para) != theirs.get(para):
            yield Change(item, str(para), _hash(mine.get(para)), _hash(theirs.get(para)))


def _hash(value: bytes | None) -> str:
    return "" if value is None else short(value)


def _packed(old: bytes, new: bytes) -> str:
    size = max(len(old), len(new))
    width = 40
    cells = [(old[at : at + width], new[at : at + width]) for at in range(0, size, width)]
    changed = sum(before != after for before, after in cells)
    held = sum(any(after) for _, after in cells)
    return f"{changed} of {min(len(cells), PACK)} written, {held} hold something"


def _slots(row: bytes | None) -> str:
    if row is None:
        return ""
    slots = [row[at : at + 32] for at in range(0, len(row), 32)]
    return f"{sum(any(slot) for slot in slots)} of {len(slots)} slots vouch"


def _plain(value: bytes, names: Names) -> str:
    del names
    return preview(value, 32) if len(value) <= 32 else f"{preview(value, 12)} ({len(value)} B)"


def _number(value: bytes, names: Names) -> str:
    del names
    return str(int.from_bytes(value, "little"))


def _cursor(value: bytes, names: Names) -> str:
    para, key = items.item.decode(value)
    return f"{para}, {names.key(key)}"


def _last(value: bytes, names: Names) -> str:
    del names
    row = items.last_delivered.decode(value)
    return f"entry {short(row.entry_hash)}, ttl {row.ttl}, inserted in {row.when_inserted}"


def _info(value: bytes, names: Names) -> str:
    del names
    row = items.cache_info.decode(value)
    return f"generation {row.generation}: {row.nodes:,} nodes, {row.bytes:,} B"


def _reason(value: bytes, names: Names) -> str:
    del names
    return items.disable_reason.decode(value).value


_MAPS: Final = (f"{items.PALLET}.ProcessedRoots", f"{items.PALLET}.SubscriptionHash")

_VALUES: Final[Mapping[str, Callable[[bytes, Names], str]]] = {
    f"{items.PALLET}.ProcessingCursor": _cursor,
    f"{items.PALLET}.LastDelivered": _last,
    f"{items.PALLET}.CacheInfo": _info,
    f"{items.PALLET}.DisabledPublishers": _reason,
    f"{items.PALLET}.LastRelayParent": _number,
    "System.Number": _number,
}

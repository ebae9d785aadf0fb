"""Commands that show storage items, raw keys, child tries, a subscriber's cache and its cursor."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import Final

from pubsub_emulator.emulator.runtimes import runtime_of
from pubsub_emulator.emulator.state_diff import key_name
from pubsub_emulator.files.pages import Grid, Line, Shown
from pubsub_emulator.primitives.pubsub import ttl_state
from pubsub_emulator.primitives.types import ParaId, RelayBlockNumber
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.runtime.framework.lazy_state import is_lazy
from pubsub_emulator.runtime.framework.pallet import AnyItem
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.framework.words import printable, words
from pubsub_emulator.runtime.pallet_subscriber import delivered
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.config import CachePolicy
from pubsub_emulator.session.blocks import ttl_words
from pubsub_emulator.session.command import (
    CommandError,
    SessionCommand,
    command,
    hexadecimal,
    number,
)
from pubsub_emulator.session.node_api import RELAY
from pubsub_emulator.session.session import ChainState, Session

STORAGE: Final[list[SessionCommand]] = []

MOST_ROWS: Final = 200

MOST_COUNTED: Final = 1000
"""The maximum number of entries that are counted of an item in a state fetched on demand."""

_PUBSUB: Final = b"pubsub"


@command(
    STORAGE,
    "storage CHAIN [ITEM] [KEY…]",
    "storage relay",
    "storage relay Broadcaster.PublishedKeys",
    "storage relay Broadcaster.TtlData 1006",
    "storage 3000 ProcessedRoots",
    "storage relay 0x26aa394eea5630e07c48ae0c9558cef702a5c1b19ab7a04f536c519aca4983ac",
)
def _storage(session: Session, chain: str, name: str | None = None, *keys: str) -> Iterator[Shown]:
    """Show what a chain stores under an item or a raw key; without ITEM, list the items.

    ITEM may omit the pallet if the name is unique. KEYs select entries of a map, in the map's
    order. For a node that was not started by `pubsub serve`, ITEM is Pallet.Item and KEYs are SCALE
    bytes.
    """
    if not session.has_facts and name is not None and not name.startswith("0x"):
        pallet, dot, item = name.partition(".")
        if not dot:
            raise CommandError(f"a storage item is Pallet.Item, not {name!r}")
        scale = tuple(hexadecimal(key, "a key's SCALE bytes") for key in keys)
        yield Line(f"{name}: {words(session.node.item_by_metadata(pallet, item, scale))}")
        return
    storage = Storage(session.state(chain))
    known = runtime_of(relay=chain == RELAY).items
    if name is None:
        yield from _list_items(storage, chain, known)
    elif name.startswith("0x"):
        key = hexadecimal(name, "a storage key")
        value = storage.get(key)
        yield Line(
            f"{key_name(key)} of {chain}:"
            f" {words(value, None) if value is not None else 'nothing is stored'}"
        )
    else:
        yield from _item(session, storage, find_item(known, name), keys)


def _list_items(storage: Storage, chain: str, known: Mapping[str, AnyItem]) -> Iterator[Shown]:
    """Show the known items that a chain stores, with their numbers of entries."""
    # Counting fetches the entries of a lazy state from a node.
    max_count = MOST_COUNTED if is_lazy(storage.state) else None
    rows: list[tuple[str, str | int]] = []
    for name, item in known.items():
        count = sum(1 for _ in islice(storage.next_keys(item.prefix), max_count))
        if count:
            rows.append((name, f"{max_count:,} or more" if count == max_count else count))
    yield Grid(f"storage of {chain}", ("item", "entries"), tuple(rows))
    yield Line("empty items are not listed; `storage CHAIN ITEM` shows one item")


def find_item(known: Mapping[str, AnyItem], name: str) -> AnyItem:
    """Return an item by `Pallet.Item`, or by `Item` if that name is unique.

    Case is ignored. Raises `CommandError` if no item or several have this name.
    """
    folded = {key.lower().replace("::", "."): key for key in known}
    folded_name = name.lower().replace("::", ".")
    matching = [
        folded[key] for key in folded if key == folded_name or key.rpartition(".")[2] == folded_name
    ]
    if len(matching) != 1:
        if matching:
            raise CommandError(f"several items are called {name!r}: {', '.join(matching)}")
        by_item = {key.rpartition(".")[2].lower(): key for key in known}
        by_name = folded | by_item
        similar = [by_name[close] for close in get_close_matches(folded_name, by_name, n=3)]
        hint = (
            f"did you mean {' or '.join(dict.fromkeys(similar))}?"
            if similar
            else "`storage CHAIN` lists all"
        )
        raise CommandError(f"unknown item {name!r}; {hint}")
    return known[matching[0]]


def _item(
    session: Session, storage: Storage, item: AnyItem, selected: tuple[str, ...]
) -> Iterator[Shown]:
    """Show the entries of an item whose first keys are those `selected`.

    A single entry is also shown uncut.
    """
    rows: list[tuple[str | int, ...]] = []
    width = 0
    more = 0
    uncut = ""
    for keys, value in item.entries(storage):
        cells = tuple(_cell(session, key) for key in keys)
        if any(
            selected_key not in (cell, words(key))
            for selected_key, cell, key in zip(selected, cells, keys, strict=False)
        ):
            continue
        width = len(keys)
        if len(rows) == MOST_ROWS:
            more += 1
        else:
            rows.append((*cells, words(value)))
            uncut = words(value, None)
    header = (*(["key"] if width == 1 else [f"key {place + 1}" for place in range(width)]), "value")
    yield Grid(f"{item.name}", header, tuple(rows))
    if len(rows) == 1 and uncut != rows[0][-1]:
        yield Line(f"value: {uncut}")
    if more:
        yield Line(f"and {more:,} more; give a KEY to select")
    if not rows:
        yield Line("nothing is stored")


def _cell(session: Session, key: object) -> str:
    """Return one key of an entry as text. Published keys, which have 32 bytes, have names."""
    return session.key_name(key) if isinstance(key, bytes) and len(key) == 32 else words(key)


@command(STORAGE, "child [PUBLISHER] [KEY]", "child", "child 1000", "child 1000 1000/3")
def _child(
    session: Session, publisher: str | None = None, name: str | None = None
) -> Iterator[Shown]:
    """List the publishers' child tries, the entries of one, or one full entry."""
    state = session.state(RELAY)
    if publisher is None:
        tries = {
            int.from_bytes(key.removeprefix(_PUBSUB), "little"): trie
            for key, trie in state.children.items()
            if key.startswith(_PUBSUB)
        }
        rows = []
        for number, trie in sorted(tries.items()):
            size = sum(len(entry) for _, entry in trie.items())
            rows.append((str(number), len(trie), size, words(trie.root())))
        yield Grid(
            f"child tries at relay block {session.number}",
            ("publisher", "keys", "bytes", "root"),
            tuple(rows),
        )
        return
    para = session.para(publisher, "a publisher's id is a whole number")
    child, (prefix,) = session.rules.placed(para, (b"",))
    if child not in state.children:
        raise CommandError(f"{para} has no child trie: it has published nothing")
    storage = Storage(state)
    if name is None:
        entries = (
            (key.removeprefix(prefix), value) for key, value in storage.child_iter(child, prefix)
        )
        yield _entries(session, para, islice(entries, MOST_ROWS))
        more = sum(1 for _ in entries)
        if more:
            yield Line(f"and {more:,} more; `child {para} KEY` shows any")
        return
    key_wanted = session.key(name)
    value = storage.child_get(child, prefix + key_wanted)
    if value is None:
        raise CommandError(f"{para} has published nothing under {name}")
    yield _entries(session, para, iter([(bytes(key_wanted), value)]))
    yield Line(f"value: {words(session.rules.read(value).value, None)}")


def _entries(session: Session, para: ParaId, entries: Iterator[tuple[bytes, bytes]]) -> Grid:
    """Return a table of entries of a publisher's child trie, with lifetimes as of now."""
    now = RelayBlockNumber(session.number)
    rows = []
    for key, value in entries:
        entry = session.rules.read(value)
        ttl = ttl_words(ttl_state(entry.ttl, entry.when_inserted, now))
        rows.append(
            (
                session.key_name(key),
                len(entry.value),
                printable(entry.value),
                entry.when_inserted,
                ttl,
            )
        )
    header = ("key", "bytes", "value", "published in", "ttl")
    return Grid(f"child trie of {para} at relay block {now}", header, tuple(rows))


@command(STORAGE, "cache SUBSCRIBER [PUBLISHER]", "cache 3000", "cache 3000 1000")
def _cache(session: Session, subscriber: str, publisher: str | None = None) -> Iterator[Shown]:
    """Show a subscriber's cache by publisher, or that of one publisher by key and row."""
    chain = session.chain(session.para(subscriber, "a subscriber's id is a whole number"))
    storage = Storage(chain.state)
    spec = chain.spec()
    if publisher is not None:
        yield from _delivered(
            session, chain, ParaId(number(publisher, "a publisher's id is a whole number"))
        )
        return
    roots = items.PROCESSED_ROOTS.get(storage)
    relay = session.state(RELAY)
    yield Line(f"cache policy of {chain.para}: {spec.cache.value}")
    rows: list[tuple[str | int, ...]] = []
    for para, keys in spec.subscriptions.items():
        delivered_keys = sum(delivered.get(storage, spec, para, key) is not None for key in keys)
        newest = relay.child_root(session.rules.placed(para, ())[0])
        root = "none yet"
        if para in roots:
            root = "the newest" if roots[para] == newest else "an older one"
        state = words(items.DISABLED_PUBLISHERS.get(storage, para) or "read")
        rows.append(
            (str(para), len(keys), delivered_keys, root, *_cached(storage, spec.cache, para), state)
        )
    header = ("publisher", "keys", "delivered", "root resolved", "cached", "bytes", "state")
    yield Grid(f"cache of {chain.para}", header, tuple(rows))


def _cached(storage: Storage, policy: CachePolicy, para: ParaId) -> tuple[str | int, int]:
    """Return a publisher's cached nodes or slots in words, and the size of their storage.

    The size is in bytes.
    """
    if policy is CachePolicy.NODES:
        info = items.CACHE_INFO.get(storage, para)
        return counted(info.nodes, "node"), info.bytes
    slot_rows = [row for _, row in items.CACHE_SLOTS.items(storage, para)]
    return f"{counted(len(slot_rows), 'row')} of slots", sum(map(len, slot_rows))


def _delivered(session: Session, chain: ChainState, publisher: ParaId) -> Iterator[Shown]:
    """Show what a subscriber remembers of one publisher: last deliveries, and cached rows or nodes.

    Raises `CommandError` if it does not subscribe to the publisher.
    """
    storage = Storage(chain.state)
    spec = chain.spec()
    keys = spec.subscriptions.get(publisher)
    if keys is None:
        raise CommandError(f"{chain.para} subscribes to no key of {publisher}")
    now = items.LAST_RELAY_PARENT.get(storage)
    rows: list[tuple[str | int, ...]] = []
    for key in keys:
        row = delivered.get(storage, spec, publisher, key)
        if row is None or now is None:
            rows.append((session.key_name(key), "never", "", ""))
        else:
            state = ttl_words(ttl_state(row.ttl, row.when_inserted, now))
            rows.append((session.key_name(key), row.when_inserted, state, words(row.entry_hash, 8)))
    header = ("key", "published in", "ttl", "entry hash")
    yield Grid(f"last deliveries from {publisher} to {chain.para}", header, tuple(rows))
    if spec.cache is CachePolicy.SLOTS:
        slots = tuple(
            (words(row), len(value) // 32)
            for row, value in items.CACHE_SLOTS.items(storage, publisher)
        )
        yield Grid("rows of slots", ("position", "slots"), slots)
    elif spec.cache is CachePolicy.NODES:
        generation = items.CACHE_INFO.get(storage, publisher).generation
        nodes = items.CACHED_TRIE_NODES.items(storage, (publisher, generation))
        yield Grid(
            "cached nodes",
            ("hash", "bytes"),
            tuple((words(node), len(value)) for node, value in nodes),
        )


@command(STORAGE, "cursor [SUBSCRIBER]", "cursor", "cursor 3002")
def _cursor(session: Session, subscriber: str | None = None) -> Iterator[Shown]:
    """Show where a subscriber's next block continues to read."""
    for para in session.listed(subscriber, subscribers=True):
        storage = Storage(session.chain(para).state)
        cursor = items.PROCESSING_CURSOR.get(storage)
        place = "the first item"
        if cursor is not None:
            publisher, key = cursor
            place = f"key {session.key_name(key)} of {publisher}"
        relay_parent = items.LAST_RELAY_PARENT.get(storage)
        last = "none yet" if relay_parent is None else relay_parent
        yield Line(f"{para}: the next block reads on at {place}; last relay parent {last}")

"""Commands that look and change nothing: chains, blocks, storage, caches, ledgers, deliveries, verdicts."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Final

from cli.blocks import delivery_rows, ledger_pages, refusal_rows, ttl_words
from cli.pages import Grid, Line, Shown, printable, words
from cli.session.command import Command, CommandError, Given, Kind, Parameter
from cli.session.session import Session, hexadecimal, number
from collator.cheats import STRATEGIES
from emulator.network import Step
from emulator.parachain import Parachain
from emulator.records import BlockRecord
from emulator.seeded import MILLION
from emulator.state_diff import key_name
from emulator.storage_items import Item, parachain_items, relay_items, rows
from primitives.header import Header
from primitives.pubsub import PublishedEntry, derive_child_key, ttl_state
from primitives.types import ParaId, RelayBlockNumber
from runtime.events import EventRecord
from runtime.pallet_subscriber import delivered
from runtime.pallet_subscriber import storage as items
from runtime.pallet_subscriber.config import CachePolicy
from runtime.storage import Storage

MOST_ROWS: Final = 200
"""Rows of storage that are shown."""

_PUBSUB: Final = b"pubsub"


def _chains(session: Session, text: str | None, *, subscribers: bool = False) -> list[Parachain]:
    """The parachain named, or all of them."""
    if text is not None:
        return [session.chain(number(text, "a parachain's id is a whole number"))]
    return [chain for chain in session.network.parachains.values() if not (subscribers and chain.pace.on_demand)]


def _status(session: Session, _given: Given) -> Iterator[Shown]:
    network, scenario = session.network, session.scenario
    yield Line(
        f"{scenario.name}: relay block {network.number} of {scenario.relay_blocks} in the scenario, branch "
        f"{session.branch}"
    )
    yield Grid(
        "parachains",
        ("parachain", "block", "subscribed keys", "collators", "cheating", "to be sent"),
        tuple(
            (
                str(para),
                chain.header.number,
                sum(map(len, chain.spec().subscriptions.values())),
                len(chain.collators),
                sum(bool(each.strategies and each.rate) for each in chain.collators),
                len(chain.publishes) + len(chain.upward) + len(chain.horizontal),
            )
            for para, chain in network.parachains.items()
        ),
    )


def _headers(session: Session, given: Given) -> Iterator[Shown]:
    chain = given.maybe("CHAIN")
    network = session.network
    found: list[tuple[str, Header]] = []
    if chain in (None, "relay"):
        found.append(("relay", network.relay.header))
    if chain != "relay":
        found += [(str(each.para), each.header) for each in _chains(session, chain)]
    for name, header in found:
        fields: list[tuple[str, str | int]] = [
            ("number", header.number),
            ("hash", words(header.hash())),
            ("parent", words(header.parent_hash)),
            ("state root", words(header.state_root)),
            ("extrinsics root", words(header.extrinsics_root)),
        ]
        if (slot := header.aura_slot()) is not None:
            fields.append(("slot", slot))
        yield Grid(f"newest header of {name}", ("field", "value"), tuple((a, str(b)) for a, b in fields))


def _events(session: Session, given: Given) -> Iterator[Shown]:
    chain = given.maybe("CHAIN") or "relay"
    step = _step_at(session, given.maybe("BLOCK"))
    if chain == "relay":
        yield _event_grid(f"events of relay block {step.number}", step.block.events)
        return
    para = session.chain(number(chain, "a chain is `relay` or a parachain's id")).para
    for record in _of(step, para):
        if record.outcome is not None:
            title = f"events of block {record.candidate.header.number} of {para}, in relay block {step.number}"
            yield _event_grid(title, record.outcome.events)


def _event_grid(title: str, events: tuple[EventRecord, ...]) -> Grid:
    return Grid(title, ("phase", "event"), tuple((_phase(each), words(each.event)) for each in events))


def _phase(record: EventRecord) -> str:
    index = getattr(record.phase, "index", None)
    return type(record.phase).__name__ if index is None else f"extrinsic {index}"


def _step_at(session: Session, text: str | None) -> Step:
    """The step of that height, the newest one without. Raises `CommandError`."""
    if not session.steps:
        raise CommandError("no block was built yet: `step` builds one")
    if text is None:
        return session.steps[-1]
    wanted = number(text, "BLOCK is the height of a relay block")
    first, last = session.steps[0].number, session.steps[-1].number
    if not first <= wanted <= last:
        raise CommandError(f"relay blocks {first} to {last} are remembered, not {wanted}")
    return session.steps[wanted - first]


def _of(step: Step, para: ParaId) -> list[BlockRecord]:
    records = [record for record in step.records if record.chain == para]
    if not records:
        raise CommandError(f"{para} built nothing in relay block {step.number}")
    return records


def _newest(session: Session, given: Given) -> list[Step]:
    blocks = number(given.maybe("BLOCKS") or "10", "BLOCKS is a number of relay blocks from 1 on", 1)
    return session.steps[-blocks:]


def _deliveries(session: Session, given: Given) -> Iterator[Shown]:
    wanted = {chain.para for chain in _chains(session, given.maybe("SUBSCRIBER"))}
    records = [record for step in _newest(session, given) for record in step.records if record.chain in wanted]
    yield Grid("deliveries", *delivery_rows(records, session.key_name))


def _verdicts(session: Session, given: Given) -> Iterator[Shown]:
    wanted = {chain.para for chain in _chains(session, given.maybe("PARA"))}
    records = [record for step in session.steps for record in step.refused if record.chain in wanted]
    yield Grid("refused blocks", *refusal_rows(records))


def _ledger(session: Session, given: Given) -> Iterator[Shown]:
    para = session.chain(number(given.one("SUBSCRIBER"), "a subscriber's id is a whole number")).para
    at = given.maybe("BLOCK")
    steps = [_step_at(session, at)] if at is not None else list(reversed(session.steps))
    for step in steps:
        found = [record for record in step.records if record.chain == para and record.outcome is not None]
        for record in found:
            if record.outcome is not None:
                title = f"block {record.candidate.header.number} of {para}, in relay block {step.number}"
                yield from ledger_pages(title, record.outcome.ledger)
        if found:
            return
    raise CommandError(f"{para} built no valid block{' there' if at is not None else ' yet'}")


def _storage(session: Session, given: Given) -> Iterator[Shown]:
    chain, name = given.one("CHAIN"), given.maybe("ITEM")
    storage = session.storage(chain)
    known = relay_items() if chain == "relay" else parachain_items()
    if name is None:
        yield from _list_items(storage, chain, known)
    elif name.startswith("0x"):
        key = hexadecimal(name, "a storage key")
        held = storage.get(key)
        yield Line(f"{key_name(key)} of {chain}: {words(held, None) if held is not None else 'nothing is stored'}")
    else:
        yield from _item(session, storage, _find_item(known, name), given.many("KEY"))


def _list_items(storage: Storage, chain: str, known: Mapping[str, Item]) -> Iterator[Shown]:
    counted = ((name, sum(1 for _ in storage.next_keys(item.prefix))) for name, item in known.items())
    yield Grid(f"storage of {chain}", ("item", "entries"), tuple((name, count) for name, count in counted if count))
    yield Line("items under which nothing is stored are left out; `storage CHAIN ITEM` shows one")


def _find_item(known: Mapping[str, Item], name: str) -> Item:
    folded = {key.lower().replace("::", "."): key for key in known}
    wanted = name.lower().replace("::", ".")
    found = [folded[key] for key in folded if key == wanted or key.rpartition(".")[2] == wanted]
    if len(found) != 1:
        which = ", ".join(found or known)
        raise CommandError(f"{'several items are' if found else 'no item is'} called {name!r}; there are {which}")
    return known[found[0]]


def _item(session: Session, storage: Storage, item: Item, wanted: tuple[str, ...]) -> Iterator[Shown]:
    shown: list[tuple[str | int, ...]] = []
    width = 0
    more = 0
    for keys, value in rows(storage, item):
        cells = tuple(_cell(session, key) for key in keys)
        if any(want not in (cell, words(key)) for want, cell, key in zip(wanted, cells, keys, strict=False)):
            continue
        width = len(keys)
        if len(shown) == MOST_ROWS:
            more += 1
        else:
            shown.append((*cells, words(value)))
    header = (*(["key"] if width == 1 else [f"key {at + 1}" for at in range(width)]), "value")
    yield Grid(f"{item.pallet}.{item.item}", header, tuple(shown))
    if more:
        yield Line(f"and {more:,} more; a KEY narrows it down")
    if not shown:
        yield Line("nothing is stored")


def _cell(session: Session, key: object) -> str:
    return session.key_name(key) if isinstance(key, bytes) and len(key) == 32 else words(key)


def _child(session: Session, given: Given) -> Iterator[Shown]:
    state, publisher = session.network.relay.state, given.maybe("PUBLISHER")
    if publisher is None:
        found = {_publisher(key): trie for key, trie in state.children.items() if key.startswith(_PUBSUB)}
        yield Grid(
            f"child tries at relay block {session.network.number}",
            ("publisher", "keys", "bytes", "root"),
            tuple(
                (
                    str(para),
                    len(trie),
                    sum(len(entry) for _, entry in trie.items()),
                    words(trie.root()),
                )
                for para, trie in sorted(found.items())
            ),
        )
        return
    para = session.chain(number(publisher, "a publisher's id is a whole number")).para
    trie = state.children.get(derive_child_key(para))
    if trie is None:
        raise CommandError(f"{para} has nothing published: it has no child trie")
    key = given.maybe("KEY")
    if key is None:
        yield _entries(session, para, islice(trie.items(), MOST_ROWS))
        if len(trie) > MOST_ROWS:
            yield Line(f"and {len(trie) - MOST_ROWS:,} more; `child {para} KEY` shows any")
        return
    wanted = session.key(key)
    held = trie.get(wanted)
    if held is None:
        raise CommandError(f"{para} has published nothing under {key}")
    yield _entries(session, para, iter([(bytes(wanted), held)]))
    yield Line(f"value: {words(PublishedEntry.decode(held).value, None)}")


def _publisher(child_key: bytes) -> int:
    """Whose child trie that is, by its storage key."""
    return int.from_bytes(child_key[len(_PUBSUB) :], "little")


def _entries(session: Session, para: ParaId, entries: Iterator[tuple[bytes, bytes]]) -> Grid:
    now = RelayBlockNumber(session.network.number)
    decoded = ((key, PublishedEntry.decode(held)) for key, held in entries)
    return Grid(
        f"child trie of {para} at relay block {now}",
        ("key", "bytes", "value", "published in", "ttl"),
        tuple(
            (
                session.key_name(key),
                len(entry.value),
                printable(entry.value),
                entry.when_inserted,
                ttl_words(ttl_state(entry.ttl, entry.when_inserted, now)),
            )
            for key, entry in decoded
        ),
    )


def _cache(session: Session, given: Given) -> Iterator[Shown]:
    chain = session.chain(number(given.one("SUBSCRIBER"), "a subscriber's id is a whole number"))
    storage, spec = Storage(chain.state), chain.spec()
    publisher = given.maybe("PUBLISHER")
    if publisher is not None:
        yield from _delivered(session, chain, ParaId(number(publisher, "a publisher's id is a whole number")))
        return
    roots = items.PROCESSED_ROOTS.get(storage)
    relay = session.network.relay.state
    yield Line(f"cache policy of {chain.para}: {spec.cache.value}")
    yield Grid(
        f"what {chain.para} remembers",
        ("publisher", "keys", "delivered", "root resolved", "cached", "bytes", "state"),
        tuple(
            (
                str(para),
                len(keys),
                sum(delivered.get(storage, spec, para, key) is not None for key in keys),
                _root(roots.get(para), relay.child_root(derive_child_key(para))),
                *_cached(storage, spec.cache, para),
                words(items.DISABLED_PUBLISHERS.get(storage, para) or "read"),
            )
            for para, keys in spec.subscriptions.items()
        ),
    )


def _root(processed: bytes | None, current: bytes | None) -> str:
    if processed is None:
        return "none yet"
    return "the newest" if processed == current else "an older one"


def _cached(storage: Storage, policy: CachePolicy, para: ParaId) -> tuple[str | int, int]:
    """What is cached of a publisher in words, and its bytes as stored."""
    if policy is CachePolicy.NODES:
        info = items.CACHE_INFO.get(storage, para)
        return f"{info.nodes} nodes", info.bytes
    held = [row for _, row in items.CACHE_SLOTS.items(storage, para)]
    return f"{len(held)} rows of slots", sum(map(len, held))


def _delivered(session: Session, chain: Parachain, publisher: ParaId) -> Iterator[Shown]:
    storage, spec = Storage(chain.state), chain.spec()
    keys = spec.subscriptions.get(publisher)
    if keys is None:
        raise CommandError(f"{chain.para} subscribes to nothing of {publisher}")
    now = items.LAST_RELAY_PARENT.get(storage)
    found: list[tuple[str | int, ...]] = []
    for key in keys:
        row = delivered.get(storage, spec, publisher, key)
        if row is None or now is None:
            found.append((session.key_name(key), "never", "", ""))
        else:
            state = ttl_words(ttl_state(row.ttl, row.when_inserted, now))
            found.append((session.key_name(key), row.when_inserted, state, words(row.entry_hash, 8)))
    header = ("key", "published in", "ttl", "entry hash")
    yield Grid(f"what {chain.para} was last delivered of {publisher}", header, tuple(found))
    if spec.cache is CachePolicy.SLOTS:
        slots = tuple((words(row), len(held) // 32) for row, held in items.CACHE_SLOTS.items(storage, publisher))
        yield Grid("rows of slots", ("position", "slots"), slots)
    elif spec.cache is CachePolicy.NODES:
        info = items.CACHE_INFO.get(storage, publisher)
        nodes = items.CACHED_TRIE_NODES.items(storage, (publisher, info.generation))
        yield Grid("cached nodes", ("hash", "bytes"), tuple((words(node), len(held)) for node, held in nodes))


def _cursor(session: Session, given: Given) -> Iterator[Shown]:
    for chain in _chains(session, given.maybe("SUBSCRIBER"), subscribers=True):
        storage = Storage(chain.state)
        at, parent = items.PROCESSING_CURSOR.get(storage), items.LAST_RELAY_PARENT.get(storage)
        behind = "none yet" if parent is None else f"{parent}"
        goes_on = "at the first item" if at is None else f"at key {session.key_name(at[1])} of {at[0]}"
        yield Line(f"{chain.para}: the next walk goes on {goes_on}; last relay parent {behind}")


def _subscriptions(session: Session, given: Given) -> Iterator[Shown]:
    for chain in _chains(session, given.maybe("SUBSCRIBER"), subscribers=True):
        spec = session.spec(chain.para)
        waiting = " (ordered, not in force yet)" if chain.para in session.wanted else ""
        yield Grid(
            f"subscriptions of {chain.para}{waiting}",
            ("publisher", "keys", "which"),
            tuple((str(p), len(keys), _few(session, keys)) for p, keys in spec.subscriptions.items()),
        )


def _few(session: Session, keys: tuple[bytes, ...], most: int = 6) -> str:
    names = sorted(session.key_name(key) for key in keys)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _collators(session: Session, given: Given) -> Iterator[Shown]:
    found = [
        (str(chain.para), at, words(each.key), _habit(each.strategies, each.rate))
        for chain in _chains(session, given.maybe("PARA"), subscribers=True)
        for at, each in enumerate(chain.collators, start=1)
    ]
    yield Grid("collators", ("parachain", "collator", "key", "tries"), tuple(found))


def _habit(strategies: tuple[str, ...], rate: int) -> str:
    if not strategies or not rate:
        return "nothing: honest"
    often = "" if rate == MILLION else f" in {rate / MILLION:.0%} of its turns"
    return ", ".join(strategies) + often


def _strategies(_session: Session, _given: Given) -> Iterator[Shown]:
    found = (
        (each.name, each.gain, ", ".join(verdict.value for verdict in each.meets) or "by the case")
        for each in STRATEGIES.values()
    )
    yield Grid("strategies", ("name", "to gain", "meets"), tuple(found))


def _look(  # noqa: PLR0917  # in the order of `Command`
    name: str,
    summary: str,
    run: Callable[[Session, Given], Iterator[Shown]],
    parameters: tuple[Parameter, ...] = (),
    examples: tuple[str, ...] = (),
    details: str = "",
    aliases: tuple[str, ...] = (),
) -> Command:
    return Command(name, summary, run, parameters, details, examples or (name,), aliases)


_SUBSCRIBER: Final = Parameter("SUBSCRIBER", Kind.SUBSCRIBER)
_ANY_SUBSCRIBER: Final = Parameter("SUBSCRIBER", Kind.SUBSCRIBER, optional=True)
_ANY_CHAIN: Final = Parameter("CHAIN", Kind.CHAIN, optional=True)
_ANY_PARA: Final = Parameter("PARA", Kind.PARA, optional=True)
_ANY_PUBLISHER: Final = Parameter("PUBLISHER", Kind.PUBLISHER, optional=True)
_AT_BLOCK: Final = Parameter("BLOCK", Kind.NUMBER, optional=True)
_BLOCKS: Final = Parameter("BLOCKS", Kind.NUMBER, optional=True)

LOOKING: Final = (
    _look("status", "Where the network stands: chains, heights, what waits to be sent.", _status, aliases=("s",)),
    _look("headers", "The newest headers.", _headers, (_ANY_CHAIN,), ("headers", "headers 3000")),
    _look(
        "events",
        "The events of the newest relay block, or of another block that is remembered.",
        _events,
        (_ANY_CHAIN, _AT_BLOCK),
        ("events", "events relay 7", "events 3000"),
        "Without CHAIN the relay chain's; BLOCK is the height of a relay block, also for a parachain's events.",
    ),
    _look(
        "deliveries",
        "What subscribers were given in the newest relay blocks, ten unless told otherwise.",
        _deliveries,
        (_ANY_SUBSCRIBER, _BLOCKS),
        ("deliveries", "deliveries 3000 50"),
    ),
    _look(
        "verdicts",
        "The blocks that were refused, and why.",
        _verdicts,
        (_ANY_PARA,),
        ("verdicts", "verdicts 3000"),
    ),
    _look(
        "ledger",
        "Where the bytes of a subscriber's block went: budget, messages, proof, by publisher.",
        _ledger,
        (_SUBSCRIBER, _AT_BLOCK),
        ("ledger 3000", "ledger 3000 12"),
        "The newest block, or those in relay block BLOCK.",
        ("budget",),
    ),
    _look(
        "storage",
        "What a chain stores under an item or a raw key; without one, the items there are.",
        _storage,
        (
            Parameter("CHAIN", Kind.CHAIN),
            Parameter("ITEM", Kind.ITEM, optional=True),
            Parameter("KEY", Kind.KEY, optional=True, many=True),
        ),
        (
            "storage relay",
            "storage relay Broadcaster.PublishedKeys",
            "storage relay Broadcaster.TtlData 1006",
            "storage 3000 ProcessedRoots",
            "storage relay 0x26aa394eea5630e07c48ae0c9558cef702a5c1b19ab7a04f536c519aca4983ac",
        ),
        "ITEM may leave the pallet out where the name is the only one. KEYs narrow a map down, in its order.",
    ),
    _look(
        "child",
        "The publishers' child tries; of one publisher its entries, or one entry whole.",
        _child,
        (_ANY_PUBLISHER, Parameter("KEY", Kind.KEY, optional=True)),
        ("child", "child 1000", "child 1000 1000/3"),
    ),
    _look(
        "cache",
        "What a subscriber remembers of its publishers; of one of them, by key and row.",
        _cache,
        (_SUBSCRIBER, _ANY_PUBLISHER),
        ("cache 3000", "cache 3000 1000"),
    ),
    _look("cursor", "Where a subscriber's next walk goes on.", _cursor, (_ANY_SUBSCRIBER,), ("cursor", "cursor 3002")),
    _look(
        "subscriptions",
        "What subscribers read.",
        _subscriptions,
        (_ANY_SUBSCRIBER,),
        ("subscriptions", "subscriptions 3000"),
    ),
    _look("collators", "Who authors blocks, and who cheats.", _collators, (_ANY_PARA,), ("collators 3000",)),
    _look("strategies", "Every cheating strategy, what it is after, and the verdict it must meet.", _strategies),
)

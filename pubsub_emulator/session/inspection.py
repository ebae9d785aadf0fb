"""Commands that show what happened: chains, blocks, ledgers, deliveries, verdicts, collators."""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pubsub_emulator.client.answers import HEAD, TEXT
from pubsub_emulator.collator.cheats import STRATEGIES
from pubsub_emulator.files.pages import Grid, Line, Shown
from pubsub_emulator.primitives.draws import MILLION
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.runtime.framework.words import printable, words
from pubsub_emulator.session import answers
from pubsub_emulator.session.answers import Delivery
from pubsub_emulator.session.blocks import ledger_pages, ttl_words
from pubsub_emulator.session.command import Command, CommandError, command, number
from pubsub_emulator.session.node_api import RELAY
from pubsub_emulator.session.session import SOME, Session

INSPECTION: Final[list[Command]] = []


@command(INSPECTION, "status", aliases=("s",))
def _status(session: Session) -> Iterator[Shown]:
    """Show the network: chains, heights, messages waiting to be sent."""
    if session.node.url:
        final = session.read(HEAD, "chain_getHeader", session.ask("chain_getFinalizedHead")).number
        name = session.read(TEXT, "system_chain")
        yield Line(
            f"{name} at {session.node.url}: best block {session.number}, final block {final}"
        )
    if session.setting is None:
        yield Line(SOME)
        return
    now, first, last = session.number, session.setting.first, session.setting.relay_blocks
    of = (
        f", {now - first} of {counted(last, 'block')} of the scenario"
        if first
        else f" of {last} in the scenario"
    )
    yield Line(f"{session.setting.name}: relay block {now}{of}, branch {session.branch}")
    for each in session.setting.forks:
        yield Line(
            f"{each.chain} continues from {each.source or 'a state'}, state root {hexed(each.root)}"
        )
    yield Grid(
        "parachains",
        ("parachain", "block", "subscribed keys", "collators", "cheating", "waiting to be sent"),
        tuple(
            (
                str(each.para),
                each.number,
                each.subscribed_keys,
                each.collators,
                each.cheating,
                each.waiting,
            )
            for each in session.parachains()
        ),
    )


@command(INSPECTION, "headers [CHAIN]", "headers", "headers 3000")
def _headers(session: Session, chain: str | None = None) -> Iterator[Shown]:
    """Show the newest headers."""
    names = [RELAY] if chain in {None, RELAY} else []
    if chain != RELAY and not (chain is None and session.setting is None):
        names += map(str, session.listed(chain))
    for name in names:
        head = session.head(name)
        fields = [
            ("number", str(head.number)),
            ("hash", hexed(session.newest(name))),
            ("parent", hexed(head.parent_hash)),
            ("state root", hexed(head.state_root)),
            ("extrinsics root", hexed(head.extrinsics_root)),
        ]
        if (slot := head.aura_slot()) is not None:
            fields.append(("slot", str(slot)))
        yield Grid(f"newest header of {name}", ("field", "value"), tuple(fields))


@command(INSPECTION, "events [CHAIN] [BLOCK]", "events", "events relay 7", "events 3000")
def _events(session: Session, chain: str = RELAY, at: str | None = None) -> Iterator[Shown]:
    """Show the events of the newest relay block, or of an earlier block that is kept.

    The default CHAIN is relay. BLOCK is the height of a relay block, also for a parachain's events.
    """
    if session.setting is None:
        height = (
            session.number if at is None else number(at, "BLOCK is the height of a relay block")
        )
        yield _event_grid(
            session, f"events of relay block {height}", chain, session.relay_hash(height)
        )
        return
    block = session.block_at(at)
    if chain == RELAY:
        yield _event_grid(session, f"events of relay block {block.number}", chain, block.hash)
        return
    para = session.para(chain, "a chain is `relay` or a parachain's id")
    built = [each for each in block.blocks if each.para == para]
    if not built:
        raise CommandError(f"{para} built no block in relay block {block.number}")
    for each in built:
        if each.verdict is None:
            title = f"events of block {each.number} of {para}, in relay block {block.number}"
            yield _event_grid(session, title, str(para), each.hash)


def _event_grid(session: Session, title: str, chain: str, block: bytes) -> Grid:
    return Grid(
        title,
        ("phase", "event"),
        tuple((each.phase, each.text) for each in session.events(chain, block)),
    )


@command(INSPECTION, "deliveries [SUBSCRIBER] [BLOCKS]", "deliveries", "deliveries 3000 50")
def _deliveries(
    session: Session, subscriber: str | None = None, most: str = "10"
) -> Iterator[Shown]:
    """Show what subscribers received in the newest relay blocks (default 10)."""
    wanted = set(session.listed(subscriber))
    blocks = session.blocks(number(most, "BLOCKS is a number of relay blocks, at least 1", 1))
    found = []
    for block in blocks:
        found += [each for each in deliveries(session, block.hash) if each.para in wanted]
    yield delivery_grid(session, "deliveries", found)


def deliveries(session: Session, block: bytes) -> tuple[Delivery, ...]:
    """The deliveries of a relay block."""
    return session.read(answers.DELIVERIES, "pubsub_deliveries", None, hexed(block))


def delivery_grid(session: Session, title: str, found: Iterable[Delivery]) -> Grid:
    """Deliveries as a table."""
    rows = []
    for each in found:
        block = each.included_at, str(each.para), each.number
        value = "removed" if each.value is None else printable(each.value)
        ttl = "" if each.ttl_state is None else ttl_words(each.ttl_state)
        rows.append((*block, str(each.publisher), session.key_name(each.key), value, ttl))
    return Grid(
        title,
        ("relay block", "subscriber", "block", "publisher", "key", "value", "ttl"),
        tuple(rows),
    )


@command(INSPECTION, "verdicts [PARA]", "verdicts", "verdicts 3000")
def _verdicts(session: Session, para: str | None = None) -> Iterator[Shown]:
    """Show refused blocks and the reasons."""
    yield refusal_grid("refused blocks", session.blocks(), session.listed(para))


def refusal_grid(
    title: str, blocks: Iterable[answers.RelayBlock], wanted: Iterable[ParaId]
) -> Grid:
    """The refused blocks of some parachains as a table."""
    rows: list[tuple[str | int, ...]] = []
    for block in blocks:
        rows += [
            (
                block.number,
                str(each.para),
                each.number,
                str(each.verdict),
                each.strategy or "",
                "; ".join(each.evidence),
            )
            for each in block.refused
            if each.para in wanted
        ]
    header = ("relay block", "parachain", "block", "verdict", "strategy", "why")
    return Grid(title, header, tuple(rows))


@command(
    INSPECTION, "ledger SUBSCRIBER [BLOCK]", "ledger 3000", "ledger 3000 12", aliases=("budget",)
)
def _ledger(session: Session, subscriber: str, at: str | None = None) -> Iterator[Shown]:
    """Show what used the bytes of a subscriber's block: budget, messages, proof, by publisher.

    Shows the newest block, or those in relay block BLOCK.
    """
    para = session.para(subscriber, "a subscriber's id is a whole number")
    for block in [session.block_at(at)] if at is not None else reversed(session.blocks()):
        found = [each for each in block.valid if each.para == para]
        for each in found:
            ledger = session.read(answers.LEDGER, "pubsub_ledger", para, hexed(each.hash))
            if ledger is not None:
                title = f"block {each.number} of {para}, in relay block {block.number}"
                yield from ledger_pages(title, ledger.ledger())
        if found:
            return
    raise CommandError(f"{para} built no valid block{' there' if at is not None else ' yet'}")


@command(INSPECTION, "subscriptions [SUBSCRIBER]", "subscriptions", "subscriptions 3000")
def _subscriptions(session: Session, subscriber: str | None = None) -> Iterator[Shown]:
    """Show what subscribers subscribe to."""
    for para in session.listed(subscriber, subscribers=True):
        spec, in_force = session.runtime(para)
        waiting = "" if in_force else " (sent, not in force yet)"
        rows = tuple(
            (str(of), len(keys), _few(session, keys)) for of, keys in spec.subscriptions.items()
        )
        yield Grid(f"subscriptions of {para}{waiting}", ("publisher", "keys", "which"), rows)


def _few(session: Session, keys: Iterable[bytes], most: int = 6) -> str:
    listed = sorted(session.key_name(key) for key in keys)
    return ", ".join(listed[:most]) + (
        f" and {len(listed) - most} more" if len(listed) > most else ""
    )


@command(INSPECTION, "collators [PARA]", "collators 3000")
def _collators(session: Session, of: str | None = None) -> Iterator[Shown]:
    """Show who authors blocks and who cheats."""
    rows: list[tuple[str | int, ...]] = []
    for para in session.listed(of, subscribers=True):
        found = session.read(answers.COLLATORS, "pubsub_collators", para)
        rows += [(str(para), each.collator, words(each.key), _habit(each)) for each in found]
    yield Grid("collators", ("parachain", "collator", "key", "tries"), tuple(rows))


def _habit(collator: answers.Collator) -> str:
    rate = round(collator.rate * MILLION)
    often = "" if rate == MILLION else f" in {rate / MILLION:.0%} of its turns"
    return (
        ", ".join(collator.strategies) + often
        if collator.strategies and rate
        else "nothing: honest"
    )


@command(INSPECTION, "strategies")
def _strategies(_session: Session) -> Iterator[Shown]:
    """Show every cheating strategy, what it tries to gain, and the verdict it must get."""
    found = (
        (
            each.name,
            each.gain,
            ", ".join(verdict.value for verdict in each.meets) or "depends on the case",
        )
        for each in STRATEGIES.values()
    )
    yield Grid("strategies", ("name", "tries to gain", "verdict"), tuple(found))


@command(INSPECTION, "publishers")
def _publishers(session: Session) -> Iterator[Shown]:
    """Show everyone who is registered or has published."""
    yield from _shown(
        "publishers", session.read(answers.PUBLISHERS, "pubsub_publishers").publishers
    )


@command(INSPECTION, "candidates PARA [BLOCK]", "candidates 3000", "candidates 3000 7")
def _candidates(session: Session, of: str, at: str | None = None) -> Iterator[Shown]:
    """Show the candidates that were judged for a relay block, refused ones too."""
    para = session.para(of)
    block = session.block_at(at)
    found = session.read(answers.CANDIDATES, "pubsub_candidates", para, hexed(block.hash))
    if not found:
        yield Line(f"no candidate of {para} was judged for relay block {block.number}")
        return
    yield from _shown(f"candidates for relay block {block.number}", found)


@command(INSPECTION, "call METHOD [PARAM…]", "call system_health", "call pubsub_entry 1000 DOT/USD")
def _call(session: Session, method: str, *texts: str) -> Iterator[Shown]:
    """Call any method of the node; parameters are JSON or text.

    `call rpc_methods` and docs/node.md list the methods. JSON stands in single quotes:
    '["0x26aa"]'. An answer that is too long for a table is printed whole, as JSON.
    """
    params = []
    for each in texts:
        try:
            params.append(json.loads(each))
        except (ValueError, RecursionError):
            params.append(each)
    try:
        found = session.ask(method, *params)
        pages = tuple(_shown(method, found))
        cut = any(_has_cut_cell(page) for page in pages if isinstance(page, Grid))
        yield from (
            map(Line, json.dumps(found, ensure_ascii=False, indent=1).splitlines())
            if cut
            else pages
        )
    except RecursionError:
        raise CommandError(f"{method}: the answer is nested too deeply to be shown") from None


def _has_cut_cell(page: Grid) -> bool:
    return any(_CUT in str(cell) for cell in itertools.chain.from_iterable(page.rows))


_CUT: Final = "…"
"""Ends a cell that does not have all of its value."""


def _cell(found: object) -> str:
    """Numbers without separators: most are ids and heights, which a user types again."""
    if isinstance(found, int) and not isinstance(found, bool):
        return str(found)
    if isinstance(found, str):
        return found if len(found) <= 70 else f"{found[:66]}{_CUT}"
    return "" if found is None else _cell(json.dumps(found, ensure_ascii=False))


def _shown(title: str, found: object) -> Iterator[Shown]:
    """JSON as a table: one row per object of a list, or one row per field."""
    if isinstance(found, list) and found and all(isinstance(each, Mapping) for each in found):
        header = tuple(dict.fromkeys(itertools.chain.from_iterable(found)))
        yield Grid(
            title, header, tuple(tuple(_cell(each.get(name)) for name in header) for each in found)
        )
    elif isinstance(found, Mapping):
        yield Grid(
            title, ("field", "value"), tuple((name, _cell(each)) for name, each in found.items())
        )
    else:
        yield Line(f"{title}: {json.dumps(found, ensure_ascii=False)}")

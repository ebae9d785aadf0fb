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
from pubsub_emulator.session.answers import DeliveredKey
from pubsub_emulator.session.blocks import ledger_pages, ttl_words
from pubsub_emulator.session.command import CommandError, SessionCommand, command, number
from pubsub_emulator.session.node_api import RELAY
from pubsub_emulator.session.session import NO_FACTS, Session

INSPECTION: Final[list[SessionCommand]] = []


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
        yield Line(NO_FACTS)
        return
    now = session.number
    first = session.setting.first
    last = session.setting.relay_blocks
    # A forked network begins at a height above 0.
    position = (
        f", {now - first} of {counted(last, 'block')} of the scenario"
        if first
        else f" of {last} in the scenario"
    )
    yield Line(f"{session.setting.name}: relay block {now}{position}, branch {session.branch}")
    for fork in session.setting.forks:
        yield Line(
            f"{fork.chain} continues from {fork.source or 'a state'}, state root {hexed(fork.root)}"
        )
    yield Grid(
        "parachains",
        ("parachain", "block", "subscribed keys", "collators", "cheating", "waiting to be sent"),
        tuple(
            (
                str(parachain.para),
                parachain.number,
                parachain.subscribed_keys,
                parachain.collators,
                parachain.cheating,
                parachain.waiting,
            )
            for parachain in session.parachains()
        ),
    )


@command(INSPECTION, "headers [CHAIN]", "headers", "headers 3000")
def _headers(session: Session, chain: str | None = None) -> Iterator[Shown]:
    """Show the newest headers."""
    if chain is not None and chain != RELAY:
        names = [str(session.para(chain))]
    elif chain is None and session.has_facts:
        names = [RELAY, *map(str, session.paras)]
    else:
        names = [RELAY]
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
def _events(
    session: Session, chain: str = RELAY, height_text: str | None = None
) -> Iterator[Shown]:
    """Show the events of the newest relay block, or of an earlier block that is kept.

    The default CHAIN is relay. BLOCK is the height of a relay block, also for a parachain's events.
    """
    if not session.has_facts:
        height = (
            session.number
            if height_text is None
            else number(height_text, "BLOCK is the height of a relay block")
        )
        yield _event_grid(
            session, f"events of relay block {height}", chain, session.relay_hash(height)
        )
        return
    block = session.block_at(height_text)
    if chain == RELAY:
        yield _event_grid(session, f"events of relay block {block.number}", chain, block.hash)
        return
    para = session.para(chain, "a chain is `relay` or a parachain's id")
    built = [candidate for candidate in block.blocks if candidate.para == para]
    if not built:
        raise CommandError(f"{para} built no block in relay block {block.number}")
    for candidate in built:
        if candidate.verdict is None:
            title = f"events of block {candidate.number} of {para}, in relay block {block.number}"
            yield _event_grid(session, title, str(para), candidate.hash)


def _event_grid(session: Session, title: str, chain: str, block: bytes) -> Grid:
    return Grid(
        title,
        ("phase", "event"),
        tuple((event.phase, event.text) for event in session.events(chain, block)),
    )


@command(INSPECTION, "deliveries [SUBSCRIBER] [BLOCKS]", "deliveries", "deliveries 3000 50")
def _deliveries(
    session: Session, subscriber: str | None = None, count_text: str = "10"
) -> Iterator[Shown]:
    """Show what subscribers received in the newest relay blocks (default 10)."""
    paras = set(session.listed(subscriber))
    count = number(count_text, "BLOCKS is a number of relay blocks, at least 1", 1)
    blocks = session.blocks(count)
    received = []
    for block in blocks:
        received += [
            delivery for delivery in deliveries(session, block.hash) if delivery.para in paras
        ]
    yield delivery_grid(session, "deliveries", received)


def deliveries(session: Session, block: bytes) -> tuple[DeliveredKey, ...]:
    """Return the deliveries of a relay block."""
    return session.read(answers.DELIVERIES, "pubsub_deliveries", None, hexed(block))


def delivery_grid(session: Session, title: str, received: Iterable[DeliveredKey]) -> Grid:
    """Return a table of deliveries."""
    rows = []
    for delivery in received:
        block = delivery.included_at, str(delivery.para), delivery.number
        value = "removed" if delivery.value is None else printable(delivery.value)
        ttl = "" if delivery.ttl_state is None else ttl_words(delivery.ttl_state)
        rows.append((*block, str(delivery.publisher), session.key_name(delivery.key), value, ttl))
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
    title: str, blocks: Iterable[answers.RelayBlockOutcome], paras: Iterable[ParaId]
) -> Grid:
    """Return a table of the refused blocks of some parachains."""
    rows: list[tuple[str | int, ...]] = []
    for block in blocks:
        rows += [
            (
                block.number,
                str(candidate.para),
                candidate.number,
                str(candidate.verdict),
                candidate.strategy or "",
                "; ".join(candidate.evidence),
            )
            for candidate in block.refused
            if candidate.para in paras
        ]
    header = ("relay block", "parachain", "block", "verdict", "strategy", "why")
    return Grid(title, header, tuple(rows))


@command(
    INSPECTION, "ledger SUBSCRIBER [BLOCK]", "ledger 3000", "ledger 3000 12", aliases=("budget",)
)
def _ledger(session: Session, subscriber: str, height_text: str | None = None) -> Iterator[Shown]:
    """Show what used the bytes of a subscriber's block: budget, messages, proof, by publisher.

    Shows the newest block, or those in relay block BLOCK.
    """
    para = session.para(subscriber, "a subscriber's id is a whole number")
    # Without BLOCK, the search goes back from the newest relay block to one with a block of `para`.
    blocks = session.blocks()[::-1] if height_text is None else [session.block_at(height_text)]
    for block in blocks:
        candidates = [candidate for candidate in block.valid if candidate.para == para]
        for candidate in candidates:
            ledger = session.read(answers.LEDGER, "pubsub_ledger", para, hexed(candidate.hash))
            if ledger is not None:
                title = f"block {candidate.number} of {para}, in relay block {block.number}"
                yield from ledger_pages(title, ledger.ledger())
        if candidates:
            return
    raise CommandError(
        f"{para} built no valid block{' there' if height_text is not None else ' yet'}"
    )


@command(INSPECTION, "subscriptions [SUBSCRIBER]", "subscriptions", "subscriptions 3000")
def _subscriptions(session: Session, subscriber: str | None = None) -> Iterator[Shown]:
    """Show what subscribers subscribe to."""
    for para in session.listed(subscriber, subscribers=True):
        spec, in_force = session.runtime(para)
        waiting = "" if in_force else " (sent, not in force yet)"
        rows = tuple(
            (str(publisher), len(keys), _few(session, keys))
            for publisher, keys in spec.subscriptions.items()
        )
        yield Grid(f"subscriptions of {para}{waiting}", ("publisher", "keys", "which"), rows)


def _few(session: Session, keys: Iterable[bytes], most: int = 6) -> str:
    """Return the names of the first `most` keys, and the number of the others."""
    names = sorted(session.key_name(key) for key in keys)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


@command(INSPECTION, "collators [PARA]", "collators 3000")
def _collators(session: Session, para_text: str | None = None) -> Iterator[Shown]:
    """Show who authors blocks and who cheats."""
    rows: list[tuple[str | int, ...]] = []
    for para in session.listed(para_text, subscribers=True):
        collators = session.read(answers.COLLATORS, "pubsub_collators", para)
        rows += [
            (str(para), collator.collator, words(collator.key), _habit(collator))
            for collator in collators
        ]
    yield Grid("collators", ("parachain", "collator", "key", "tries"), tuple(rows))


def _habit(collator: answers.CollatorStatus) -> str:
    """Return the strategies that a collator tries, and how often."""
    millionths = round(collator.rate * MILLION)
    if not collator.strategies or not millionths:
        return "nothing: honest"
    often = "" if millionths == MILLION else f" in {millionths / MILLION:.0%} of its turns"
    return ", ".join(collator.strategies) + often


@command(INSPECTION, "strategies")
def _strategies(_session: Session) -> Iterator[Shown]:
    """Show every cheating strategy, what it tries to gain, and the verdict it must get."""
    rows = []
    for strategy in STRATEGIES.values():
        verdicts = ", ".join(verdict.value for verdict in strategy.meets)
        rows.append((strategy.name, strategy.gain, verdicts or "depends on the case"))
    yield Grid("strategies", ("name", "tries to gain", "verdict"), tuple(rows))


@command(INSPECTION, "publishers")
def _publishers(session: Session) -> Iterator[Shown]:
    """Show everyone who is registered or has published."""
    yield from _shown(
        "publishers", session.read(answers.PUBLISHERS, "pubsub_publishers").publishers
    )


@command(INSPECTION, "candidates PARA [BLOCK]", "candidates 3000", "candidates 3000 7")
def _candidates(
    session: Session, para_text: str, height_text: str | None = None
) -> Iterator[Shown]:
    """Show the candidates that were judged for a relay block, refused ones too."""
    para = session.para(para_text)
    block = session.block_at(height_text)
    candidates = session.read(answers.CANDIDATES, "pubsub_candidates", para, hexed(block.hash))
    if not candidates:
        yield Line(f"no candidate of {para} was judged for relay block {block.number}")
        return
    yield from _shown(f"candidates for relay block {block.number}", candidates)


@command(INSPECTION, "call METHOD [PARAM…]", "call system_health", "call pubsub_entry 1000 DOT/USD")
def _call(session: Session, method: str, *texts: str) -> Iterator[Shown]:
    """Call any method of the node; parameters are JSON or text.

    `call rpc_methods` and docs/node.md list the methods. JSON stands in single quotes:
    '["0x26aa"]'. An answer that is too long for a table is printed whole, as JSON.
    """
    params = []
    for text in texts:
        try:
            params.append(json.loads(text))
        except (ValueError, RecursionError):
            params.append(text)
    try:
        answer = session.ask(method, *params)
        pages = tuple(_shown(method, answer))
        if any(_has_cut_cell(page) for page in pages if isinstance(page, Grid)):
            text = json.dumps(answer, ensure_ascii=False, indent=1)
            pages = tuple(map(Line, text.splitlines()))
        yield from pages
    except RecursionError:
        raise CommandError(f"{method}: the answer is nested too deeply to be shown") from None


def _has_cut_cell(page: Grid) -> bool:
    return any(_CUT in str(cell) for cell in itertools.chain.from_iterable(page.rows))


_CUT: Final = "…"
"""Ends a cell that does not have all of its value."""


def _cell(value: object) -> str:
    """Return a JSON value as a cell.

    Numbers have no separators: most are ids and heights, which a user types again.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return value if len(value) <= 70 else f"{value[:66]}{_CUT}"
    return "" if value is None else _cell(json.dumps(value, ensure_ascii=False))


def _shown(title: str, value: object) -> Iterator[Shown]:
    """Yield a JSON value as a table or a line.

    A table has a row for each object of a list, or for each field of an object.
    """
    if isinstance(value, list) and value and all(isinstance(part, Mapping) for part in value):
        header = tuple(dict.fromkeys(itertools.chain.from_iterable(value)))
        yield Grid(
            title, header, tuple(tuple(_cell(part.get(name)) for name in header) for part in value)
        )
    elif isinstance(value, Mapping):
        yield Grid(
            title, ("field", "value"), tuple((name, _cell(part)) for name, part in value.items())
        )
    else:
        yield Line(f"{title}: {json.dumps(value, ensure_ascii=False)}")

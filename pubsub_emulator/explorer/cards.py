"""Notebook cards of the emulator's objects as HTML, and lines of text for consoles."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from pubsub_emulator.emulator.network import Network, Step
from pubsub_emulator.emulator.network.records import BlockRecord
from pubsub_emulator.emulator.state_diff import NodeDifference, StateDifference
from pubsub_emulator.explorer.block_tree import draw_block
from pubsub_emulator.explorer.svg import arrange, legend, render
from pubsub_emulator.explorer.tree import Drawn, draw_read, draw_trie
from pubsub_emulator.explorer.words import (
    VERDICTS,
    DisplayNames,
    event_words,
    ledger_cells,
    preview,
    short,
    ttl_words,
)
from pubsub_emulator.pages.assets import asset
from pubsub_emulator.pages.html import Html, fold, join, table, tag
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.pubsub import derive_child_key
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.runtime.framework.events import EventRecord
from pubsub_emulator.runtime.framework.executive import Block
from pubsub_emulator.runtime.framework.lazy_state import is_lazy
from pubsub_emulator.runtime.framework.pallet import Event
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.apply import Delivery
from pubsub_emulator.runtime.parachain.block import Candidate, InvalidBlock
from pubsub_emulator.runtime.parachain.execute import BlockOutcome
from pubsub_emulator.runtime.parachain.ledger import BlockLedger
from pubsub_emulator.trie import Trie

MOST_KEYS: Final = 256
"""The maximum number of keys of a trie that its card draws."""
MOST_ROWS: Final = 100
"""The maximum number of rows of a table."""
MOST_CARDS: Final = 12
"""The maximum number of cards of a list."""

_NAMES: Final = DisplayNames()


class Picture:
    """Drawn tries for a notebook or a file. `svg` is a complete file."""

    def __init__(self, trees: Iterable[Drawn], title: str) -> None:
        self.title = title
        self.drawing = arrange(trees)
        self.svg = render(self.drawing)

    def __repr__(self) -> str:
        return f"<{self.title}: {len(self.drawing.placed)} places drawn>"

    def _repr_html_(self) -> str:
        return card(tag("b", self.title), Html(legend()), tag("div", Html(self.svg), class_="w"))


def picture_of_proof(root: bytes, nodes: Iterable[bytes], keys: Iterable[bytes]) -> Picture:
    """Draw a proof of `keys` under `root`, with pruned, missing and unused nodes."""
    return Picture(draw_read(Hash(root), nodes, keys), f"proof under {short(root)}")


def picture_of_trie(trie: Trie) -> Picture:
    """Draw a trie with its nodes, up to `MOST_KEYS` keys."""
    keys = [key for key, _ in zip(trie.keys(), range(MOST_KEYS), strict=False)]
    nodes: dict[Hash, bytes] = {}
    trie.prove(keys, nodes)
    suffix = f", the first {MOST_KEYS} drawn" if len(trie) > MOST_KEYS else ""
    return Picture(
        draw_trie(trie.root(), nodes.values()), f"trie of {counted(len(trie), 'key')}{suffix}"
    )


def picture_of_block(record: BlockRecord) -> Picture:
    """Draw the proof of a candidate."""
    plan = None if record.outcome is None else record.outcome.plan
    return Picture(
        draw_block(record, plan, _NAMES),
        f"proof of {counted(len(record.candidate.inherent.proof), 'node')}",
    )


# Cards


def card(*content: object) -> str:
    """Return content in the frame and style of all cards."""
    style = Html(f"<style>{asset('block/trie.css')}{asset('block/card.css')}</style>")
    return str(tag("div", style, *content, class_="pubsub-card"))


def _network_card(network: Network) -> str:
    """Return the card of a network with a row per parachain."""
    header = network.relay.header
    rows = []
    for para, chain in network.parachains.items():
        parent = items.LAST_RELAY_PARENT.get(Storage(chain.state))
        spec = chain.spec()
        keys = sum(map(len, spec.subscriptions.values()))
        cache = spec.cache.value if spec.subscriptions else ""
        published = len(network.relay.state.children.get(derive_child_key(para)) or ())
        waiting = len(chain.publishes) + len(chain.upward)
        rows.append(
            (
                str(para),
                chain.header.number,
                parent,
                keys,
                cache,
                len(chain.collators),
                published,
                waiting,
            )
        )
    head = (
        "chain",
        "block",
        "relay parent",
        "keys read",
        "cache",
        "collators",
        "keys published",
        "waiting",
    )
    title = tag(
        "p",
        tag("b", f"Network at relay block {header.number:,}"),
        f" · state root {short(header.state_root)}",
    )
    return card(title, table(head, rows))


def _step_card(step: Step) -> str:
    """Return the card of a step with its candidates, deliveries and events."""
    rows = []
    delivered = list[Delivery]()
    for record in step.records:
        number = record.candidate.header.number
        proof = len(record.candidate.inherent.proof)
        used = None if record.outcome is None else record.outcome.ledger.used
        deliveries = () if record.outcome is None else record.outcome.deliveries
        rows.append((str(record.chain), number, _verdict(record), proof, used, len(deliveries)))
        delivered += deliveries
    return card(
        tag("p", tag("b", f"Relay block {step.number:,}"), f" · {short(step.block.header.hash())}"),
        table(("chain", "block", "verdict", "proof nodes", "bytes used", "deliveries"), rows),
        fold(f"Deliveries: {len(delivered):,}", _deliveries(delivered)) if delivered else None,
        fold(
            f"Events: {len(step.events):,}",
            _lines(event_words(event, _NAMES) for event in step.events),
        ),
    )


def record_card(record: BlockRecord, picture: Picture | None = None) -> str:
    """Return the card of a candidate with its verdict, ledger, deliveries and proof.

    `picture` is the drawing of the proof, if there is one already.
    """
    header = record.candidate.header
    outcome = record.outcome
    picture = picture or picture_of_block(record)
    return card(
        tag("p", tag("b", f"Chain {record.chain}, block {header.number:,} "), _verdict(record)),
        tag(
            "p",
            f"judged in relay block {record.included_at}, hash {short(record.candidate.hash())}",
        ),
        None if record.refusal is None else _evidence(record.refusal),
        None if outcome is None else _ledger(outcome.ledger, dict(record.unpruned)),
        fold(picture.title, join((Html(legend()), tag("div", Html(picture.svg), class_="w")))),
        (
            fold(f"Deliveries: {len(outcome.deliveries):,}", _deliveries(outcome.deliveries))
            if outcome
            else None
        ),
    )


def _steps_card(steps: Iterable[Step]) -> str:
    """Return the card of several steps with a row per step."""
    rows = []
    for step in steps:
        refused = ", ".join(
            record.refusal.verdict.value for record in step.refused if record.refusal is not None
        )
        delivered = sum(
            len(record.outcome.deliveries) for record in step.records if record.outcome is not None
        )
        idle = ", ".join(f"{para}: {reason}" for para, reason in step.idle.items())
        valid = len(step.records) - len(step.refused)
        rows.append((step.number, valid, refused, delivered, len(step.events), idle))
    head = ("relay block", "valid blocks", "refused", "deliveries", "events", "could not build")
    return card(table(head, rows))


def _header_card(header: Header) -> str:
    """Return the card of a header, without its digest."""
    rows = (
        ("number", f"{header.number:,}"),
        ("hash", f"0x{header.hash().hex()}"),
        ("parent", f"0x{header.parent_hash.hex()}"),
        ("state root", f"0x{header.state_root.hex()}"),
        ("extrinsics root", f"0x{header.extrinsics_root.hex()}"),
    )
    return card(table(("header", ""), rows))


def _relay_block_card(block: Block) -> str:
    header = block.header
    summary = f" · {short(header.hash())}, {counted(len(block.extrinsics), 'extrinsic')}"
    events = _lines(event_words(record.event, _NAMES) for record in block.events)
    return card(tag("p", tag("b", f"Block {header.number:,}"), summary), events)


def _candidate_card(candidate: Candidate) -> str:
    """Return the card of a candidate that is not judged, with the sizes of its parts."""
    header = candidate.header
    inherent = candidate.inherent
    messages = len(inherent.messages.downward) + sum(
        len(queue) for _, queue in inherent.messages.horizontal
    )
    summary = (
        f"hash {short(candidate.hash())}, on relay block {inherent.relay_parent_number:,};"
        f" {counted(len(inherent.proof), 'proof node')} of"
        f" {counted(sum(map(len, inherent.proof)), 'byte')}, {counted(messages, 'message')},"
        f" {counted(len(candidate.extrinsics), 'extrinsic')}"
    )
    return card(tag("p", tag("b", f"Candidate {header.number:,}"), f" · {summary}"))


def _outcome_card(outcome: BlockOutcome) -> str:
    """Return the card of a valid block's effects: its ledger, deliveries and events."""
    return card(
        tag("p", tag("b", "Outcome"), f" · state root {short(outcome.state_root)}"),
        _ledger(outcome.ledger, {}),
        fold(f"Deliveries: {len(outcome.deliveries):,}", _deliveries(outcome.deliveries)),
        fold(
            f"Events: {len(outcome.events):,}",
            _lines(event_words(record.event, _NAMES) for record in outcome.events),
        ),
    )


def sequence_card(sequence: Sequence[object]) -> str | None:
    """Return the card of a list or tuple, or `None` if its elements have no cards."""
    elements: Any = sequence
    kinds = {type(element) for element in elements}
    if not elements or not all(map(_maker, kinds)):
        return None
    if kinds == {Step}:
        return _steps_card(elements)
    if kinds == {Delivery}:
        return card(_deliveries(elements))
    if all(issubclass(kind, Event | EventRecord) for kind in kinds):
        events = (
            element.event if isinstance(element, EventRecord) else element for element in elements
        )
        return card(_lines(event_words(element, _NAMES) for element in events))
    cards = [make(element) for element in elements[:MOST_CARDS] if (make := _maker(type(element)))]
    hidden = len(elements) - MOST_CARDS
    return "".join(cards) + (card(tag("p", f"and {hidden:,} more")) if hidden > 0 else "")


def _maker(kind: type) -> Callable[[Any], str] | None:
    """Return the function that makes the card of a type or of one of its bases."""
    return next((CARDS[base] for base in kind.__mro__ if base in CARDS), None)


def _state_card(state: State) -> str:
    """Return the card of a state. A state that is fetched on demand is not listed."""
    if is_lazy(state):
        return card(tag("p", tag("b", f"State {short(state.root())}"), " · fetched on demand"))
    rows = [
        (f"0x{key.hex()}", len(trie), short(trie.root()))
        for key, trie in sorted(state.children.items())
    ]
    title = tag(
        "p", tag("b", f"State {short(state.root())}"), f" · {counted(len(state.top), 'key')}"
    )
    return card(title, table(("child trie", "keys", "root"), rows) if rows else None)


def _difference_card(difference: StateDifference | NodeDifference) -> str:
    return card(tag("pre", "\n".join(difference.lines())))


def _verdict(record: BlockRecord) -> Html:
    """Return the verdict on a candidate, in green if it is valid and otherwise in red."""
    if record.refusal is None:
        return tag("span", "valid", class_="good")
    return tag("span", record.refusal.verdict.value, class_="bad")


def _evidence(refusal: InvalidBlock) -> Html:
    """Return a list of the offences, each with its meaning and its detail."""
    offences = ((offence.verdict, tag("code", offence.detail)) for offence in refusal.evidence)
    entries = (
        tag("li", tag("b", verdict.value), f" {VERDICTS[verdict]}", tag("br"), detail)
        for verdict, detail in offences
    )
    return tag("ul", *entries)


def _ledger(ledger: BlockLedger, full: Mapping[object, int]) -> Html:
    """Return the ledger as a bar, a legend and a table.

    `full` has the size of each publisher's proof before pruning, in bytes.
    """
    # Each part has its words, its size and the class by which the style colours it.
    shares = (
        ("static keys", ledger.static_bytes, "s"),
        ("requested keys", ledger.requested_bytes, "q"),
        ("top paths", sum(publisher.top_path_bytes for publisher in ledger.publishers), "p"),
        ("child nodes", sum(publisher.child_node_bytes for publisher in ledger.publishers), "c"),
        ("values", sum(publisher.value_bytes for publisher in ledger.publishers), "v"),
        ("delivered rows", sum(publisher.row_charges for publisher in ledger.publishers), "r"),
        ("cache reads", sum(publisher.cache_charges for publisher in ledger.publishers), "k"),
        ("maps", ledger.map_charges, "m"),
    )
    parts = (tag("i", class_=name, style=f"flex-grow:{size}") for _, size, name in shares if size)
    legend = (
        tag("span", tag("i", class_=name), f"{words} {size:,} B")
        for words, size, name in shares
        if size
    )
    rows = (
        (str(publisher.para), *ledger_cells(publisher), full.get(publisher.para))
        for publisher in ledger.publishers
    )
    head = (
        "publisher",
        "state",
        "top path",
        "child nodes",
        "values",
        "rows",
        "cache",
        "full proof",
    )
    words = (
        f"{ledger.used:,} of {ledger.budget:,} bytes used, {ledger.proof_nodes:,} nodes,"
        f" {ledger.proof_bytes:,} bytes; {ledger.own_state_bytes:,} bytes of own state read,"
        f" {ledger.cache_state_bytes:,} of them by the cache"
    )
    if ledger.ref_time:
        words += f"; weight {ledger.ref_time / 1e6:,.1f} µs of ref_time, "
        words += f"{ledger.weight.proof_size:,} bytes of proof_size"
    publishers = table(head, rows) if ledger.publishers else None
    return tag(
        "div",
        tag("div", *parts, class_="b"),
        tag("div", *legend, class_="y"),
        tag("p", words),
        publishers,
    )


def _deliveries(deliveries: Iterable[Delivery]) -> Html:
    """Return a table of deliveries, up to `MOST_ROWS`."""
    all_deliveries = list(deliveries)
    shown = []
    for delivery in all_deliveries[:MOST_ROWS]:
        kind = f"{delivery.kind}{', handler failed' if delivery.failed else ''}"
        value = "" if delivery.value is None else preview(delivery.value)
        shown.append(
            (
                str(delivery.publisher),
                short(delivery.key),
                kind,
                value,
                ttl_words(delivery.ttl_state),
            )
        )
    remainder = (
        tag("p", f"{len(all_deliveries) - MOST_ROWS:,} more")
        if len(all_deliveries) > MOST_ROWS
        else None
    )
    return join((table(("publisher", "key", "", "value", "lifetime"), shown), remainder))


def _lines(texts: Iterable[str]) -> Html:
    all_lines = list(texts)
    remainder = [f"… {len(all_lines) - MOST_ROWS:,} more"] if len(all_lines) > MOST_ROWS else []
    return tag("pre", "\n".join([*all_lines[:MOST_ROWS], *remainder]))


CARDS: Final[Mapping[type, Callable[[Any], str]]] = {
    Network: _network_card,
    Step: _step_card,
    BlockRecord: record_card,
    BlockLedger: lambda ledger: card(_ledger(ledger, {})),
    Delivery: lambda delivery: card(_deliveries([delivery])),
    InvalidBlock: lambda refusal: card(_evidence(refusal)),
    Candidate: _candidate_card,
    BlockOutcome: _outcome_card,
    Block: _relay_block_card,
    Header: _header_card,
    EventRecord: lambda record: card(_lines([event_words(record.event, _NAMES)])),
    Event: lambda event: card(_lines([event_words(event, _NAMES)])),
    Trie: lambda trie: picture_of_trie(trie)._repr_html_(),
    State: _state_card,
    StateDifference: _difference_card,
    NodeDifference: _difference_card,
}
"""The functions that make cards, by type. Subclasses use that of their base."""


def line(shown: object) -> str:
    """Return a line of text for an object of a type in `CARDS`."""
    match shown:
        case Delivery():
            value = "" if shown.value is None else f", {len(shown.value)} bytes"
            return (
                f"<Delivery: publisher {shown.publisher}, key {short(shown.key)},"
                f" {shown.kind}{value}>"
            )
        case BlockLedger():
            return f"<Ledger: {shown.used} of {shown.budget} bytes used, {shown.proof_nodes} nodes>"
        case Trie():
            return f"<Trie of {counted(len(shown), 'key')}, root {short(shown.root())}>"
        case Block(header=header) | (Header() as header):
            return f"<{type(shown).__name__} {header.number}, {short(header.hash())}>"
        case Candidate():
            nodes = counted(len(shown.inherent.proof), "proof node")
            return f"<Candidate {shown.header.number}, {nodes}>"
        case BlockOutcome():
            deliveries = counted(len(shown.deliveries), "delivery", "deliveries")
            return f"<BlockOutcome: {deliveries}, state root {short(shown.state_root)}>"
        case State():
            if is_lazy(shown):
                return f"<State {short(shown.root())}, fetched on demand>"
            return (
                f"<State {short(shown.root())}, {counted(len(shown.top), 'key')},"
                f" {counted(len(shown.children), 'child trie')}>"
            )
        case EventRecord(event=event) | (Event() as event):
            return event_words(event, _NAMES)
        case StateDifference() | NodeDifference():
            return "\n".join(shown.lines())
        case _:
            return repr(shown)

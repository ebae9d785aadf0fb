"""A subscriber's block as tables: ledger, deliveries, refusals."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from pubsub_emulator.cli.pages import Grid, Shown, printable, words
from pubsub_emulator.emulator.network.records import BlockRecord
from pubsub_emulator.primitives.pubsub import TimedOut, TtlState, ValidFor
from pubsub_emulator.runtime.parachain.ledger import Ledger

Rows = tuple[tuple[str, ...], tuple[tuple[str | int, ...], ...]]
"""A table's header and rows."""


DELIVERIES: Final = ("relay block", "subscriber", "block", "publisher", "key", "value", "ttl")
REFUSALS: Final = ("relay block", "parachain", "block", "verdict", "strategy", "why")


def ledger_pages(title: str, ledger: Ledger) -> Iterator[Shown]:
    """The ledger of a block."""
    figures = (
        ("budget", ledger.budget),
        ("used of it", ledger.used),
        ("unused", ledger.unused),
        ("messages", ledger.messages_bytes),
        ("static keys", ledger.static_bytes),
        ("charges for the two maps", ledger.map_charges),
        ("proof", ledger.proof_bytes),
        ("proof nodes (count)", ledger.proof_nodes),
        ("own state read", ledger.own_state_bytes),
        ("of it for the cache", ledger.cache_state_bytes),
    )
    yield Grid(f"{title}: ledger", ("bytes", "figure"), figures)
    yield Grid(
        f"{title}: by publisher, in bytes",
        ("publisher", "walk", "top path", "child nodes", "values", "cache charges", "row charges", "saved by cache"),
        tuple(
            (
                str(each.para),
                "unchanged" if each.unchanged else "complete" if each.complete else "not complete",
                each.top_path_bytes,
                each.child_node_bytes,
                each.value_bytes,
                each.cache_charges,
                each.row_charges,
                each.cached_bytes,
            )
            for each in ledger.publishers
        ),
    )


def delivery_rows(records: Iterable[BlockRecord], key_name: Callable[[bytes], str]) -> Rows:
    """The deliveries of blocks."""
    rows = tuple(
        (
            record.included_at,
            str(record.chain),
            record.candidate.header.number,
            str(each.publisher),
            key_name(each.key),
            "removed" if each.value is None else printable(each.value),
            "" if each.ttl_state is None else ttl_words(each.ttl_state),
        )
        for record in records
        if record.outcome is not None
        for each in record.outcome.deliveries
    )
    return DELIVERIES, rows


def ttl_words(state: TtlState) -> str:
    """The remaining lifetime of an entry."""
    match state:
        case ValidFor(blocks):
            return f"{blocks} blocks left"
        case TimedOut():
            return "timed out"
        case _:
            return "no expiry"


def refusal_rows(records: Iterable[BlockRecord]) -> Rows:
    """The refused blocks."""
    rows = tuple(
        (
            record.included_at,
            str(record.chain),
            record.candidate.header.number,
            record.refusal.verdict.value,
            record.strategy or "",
            "; ".join(words(offence.detail) for offence in record.refusal.evidence),
        )
        for record in records
        if record.refusal is not None
    )
    return REFUSALS, rows

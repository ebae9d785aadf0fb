"""A subscriber's block as tables: its ledger, and lifetimes in words."""

from collections.abc import Iterator

from pubsub_emulator.files.pages import Grid, Shown
from pubsub_emulator.primitives.pubsub import TimedOut, TtlState, ValidFor
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.runtime.parachain.ledger import BlockLedger


def ledger_pages(title: str, ledger: BlockLedger) -> Iterator[Shown]:
    """Yield the ledger of a block: a table of figures and one of publishers."""
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
        ("weight: proof_size", ledger.weight.proof_size),
        ("weight: ref_time, µs", ledger.ref_time // 1_000_000),
    )
    yield Grid(f"{title}: ledger", ("bytes", "figure"), figures)
    rows: list[tuple[str | int, ...]] = []
    for publisher in ledger.publishers:
        walk = "complete" if publisher.complete else "not complete"
        if publisher.unchanged:
            walk = "unchanged"
        nodes = publisher.top_path_bytes, publisher.child_node_bytes, publisher.value_bytes
        rows.append(
            (
                str(publisher.para),
                walk,
                *nodes,
                publisher.cache_charges,
                publisher.row_charges,
                publisher.cached_bytes,
            )
        )
    head = (
        "publisher",
        "walk",
        "top path",
        "child nodes",
        "values",
        "cache charges",
        "row charges",
        "saved by cache",
    )
    yield Grid(f"{title}: by publisher, in bytes", head, tuple(rows))


def ttl_words(state: TtlState) -> str:
    """Return the remaining lifetime of an entry in words."""
    match state:
        case ValidFor(blocks):
            return f"{counted(blocks, 'block')} left"
        case TimedOut():
            return "timed out"
        case _:
            return "no expiry"

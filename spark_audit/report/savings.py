"""Bytes that a chain's proofs leave out of the full proofs of all subscribed items, by cause."""

from dataclasses import dataclass
from typing import Final

from pubsub_emulator.spark_audit.audit.results import Results
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.report.columns import Chain, columns, grouped, valid

_FIGURES: Final = (
    "proof_bytes",
    "unpruned_bytes",
    "saved_unchanged",
    "saved_pruned",
    "cached_bytes",
    "cache_state_bytes",
    "cache_net",
)


@dataclass(frozen=True, slots=True)
class Savings:
    """Bytes of valid blocks of which a collator witnessed the full proof; `proven` + the three causes = `full`."""

    chain: Chain
    blocks: int
    full: int
    proven: int
    unchanged: int
    """Bytes of publishers whose root did not change."""
    cached: int
    """Nodes that the walk found in the cache."""
    pruned: int
    """Bytes of all other nodes, which the walk did not need or reach."""
    cache_state: int
    """Bytes that reading the cache adds to the chain's own storage proof."""
    cache_net: int
    """`cached` less `cache_state`."""


def savings(results: Results, chain: Chain) -> Savings | None:
    """The savings of a chain; `None` if no full proof was witnessed. Raises `ResultError`."""
    parts = columns(results, schema.BLOCK_MEASURES, chain, ("status", "verdict", *_FIGURES))
    witnessed = (part.filter(part["saved_pruned"].is_valid()) for part in map(valid, parts()))
    rows = grouped(witnessed, ["status"], [*((name, "sum") for name in _FIGURES), ("proof_bytes", "count")])
    sums = {name: sum(row[f"{name}_sum"] or 0 for row in rows) for name in _FIGURES}
    if not sums["unpruned_bytes"]:
        return None
    return Savings(
        chain,
        sum(row["proof_bytes_count"] for row in rows),
        sums["proof_bytes"] + sums["saved_pruned"],
        sums["proof_bytes"],
        sums["saved_unchanged"],
        sums["cached_bytes"],
        sums["saved_pruned"] - sums["saved_unchanged"] - sums["cached_bytes"],
        sums["cache_state_bytes"],
        sums["cache_net"],
    )

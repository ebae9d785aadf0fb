"""Savings: how many bytes proofs are smaller than full proofs of all subscribed items."""

from dataclasses import dataclass
from typing import Final

from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.judge.results import Results
from pubsub_emulator.spark_audit.report.columns import PLACE, Chain, grouped, valid

_PROOF: Final = ("proof_bytes", "unpruned_bytes", "saved_unchanged", "saved_pruned")
_FIGURES: Final = (*_PROOF, "cached_bytes", "cache_state_bytes", "cache_net")


@dataclass(frozen=True, slots=True)
class Savings:
    """The savings in valid blocks for which the collator stated the size of the full proof.

    `proven`, `unchanged`, `cached` and `pruned` add up to `full`.
    """

    chain: Chain
    blocks: int
    full: int
    """Bytes of the full proofs."""
    proven: int
    """Bytes that are in the proofs."""
    unchanged: int
    """Bytes of publishers whose root did not change."""
    cached: int
    """Bytes of nodes that were in the cache."""
    pruned: int
    """Bytes of all other nodes that are not in the proofs. They were not needed or not reached."""
    cache_state: int
    """Bytes that reading the cache adds to the chain's own storage proof."""
    cache_net: int
    """`cached` minus `cache_state`."""


def savings(results: Results) -> dict[Chain, Savings]:
    """Return the savings of each chain with blocks for which sizes of full proofs were stated.

    The table is read once for all chains. Raises `ResultError`.
    """
    parts = results.groups(schema.BLOCK_MEASURES, [*PLACE, "status", "verdict", *_FIGURES])
    witnessed = (part.filter(part["saved_pruned"].is_valid()) for part in map(valid, parts))
    sums = [(name, "sum") for name in _FIGURES]
    rows = grouped(witnessed, PLACE, [*sums, ("proof_bytes", "count")])
    return {
        (row["network"], row["chain"]): _savings(row) for row in rows if row["unpruned_bytes_sum"]
    }


def _savings(row: Row) -> Savings:
    """Return the savings of a chain from the sums of its columns."""
    sums = {name: row[f"{name}_sum"] or 0 for name in _FIGURES}
    # `saved_pruned` has the bytes of every cause.
    left_out = sums["saved_pruned"]
    return Savings(
        chain=(row["network"], row["chain"]),
        blocks=row["proof_bytes_count"],
        full=sums["proof_bytes"] + left_out,
        proven=sums["proof_bytes"],
        unchanged=sums["saved_unchanged"],
        cached=sums["cached_bytes"],
        pruned=left_out - sums["saved_unchanged"] - sums["cached_bytes"],
        cache_state=sums["cache_state_bytes"],
        cache_net=sums["cache_net"],
    )

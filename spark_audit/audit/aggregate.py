"""Sizes by chain, collator and publisher, exact: totals and nearest-rank percentiles over integers (AU-3).

A chain is summed up by one unit of work, column by column over the Arrow tables that judging its segments wrote.
"""

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pubsub_emulator.spark_audit.history.rows import Row

BLOCK_FIGURES: Final = (
    "proof_bytes",
    "proof_nodes",
    "messages_bytes",
    "used",
    "unused",
    "static_bytes",
    "map_charges",
    "top_path_bytes",
    "child_node_bytes",
    "value_bytes",
    "cache_charges",
    "row_charges",
    "cached_bytes",
    "own_state_bytes",
    "cache_state_bytes",
    "cache_net",
    "unpruned_bytes",
    "saved_unchanged",
    "saved_pruned",
    "relay_lag",
    "deliveries",
)
"""Columns of `block_measures` that are summed up, beside `budget_ppm`, the share of the budget used."""

PUBLISHER_FIGURES: Final = (
    "top_path_bytes",
    "child_node_bytes",
    "value_bytes",
    "cache_charges",
    "row_charges",
    "cached_bytes",
    "unpruned_bytes",
    "deliveries",
)

BLOCK_COLUMNS: Final = (*BLOCK_FIGURES, "status", "verdict", "collator", "budget")
PUBLISHER_COLUMNS: Final = (*PUBLISHER_FIGURES, "publisher")
PERCENTILES: Final = (50, 90, 99)
_MILLION: Final = 1_000_000


def summarize(network: str, chain: int, blocks: pa.Table, publishers: pa.Table) -> list[Row]:
    """Rows of `summaries` of one chain, over its valid included blocks and imported proofs.

    `blocks` and `publishers` have at least `BLOCK_COLUMNS` of `block_measures` and `PUBLISHER_COLUMNS` of
    `publisher_measures`; the order of rows does not matter.
    """
    counted = blocks.filter(pc.and_(pc.not_equal(blocks["status"], "rejected"), pc.is_null(blocks["verdict"])))
    share = pc.divide(pc.multiply(counted["used"], _MILLION), counted["budget"])
    counted = counted.append_column("budget_ppm", share)
    figures = (*BLOCK_FIGURES, "budget_ppm")
    place = {"network": network, "chain": chain}
    rows = [{**place, "scope": "chain", "subject": "", **row} for row in _sizes(counted, figures)]
    for collator, part in _groups(counted, "collator"):
        rows += [{**place, "scope": "collator", "subject": collator.hex(), **row} for row in _sizes(part, figures)]
    for publisher, part in _groups(publishers, "publisher"):
        subject = str(publisher)
        rows += [{**place, "scope": "publisher", "subject": subject, **row} for row in _sizes(part, PUBLISHER_FIGURES)]
    return rows


def nearest_rank(count: int, percent: int) -> int:
    """The 1-based rank of a percentile among `count` ascending values."""
    return max((count * percent + 99) // 100, 1)


def _groups(table: pa.Table, column: str) -> Iterator[tuple[Any, pa.Table]]:
    """The rows of each value of a column, those without one left out."""
    for value in pc.unique(table[column].drop_null()):
        yield value.as_py(), table.filter(pc.equal(table[column], value))


def _sizes(table: pa.Table, figures: tuple[str, ...]) -> Iterator[Row]:
    """One row for each figure that any row has."""
    for name in figures:
        values = table[name].drop_null().combine_chunks().sort()
        count = len(values)
        if count:
            ranks = {f"p{percent}": values[nearest_rank(count, percent) - 1].as_py() for percent in PERCENTILES}
            total, least, most = pc.sum(values).as_py(), values[0].as_py(), values[-1].as_py()
            yield {"measure": name, "count": count, "total": total, "least": least, **ranks, "most": most}

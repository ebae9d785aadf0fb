"""Sizes by chain, collator and publisher, exact: totals and nearest-rank percentiles over integers (AU-3).

This is the plain path; `spark.job` has the same in SQL, and both must give the same rows to the byte.
"""

from collections.abc import Iterable
from typing import Final

from spark_audit.rows import Row

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

PERCENTILES: Final = (50, 90, 99)

Group = tuple[str, int, str, str, str]
"""Network, chain, scope, subject, measure."""


def summarize(blocks: Iterable[Row], publishers: Iterable[Row]) -> list[Row]:
    """Rows of `summaries` over valid included blocks and imported proofs."""
    groups: dict[Group, list[int]] = {}

    def add(row: Row, scope: str, subject: str, measure: str, value: int | None) -> None:
        if value is not None:
            groups.setdefault((row["network"], row["chain"], scope, subject, measure), []).append(value)

    for row in blocks:
        if row["status"] == "rejected" or row["verdict"] is not None:
            continue
        share = None if row["used"] is None else row["used"] * 1_000_000 // row["budget"]
        figures = [(name, row[name]) for name in BLOCK_FIGURES] + [("budget_ppm", share)]
        for name, value in figures:
            add(row, "chain", "", name, value)
            if row["collator"] is not None:
                add(row, "collator", row["collator"].hex(), name, value)
    for row in publishers:
        for name in PUBLISHER_FIGURES:
            add(row, "publisher", str(row["publisher"]), name, row[name])
    return [_summary(group, sorted(values)) for group, values in sorted(groups.items())]


def nearest_rank(count: int, percent: int) -> int:
    """The 1-based rank of a percentile among `count` ascending values."""
    return max((count * percent + 99) // 100, 1)


def _summary(group: Group, values: list[int]) -> Row:
    network, chain, scope, subject, measure = group
    return {
        "network": network,
        "chain": chain,
        "scope": scope,
        "subject": subject,
        "measure": measure,
        "count": len(values),
        "total": sum(values),
        "least": values[0],
        **{f"p{percent}": values[nearest_rank(len(values), percent) - 1] for percent in PERCENTILES},
        "most": values[-1],
    }

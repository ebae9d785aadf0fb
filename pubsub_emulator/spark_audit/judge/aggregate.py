"""Sizes by chain, collator and publisher: totals and nearest-rank percentiles over integers, folded (AU-3, AU-16).

What is kept of a figure is how often each value came. Counts and totals, smallest and largest are exact always,
percentiles as long as a figure has at most `MOST_VALUES` different values; from then on values are kept to `DIGITS`
binary digits, rounded down, so a percentile is at most 1 part in 128 below the exact one. What is kept then no longer
grows with the history, and depends on the values alone, not on how they were cut.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pubsub_emulator.spark_audit.history.row import Row

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
MOST_VALUES: Final = 512
DIGITS: Final = 8
_MILLION: Final = 1_000_000


class Sizes:
    """The sizes of one chain so far."""

    def __init__(self) -> None:
        self._figures: dict[tuple[str, str, str], Figure] = {}

    def add(self, blocks: pa.Table, publishers: pa.Table) -> None:
        """Count more rows of the chain."""
        counted = blocks.filter(pc.and_(pc.not_equal(blocks["status"], "rejected"), pc.is_null(blocks["verdict"])))
        share = pc.divide(pc.multiply(counted["used"], _MILLION), counted["budget"])
        counted = counted.append_column("budget_ppm", share)
        figures = (*BLOCK_FIGURES, "budget_ppm")
        self._count("chain", "", counted, figures)
        for collator, part in _groups(counted, "collator"):
            self._count("collator", collator.hex(), part, figures)
        for publisher, part in _groups(publishers, "publisher"):
            self._count("publisher", str(publisher), part, PUBLISHER_FIGURES)

    def rows(self, network: str, chain: int) -> Iterator[Row]:
        """Rows of `summaries`: one for each figure that any row has."""
        for (scope, subject, measure), figure in sorted(self._figures.items()):
            place = {"network": network, "chain": chain, "scope": scope, "subject": subject, "measure": measure}
            yield {**place, **figure.row()}

    def to_json(self) -> list[object]:
        """JSON that is kept between folds."""
        return [[*name, figure.to_json()] for name, figure in sorted(self._figures.items())]

    @staticmethod
    def from_json(data: Iterable[Any]) -> "Sizes":
        """The inverse of `to_json`."""
        out = Sizes()
        out._figures = {(scope, subject, measure): Figure.from_json(kept) for scope, subject, measure, kept in data}
        return out

    def _count(self, scope: str, subject: str, table: pa.Table, figures: tuple[str, ...]) -> None:
        for name in figures:
            values = table[name].drop_null().to_pylist()
            if values:
                self._figures.setdefault((scope, subject, name), Figure()).add(values)


class Figure:
    """Counts of a figure's values; see the module for what is exact."""

    def __init__(self) -> None:
        self.total = 0
        self.least = 0
        self.most = 0
        self.counts: Counter[int] = Counter()
        self.coarse = False

    def add(self, values: list[int]) -> None:
        """Count some values, at least one."""
        least, most = min(values), max(values)
        self.least = min(self.least, least) if self.counts else least
        self.most = max(self.most, most) if self.counts else most
        self.total += sum(values)
        self.counts.update(map(rounded, values) if self.coarse else values)
        if not self.coarse and len(self.counts) > MOST_VALUES:
            self.coarse = True
            fine, self.counts = self.counts, Counter()
            for value, count in fine.items():
                self.counts[rounded(value)] += count

    def row(self) -> Row:
        """The columns of `summaries`."""
        count = self.counts.total()
        ranks = {percent: nearest_rank(count, percent) for percent in PERCENTILES}
        found: dict[str, int] = {}
        seen = 0
        for value in sorted(self.counts):
            seen += self.counts[value]
            for percent, rank in ranks.items():
                if seen >= rank:
                    found.setdefault(f"p{percent}", max(value, self.least))
        return {"count": count, "total": self.total, "least": self.least, **found, "most": self.most}

    def to_json(self) -> list[object]:
        """JSON that is kept between folds."""
        return [self.total, self.least, self.most, self.coarse, sorted(self.counts.items())]

    @staticmethod
    def from_json(data: list[Any]) -> "Figure":
        """The inverse of `to_json`."""
        out = Figure()
        out.total, out.least, out.most, out.coarse, counts = data
        out.counts = Counter(dict(counts))
        return out


def rounded(value: int) -> int:
    """The value to `DIGITS` binary digits, towards smaller ones."""
    shift = max(abs(value).bit_length() - DIGITS, 0)
    return value >> shift << shift


def nearest_rank(count: int, percent: int) -> int:
    """The 1-based rank of a percentile among `count` ascending values."""
    return max((count * percent + 99) // 100, 1)


def _groups(table: pa.Table, column: str) -> Iterator[tuple[Any, pa.Table]]:
    """The rows of each value of a column, those without one left out."""
    for value in pc.unique(table[column].drop_null()):
        yield value.as_py(), table.filter(pc.equal(table[column], value))

"""Sizes by chain, collator and publisher: totals and nearest-rank percentiles over integers, folded (AU-3, AU-16).

Kept is how often each value came. Counts, totals, smallest and largest are exact; percentiles are as long as a figure
has at most `MOST_VALUES` values. From then on values are kept to `DIGITS` binary digits, rounded down: at most 1 part
in 128 below the exact one, and whatever the cuts.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.schema import LEDGER

PUBLISHER_FIGURES: Final = (*LEDGER, "unpruned_bytes", "deliveries")
_PROOF: Final = ("proof_bytes", "proof_nodes", "messages_bytes", "used", "unused", "static_bytes", "map_charges")
_STATE: Final = ("own_state_bytes", "cache_state_bytes", "cache_net", "saved_unchanged", "saved_pruned", "relay_lag")
BLOCK_FIGURES: Final = (*_PROOF, *_STATE, *PUBLISHER_FIGURES)
"""Columns of `block_measures` that are summed up, beside `budget_ppm`, the share of the budget used."""

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


@dataclass(slots=True)
class Figure:
    """Counts of a figure's values; see the module for what is exact."""

    total: int = 0
    least: int = 0
    most: int = 0
    coarse: bool = False
    counts: Counter[int] = field(default_factory=Counter)

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
        total, least, most, coarse, counts = data
        return Figure(total, least, most, coarse, Counter(dict(counts)))


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

"""Sizes by chain, collator and publisher: totals and percentiles (AU-3, AU-16).

A figure stores how often each value occurred, so that the next fold can continue from it. Count,
total, minimum and maximum are always exact. Percentiles (nearest-rank, over integers) are exact up
to `MOST_VALUES` different values. With more, values are rounded down to `DIGITS` binary digits, so
that a percentile is at most 1/128 too small. The result does not depend on how the rows were
divided into segments or folds.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.schema import LEDGER

PUBLISHER_FIGURES: Final = (*LEDGER, "unpruned_bytes", "deliveries")
"""Columns of `publisher_measures` that are added up."""
_PROOF: Final = (
    "proof_bytes",
    "proof_nodes",
    "messages_bytes",
    "used",
    "unused",
    "static_bytes",
    "map_charges",
)
_STATE: Final = (
    "own_state_bytes",
    "cache_state_bytes",
    "cache_net",
    "saved_unchanged",
    "saved_pruned",
    "relay_lag",
)
BLOCK_FIGURES: Final = (*_PROOF, *_STATE, *PUBLISHER_FIGURES)
"""Columns of `block_measures` that are added up, beside `budget_ppm`, the share of the budget used.
"""

BLOCK_COLUMNS: Final = (*BLOCK_FIGURES, "status", "verdict", "collator", "budget")
"""Columns of `block_measures` that `Sizes.add` needs."""
PUBLISHER_COLUMNS: Final = (*PUBLISHER_FIGURES, "publisher")
"""Columns of `publisher_measures` that `Sizes.add` needs."""
PERCENTILES: Final = (50, 90, 99)
MOST_VALUES: Final = 512
"""Different values of a figure up to which percentiles are exact."""
DIGITS: Final = 8
"""Significant binary digits of a rounded value."""
_MILLION: Final = 1_000_000


class Sizes:
    """The sizes of one chain so far."""

    def __init__(self) -> None:
        self._figures: dict[tuple[str, str, str], ValueCounts] = {}

    def add(self, blocks: pa.Table, publishers: pa.Table) -> None:
        """Add more blocks of the chain, and the measures of the publishers that they met.

        Refused and invalid blocks are left out.
        """
        counted = blocks.filter(
            pc.and_(pc.not_equal(blocks["status"], "rejected"), pc.is_null(blocks["verdict"]))
        )
        share = pc.divide(pc.multiply(counted["used"], _MILLION), counted["budget"])
        counted = counted.append_column("budget_ppm", share)
        figures = (*BLOCK_FIGURES, "budget_ppm")
        self._add_values("chain", "", counted, figures=figures)
        for collator, part in _groups(counted, "collator"):
            self._add_values("collator", collator.hex(), part, figures=figures)
        for publisher, part in _groups(publishers, "publisher"):
            self._add_values("publisher", str(publisher), part, figures=PUBLISHER_FIGURES)

    def rows(self, network: str, chain: int) -> Iterator[Row]:
        """Yield rows of `summaries`, one for each figure that has values."""
        for (scope, subject, measure), figure in sorted(self._figures.items()):
            place = {
                "network": network,
                "chain": chain,
                "scope": scope,
                "subject": subject,
                "measure": measure,
            }
            yield {**place, **figure.row()}

    def to_json(self) -> list[object]:
        """Return the sizes in a form for the state of a fold."""
        return [[*name, figure.to_json()] for name, figure in sorted(self._figures.items())]

    @staticmethod
    def from_json(data: Iterable[Any]) -> "Sizes":
        """Return the sizes that `to_json` wrote."""
        out = Sizes()
        out._figures = {
            (scope, subject, measure): ValueCounts.from_json(figure)
            for scope, subject, measure, figure in data
        }
        return out

    def _add_values(
        self, scope: str, subject: str, table: pa.Table, figures: tuple[str, ...]
    ) -> None:
        """Add the values of the columns `figures` to the figures of one scope and subject."""
        for name in figures:
            values = table[name].drop_null().to_pylist()
            if values:
                self._figures.setdefault((scope, subject, name), ValueCounts()).add(values)


@dataclass(slots=True)
class ValueCounts:
    """How often each value of a figure occurred.

    The module's docstring says which results are exact. A network has thousands of figures, so the
    values are in arrays: a dictionary would take six times as much memory.
    """

    total: int = 0
    min: int = 0
    max: int = 0
    coarse: bool = False
    """Whether values are rounded."""
    values: "array[int]" = field(default_factory=partial(array, "q"))
    """The different values, ascending."""
    counts: "array[int]" = field(default_factory=partial(array, "q"))
    """How often each of `values` occurred."""

    def add(self, values: list[int]) -> None:
        """Add values. The list must not be empty."""
        smallest = min(values)
        largest = max(values)
        self.min = min(self.min, smallest) if self.values else smallest
        self.max = max(self.max, largest) if self.values else largest
        self.total += sum(values)
        counts = Counter(dict(zip(self.values, self.counts, strict=True)))
        counts.update(map(rounded, values) if self.coarse else values)
        if not self.coarse and len(counts) > MOST_VALUES:
            self.coarse = True
            fine = counts
            counts = Counter()
            for value, count in fine.items():
                counts[rounded(value)] += count
        self.values = array("q", sorted(counts))
        self.counts = array("q", map(counts.__getitem__, self.values))

    def row(self) -> Row:
        """Return the columns of `summaries` from `count` to `max`."""
        count = sum(self.counts)
        ranks = {percent: nearest_rank(count, percent) for percent in PERCENTILES}
        percentiles: dict[str, int] = {}
        cumulated = 0
        for value, frequency in zip(self.values, self.counts, strict=True):
            cumulated += frequency
            for percent, rank in ranks.items():
                if cumulated >= rank:
                    # A rounded value can be smaller than `min`, which is exact.
                    percentiles.setdefault(f"p{percent}", max(value, self.min))
        return {
            "count": count,
            "total": self.total,
            "min": self.min,
            **percentiles,
            "max": self.max,
        }

    def to_json(self) -> list[object]:
        """Return the figure in a form for the state of a fold."""
        return [
            self.total,
            self.min,
            self.max,
            self.coarse,
            self.values.tolist(),
            self.counts.tolist(),
        ]

    @staticmethod
    def from_json(data: list[Any]) -> "ValueCounts":
        """Return the figure that `to_json` wrote."""
        total, smallest, largest, coarse, values, counts = data
        return ValueCounts(
            total=total,
            min=smallest,
            max=largest,
            coarse=coarse,
            values=array("q", values),
            counts=array("q", counts),
        )


def rounded(value: int) -> int:
    """Return a value rounded down to `DIGITS` binary digits."""
    shift = max(abs(value).bit_length() - DIGITS, 0)
    return value >> shift << shift


def nearest_rank(count: int, percent: int) -> int:
    """Return the rank of a percentile, from 1, among `count` ascending values."""
    return max((count * percent + 99) // 100, 1)


def _groups(table: pa.Table, column: str) -> Iterator[tuple[Any, pa.Table]]:
    """Yield each value of a column with its rows. Rows without a value are left out."""
    for value in pc.unique(table[column].drop_null()):
        yield value.as_py(), table.filter(pc.equal(table[column], value))

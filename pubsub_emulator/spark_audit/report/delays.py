"""Delays: the relay blocks from publish to delivery, for every entry that a chain delivered."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

import pyarrow.compute as pc

from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.judge.aggregate import PERCENTILES, nearest_rank
from pubsub_emulator.spark_audit.judge.results import Results
from pubsub_emulator.spark_audit.report.columns import Chain, columns
from pubsub_emulator.spark_audit.report.series import bin_width

MOST_BARS: Final = 40
"""The maximum number of bars in the chart."""


@dataclass(frozen=True, slots=True)
class Bar:
    """The deliveries that took from `first` to `last` relay blocks."""

    first: int
    last: int
    deliveries: int


@dataclass(frozen=True, slots=True)
class Delays:
    """The delays of a chain."""

    deliveries: int
    percentiles: tuple[tuple[int, int], ...]
    """Pairs of percentage and delay, by nearest rank. They are exact, however wide the bars are."""
    longest: int
    bars: tuple[Bar, ...]


def delays(results: Results, chain: Chain) -> Delays | None:
    """Return the delays of a chain, `None` if nothing was delivered. Raises `ResultError`."""
    counts: Counter[int] = Counter()
    for part in columns(results, schema.PUBLISHER_MEASURES, chain, ("delays",))():
        for entry in pc.list_flatten(part["delays"]).value_counts().to_pylist():
            counts[entry["values"]] += entry["counts"]
    if not counts:
        return None
    width = bin_width(max(counts) + 1, MOST_BARS)
    bars: Counter[int] = Counter()
    for delay, count in counts.items():
        bars[delay // width] += count
    percentiles = tuple((percent, _percentile(counts, percent)) for percent in PERCENTILES)
    drawn = tuple(
        Bar(index * width, index * width + width - 1, bars[index]) for index in sorted(bars)
    )
    return Delays(counts.total(), percentiles, max(counts), bars=drawn)


def _percentile(counts: Counter[int], percent: int) -> int:
    """Return the smallest delay that `percent` % of the deliveries do not exceed."""
    remaining = nearest_rank(counts.total(), percent)
    for delay, count in sorted(counts.items()):
        remaining -= count
        if remaining <= 0:
            return delay
    return max(counts)

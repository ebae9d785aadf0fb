"""A chain's blocks over time, in bins of relay blocks of equal length."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.judge.results import Results
from pubsub_emulator.spark_audit.report.columns import Chain, Columns, columns, grouped, valid

MOST_BINS: Final = 64
"""The maximum number of bins in a series."""

_SUMMED: Final = (
    "proof_bytes",
    "cached_bytes",
    "cache_state_bytes",
    "cache_net",
    "ref_time",
    "proof_size",
)
"""Columns of which a bin has the sum."""
_READ: Final = (*_SUMMED, "status", "verdict", "relay_parent", "relay_lag", "used", "budget")


@dataclass(frozen=True, slots=True)
class Bin:
    """The blocks that were judged in a stretch of relay blocks.

    A figure is `None` if no block has it.
    """

    first: int
    last: int
    blocks: int
    """Valid blocks, to which all figures refer."""
    faulty: int
    """Candidates that this audit found invalid."""
    proof_bytes: int
    largest: int | None
    """Bytes of the largest proof."""
    used: int | None
    """The largest part of its budget that a block used."""
    budget: int | None
    """The smallest budget of a block."""
    cached: int | None
    cache_state: int | None
    cache_net: int | None
    ref_time: int | None
    """Picoseconds of weight."""
    proof_size: int | None
    """Bytes of weight."""

    @property
    def mean(self) -> int | None:
        """The average size of a proof in bytes, rounded down."""
        return self.proof_bytes // self.blocks if self.blocks else None

    @property
    def middle(self) -> float:
        """The position on the axis."""
        return (self.first + self.last) / 2


@dataclass(frozen=True, slots=True)
class Series:
    """The bins of a chain in order. Those without candidates are left out."""

    width: int
    """Relay blocks of a bin."""
    bins: tuple[Bin, ...]

    @property
    def has_cache(self) -> bool:
        """Whether the cache saved or cost any bytes."""
        return any(time_bin.cached or time_bin.cache_state for time_bin in self.bins)


def bytes_over_time(results: Results, chain: Chain) -> Series:
    """Return the series of a chain. Raises `ResultError`."""
    parts = columns(results, schema.BLOCK_MEASURES, chain, _READ)
    ends = [pc.min_max(_judged_at(part)).as_py() for part in parts()]
    if not ends:
        return Series(1, ())
    first = min(part_ends["min"] for part_ends in ends)
    last = max(part_ends["max"] for part_ends in ends)
    width = bin_width(last - first + 1, MOST_BINS)
    ends = [("proof_bytes", "count"), ("proof_bytes", "max"), ("used", "max"), ("budget", "min")]
    sums = [*((name, "sum") for name in _SUMMED), *ends]
    good = {
        row["bin"]: row for row in grouped(map(valid, _binned(parts, first, width)), ["bin"], sums)
    }
    faulty = (part.filter(pc.is_valid(part["verdict"])) for part in _binned(parts, first, width))
    bad = {row["bin"]: row for row in grouped(faulty, ["bin"], [("at", "count")])}
    places = sorted(good.keys() | bad.keys())
    return Series(
        width,
        tuple(
            _bin(first + number * width, width, good.get(number, {}), bad=bad.get(number, {}))
            for number in places
        ),
    )


def bin_width(span: int, limit: int) -> int:
    """Return the smallest of 1, 2, 5, 10, 20, 50, … that cuts `span` into at most `limit` parts."""
    scale = 1
    while True:
        for step in (1, 2, 5):
            if -(-span // (step * scale)) <= limit:
                return step * scale
        scale *= 10


def _judged_at(part: pa.Table) -> object:
    """Return the relay blocks in which candidates were judged.

    For imported blocks, these are the relay parents, because only they are known.
    """
    return pc.add(part["relay_parent"], pc.fill_null(part["relay_lag"], 0))


def _binned(parts: Columns, first: int, width: int) -> Iterator[pa.Table]:
    """Yield the parts with two more columns.

    `at` is the number of the relay block in which the block was judged, `bin` the number of its
    bin.
    """
    for part in parts():
        judged_at = _judged_at(part)
        number = pc.divide(
            pc.subtract(judged_at, pa.scalar(first, pa.int64())), pa.scalar(width, pa.int64())
        )
        yield part.append_column("at", judged_at).append_column("bin", number)


def _bin(first: int, width: int, good: Row, bad: Row) -> Bin:
    """Return a bin from the sums over its valid blocks and over its faulty ones."""
    counts = (
        good.get("proof_bytes_count", 0),
        bad.get("at_count", 0),
        good.get("proof_bytes_sum", 0),
    )
    ends = map(good.get, ("proof_bytes_max", "used_max", "budget_min"))
    return Bin(
        first, first + width - 1, *counts, *ends, *(good.get(f"{name}_sum") for name in _SUMMED[1:])
    )

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
    """The first relay block of the bin."""
    last: int
    """The last relay block of the bin."""
    blocks: int
    """Valid blocks, to which all figures refer."""
    faulty: int
    """Candidates that this audit found invalid."""
    proof_bytes: int
    """Bytes of all proofs."""
    largest: int | None
    """Bytes of the largest proof."""
    used: int | None
    """The largest part of its budget that a block used."""
    budget: int | None
    """The smallest budget of a block."""
    cached: int | None
    """Bytes of nodes that were in the cache, and so not in the proofs."""
    cache_state: int | None
    """Bytes that reading the cache adds to the chain's own storage proof."""
    cache_net: int | None
    """`cached` minus `cache_state`."""
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
        """The position on the axis of relay blocks."""
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
    bounds = [pc.min_max(_judged_at(part)).as_py() for part in parts()]
    if not bounds:
        return Series(1, ())
    first = min(part_bounds["min"] for part_bounds in bounds)
    last = max(part_bounds["max"] for part_bounds in bounds)
    width = bin_width(last - first + 1, MOST_BINS)
    sums = [(name, "sum") for name in _SUMMED]
    sums += [("proof_bytes", "count"), ("proof_bytes", "max"), ("used", "max"), ("budget", "min")]
    valid_blocks = map(valid, _binned(parts, first, width))
    good = {row["bin"]: row for row in grouped(valid_blocks, ["bin"], sums)}
    faulty_blocks = (
        part.filter(pc.is_valid(part["verdict"])) for part in _binned(parts, first, width)
    )
    bad = {row["bin"]: row for row in grouped(faulty_blocks, ["bin"], [("at", "count")])}
    bins = tuple(
        _bin(first + number * width, width, good.get(number, {}), bad=bad.get(number, {}))
        for number in sorted(good.keys() | bad.keys())
    )
    return Series(width, bins)


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
    return Bin(
        first,
        first + width - 1,
        blocks=good.get("proof_bytes_count", 0),
        faulty=bad.get("at_count", 0),
        proof_bytes=good.get("proof_bytes_sum", 0),
        largest=good.get("proof_bytes_max"),
        used=good.get("used_max"),
        budget=good.get("budget_min"),
        cached=good.get("cached_bytes_sum"),
        cache_state=good.get("cache_state_bytes_sum"),
        cache_net=good.get("cache_net_sum"),
        ref_time=good.get("ref_time_sum"),
        proof_size=good.get("proof_size_sum"),
    )

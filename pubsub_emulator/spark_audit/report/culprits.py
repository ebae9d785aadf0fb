"""Findings by collator and code, the worst ones in full, and units that could not be read."""

from collections import Counter
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Final

from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.judge.findings import Severity
from pubsub_emulator.spark_audit.judge.results import Results
from pubsub_emulator.spark_audit.report.columns import PLACE, Chain, grouped

MOST_COLLATORS: Final = 200
"""The maximum number of collators that a page shows."""
MOST_FINDINGS: Final = 200
"""The maximum number of findings that a page shows in full."""
MOST_UNREAD: Final = 200
"""The maximum number of unread units that a page shows."""

_SHOWN: Final = (
    "id",
    "network",
    "chain",
    "segment",
    "position",
    "number",
    "collator",
    "code",
    "severity",
    "detail",
)
_BADNESS: Final = {severity.value: -rank for rank, severity in enumerate(Severity)}
"""The order of severities. The worst one has the smallest number."""


@dataclass(slots=True)
class CollatorFindings:
    """One collator of one chain."""

    chain: Chain
    key: bytes
    """Its public key."""
    candidates: int = 0
    faulty: int = 0
    """Candidates that this audit found invalid."""
    findings: Counter[str] = field(default_factory=Counter)
    """Findings by code."""


@dataclass(frozen=True, slots=True)
class Culprits:
    """The findings of an audit, at most as many as a page can show."""

    collators: tuple[CollatorFindings, ...]
    """Collators with findings. Those with the most come first."""
    collators_left_out: int
    """Number of further collators."""
    codes: tuple[tuple[str, str, int], ...]
    """Severity, code and number of findings, the worst first."""
    findings: tuple[Row, ...]
    """Rows of findings, the worst first."""
    findings_left_out: int
    """Number of further findings."""


@dataclass(frozen=True, slots=True)
class Unread:
    """Units that could not be read or judged, at most as many as a page can show."""

    units: tuple[Row, ...]
    left_out: int


def culprits(results: Results) -> Culprits:
    """Return the findings of an audit. Raises `ResultError`."""
    worst: list[Row] = []
    total = 0
    codes: Counter[tuple[str, str]] = Counter()
    blamed: dict[tuple[Chain, bytes], CollatorFindings] = {}
    for part in results.groups(schema.FINDINGS, _SHOWN):
        rows = part.to_pylist()
        total += len(rows)
        # Only the worst findings so far stay in memory.
        worst = nsmallest(MOST_FINDINGS, [*worst, *rows], key=_rank)
        for row in rows:
            codes[row["severity"], row["code"]] += 1
            if row["collator"] is not None:
                chain = (row["network"], row["chain"])
                key = row["collator"]
                collator = blamed.setdefault((chain, key), CollatorFindings(chain, key))
                collator.findings[row["code"]] += 1
    _count_candidates(results, blamed)
    ranked = sorted(
        blamed.values(), key=lambda entry: (-entry.findings.total(), entry.chain, entry.key)
    )
    shown_collators = tuple(ranked[:MOST_COLLATORS])
    left_out = max(len(ranked) - MOST_COLLATORS, 0)
    counts = [(severity, code, count) for (severity, code), count in codes.items()]
    counts.sort(key=lambda entry: (_badness(entry[0]), -entry[2], entry))
    return Culprits(
        shown_collators,
        left_out,
        tuple(counts),
        findings=tuple(worst),
        findings_left_out=total - len(worst),
    )


def unread(results: Results) -> Unread:
    """Return the units that could not be read or judged. Raises `ResultError`."""

    def rank(row: Row) -> tuple[object, ...]:
        return row["path"], -1 if row["row_group"] is None else row["row_group"], row["error"]

    units = sorted(results.rows(schema.READ_ERRORS), key=rank)
    return Unread(tuple(units[:MOST_UNREAD]), max(len(units) - MOST_UNREAD, 0))


def _count_candidates(
    results: Results, blamed: dict[tuple[Chain, bytes], CollatorFindings]
) -> None:
    """Count the candidates of these collators."""
    parts = results.groups(schema.BLOCK_MEASURES, [*PLACE, "collator", "position", "verdict"])
    for row in grouped(parts, (*PLACE, "collator"), [("position", "count"), ("verdict", "count")]):
        collator = blamed.get(((row["network"], row["chain"]), row["collator"]))
        if collator is not None:
            collator.candidates = row["position_count"]
            collator.faulty = row["verdict_count"]


def _badness(severity: str) -> int:
    """Return a number by which severities are sorted, the worst one first."""
    return _BADNESS.get(severity, 1)


def _rank(row: Row) -> tuple[object, ...]:
    """Return the key by which findings are ordered: severity, then place."""
    place = (
        row["network"],
        row["chain"],
        row["segment"] or 0,
        -1 if row["position"] is None else row["position"],
    )
    return _badness(row["severity"]), *place, row["code"], row["id"]

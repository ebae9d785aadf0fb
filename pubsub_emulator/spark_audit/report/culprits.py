"""Findings by collator and code, the worst ones in words, and the quarantined units."""

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
MOST_FINDINGS: Final = 200
MOST_UNREAD: Final = 200

_SHOWN: Final = ("id", "network", "chain", "segment", "position", "number", "collator", "code", "severity", "detail")
_BADNESS: Final = {severity.value: -at for at, severity in enumerate(Severity)}


@dataclass(slots=True)
class Collator:
    """One collator of one chain; `findings` are counted by code."""

    chain: Chain
    key: bytes
    candidates: int = 0
    faulty: int = 0
    findings: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Culprits:
    """Collators with findings, most first; findings in words, worst first; of each at most what a page can hold."""

    collators: tuple[Collator, ...]
    collators_left_out: int
    codes: tuple[tuple[str, str, int], ...]
    """Severity, code, count; worst first."""
    findings: tuple[Row, ...]
    findings_left_out: int


@dataclass(frozen=True, slots=True)
class Unread:
    """The quarantined units."""

    units: tuple[Row, ...]
    left_out: int


def culprits(results: Results) -> Culprits:
    """Raises `ResultError`."""
    parts = results.groups(schema.FINDINGS, _SHOWN)
    worst: list[Row] = []
    total = 0
    codes: Counter[tuple[str, str]] = Counter()
    blamed: dict[tuple[Chain, bytes], Collator] = {}
    for part in parts:
        rows = part.to_pylist()
        total += len(rows)
        worst = nsmallest(MOST_FINDINGS, [*worst, *rows], key=_rank)
        for row in rows:
            codes[row["severity"], row["code"]] += 1
            if row["collator"] is not None:
                place = ((row["network"], row["chain"]), row["collator"])
                blamed.setdefault(place, Collator(*place)).findings[row["code"]] += 1
    _count_candidates(results, blamed)
    ranked = sorted(blamed.values(), key=lambda each: (-each.findings.total(), each.chain, each.key))
    shown, left_out = tuple(ranked[:MOST_COLLATORS]), max(len(ranked) - MOST_COLLATORS, 0)
    counts = sorted(codes.items(), key=lambda each: (_badness(each[0][0]), -each[1], each[0]))
    return Culprits(shown, left_out, tuple((*of, count) for of, count in counts), tuple(worst), total - len(worst))


def unread(results: Results) -> Unread:
    """Raises `ResultError`."""

    def rank(row: Row) -> tuple[object, ...]:
        return row["path"], -1 if row["row_group"] is None else row["row_group"], row["error"]

    units = sorted(results.rows(schema.QUARANTINE), key=rank)
    return Unread(tuple(units[:MOST_UNREAD]), max(len(units) - MOST_UNREAD, 0))


def _count_candidates(results: Results, blamed: dict[tuple[Chain, bytes], Collator]) -> None:
    parts = results.groups(schema.BLOCK_MEASURES, [*PLACE, "collator", "position", "verdict"])
    for row in grouped(parts, (*PLACE, "collator"), [("position", "count"), ("verdict", "count")]):
        known = blamed.get(((row["network"], row["chain"]), row["collator"]))
        if known is not None:
            known.candidates, known.faulty = row["position_count"], row["verdict_count"]


def _badness(severity: str) -> int:
    return _BADNESS.get(severity, 1)


def _rank(row: Row) -> tuple[object, ...]:
    place = row["network"], row["chain"], row["segment"] or 0, -1 if row["position"] is None else row["position"]
    return _badness(row["severity"]), *place, row["code"], row["id"]

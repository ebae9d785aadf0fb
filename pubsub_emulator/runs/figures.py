"""The figures of a run, a history or an audit by name, and their differences."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from pubsub_emulator.files.shown import marked

Figures = dict[str, float]
"""Figures by name. A unit is part of the name."""

_CHAIN: Final = {
    "blocks": "parachain blocks",
    "refused": "refused blocks",
    "delivered": "deliveries",
    "removed": "removals delivered",
    "proof_bytes": "proof bytes",
    "unpruned_bytes": "proof bytes unpruned",
    "messages_bytes": "message bytes",
    "own_state_bytes": "own state read, bytes",
    "used_bytes": "budget used, bytes",
    "stops": "walks stopped",
    "ref_time": "parachain ref_time, ps",
    "proof_size": "parachain proof_size, bytes",
}
"""The names of the figures that are sums over all parachains, by their fields in a summary."""
_PUBLISHER: Final = {"published": "publishes", "expired": "expiries", "deleted": "deletions"}
"""The names of the figures that are sums over all publishers, by their fields in a summary."""


def of_run(summary: Mapping[str, object]) -> Figures:
    """Return the figures in a `summary.json`.

    Files of older versions may lack some figures.
    """
    document: Any = summary
    chains = list(document.get("chains", {}).values())
    publishers = list(document.get("publishers", {}).values())
    figures: Figures = {"relay blocks": document.get("relay_blocks", 0)}
    for field, name in _CHAIN.items():
        figures[name] = sum(entry[field] for entry in chains if field in entry)
    figures["budget unused, bytes"] = sum(
        max(entry["budget_bytes"] - entry["used_bytes"], 0) for entry in chains
    )
    if chains and "latency" in chains[0]:
        # The field is the sum of the latencies of all deliveries.
        latency = sum(entry["latency"] for entry in chains)
        figures["latency, blocks"] = round(latency / max(figures["deliveries"], 1), 3)
        figures["latency at most, blocks"] = max(entry["latest"] for entry in chains)
    for field, name in _PUBLISHER.items():
        figures[name] = sum(entry[field] for entry in publishers)
    for entry in publishers:
        for reason, count in entry["failed"].items():
            name = f"publishes failed: {reason}"
            figures[name] = figures.get(name, 0) + count
    if "expiry_lag" in document:
        expiries_by_lag = {int(lag): count for lag, count in document["expiry_lag"].items()}
        expiries = sum(expiries_by_lag.values())
        total_lag = sum(lag * count for lag, count in expiries_by_lag.items())
        figures["expiry lag, blocks"] = round(total_lag / max(expiries, 1), 3)
        figures["expiry lag at most, blocks"] = max(expiries_by_lag, default=0)
    for field, suffix in (("weight", ""), ("heaviest_block", " of the heaviest block")):
        if field in document:
            figures[f"relay ref_time, ps{suffix}"] = document[field]["ref_time"]
            figures[f"relay proof_size, bytes{suffix}"] = document[field]["proof_size"]
    if "deposits" in document:
        figures["deposits, plancks"] = document["deposits"]
    for verdict, count in document.get("verdicts", {}).items():
        figures[f"refused: {verdict}"] = count
    return figures


def of_audit(run_report: Mapping[str, object]) -> Figures:
    """Return the figures in an audit's `run_report.json`."""
    report: Any = run_report
    figures: Figures = {name: report[name] for name in ("candidates", "judged", "read_errors")}
    figures["proof bytes"] = report["proof_bytes"]
    figures |= {f"findings: {severity}": count for severity, count in report["findings"].items()}
    return figures | {f"finding: {code}": count for code, count in report["codes"].items()}


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    """One figure of all sides, `None` for a side that lacks it.

    Changes are relative to the first side.
    """

    name: str
    values: tuple[float | None, ...]

    def change(self, side: int) -> float | None:
        """Return the difference of a side from the first side, `None` if one lacks the figure."""
        first = self.values[0]
        value = self.values[side]
        return None if first is None or value is None else value - first

    def share(self, side: int) -> float | None:
        """Return the change of a side from the first side in percent.

        The result is infinite for a change from zero, and `None` if a side lacks the figure.
        """
        first = self.values[0]
        change = self.change(side)
        if first is None or change is None:
            return None
        if first:
            return 100 * change / abs(first)
        return float("inf") if change else 0.0

    @property
    def differs(self) -> bool:
        """Whether any side differs from the first."""
        return any(value != self.values[0] for value in self.values)

    def beyond(self, tolerance: float) -> bool:
        """Whether a side differs by more than `tolerance` percent, or lacks the figure."""
        shares = [self.share(side) for side in range(1, len(self.values))]
        return any(share is None or abs(share) > tolerance for share in shares)

    def cells(self) -> tuple[str, ...]:
        """Return the cells of the line in a table. The columns are those of `header`."""
        cells = [self.name, _figure(self.values[0])]
        for side in range(1, len(self.values)):
            change = self.change(side)
            share = self.share(side)
            difference = ""
            percent = ""
            if change:
                difference = f"{round(change, 3):+,}"
                if share is not None and share != float("inf"):
                    percent = f"{share:+.1f} %"
            cells += [_figure(self.values[side]), difference, percent]
        return tuple(cells)


def lines_of(sides: Sequence[Figures]) -> list[ComparedFigure]:
    """Return a line for each figure of any side.

    If a side lacks a verdict or an error, it has 0 of it. If it lacks another figure, it has
    `None`.
    """
    compared = []
    for name in dict.fromkeys(chain.from_iterable(sides)):
        # The names of verdicts and errors are `refused: NAME` and the like.
        missing = 0 if ": " in name else None
        values = tuple(side.get(name, missing) for side in sides)
        compared.append(ComparedFigure(name, values))
    return compared


def header(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the titles of the columns of `ComparedFigure.cells`."""
    titles = ["figure", labels[0]]
    for label in labels[1:]:
        titles += [label, "change", "%"]
    return tuple(titles)


def markdown(labels: Sequence[str], lines: Iterable[ComparedFigure]) -> str:
    """Return the table for a pull request."""
    names = header(labels)
    rows = [
        map(marked, names),
        ("---", *("---:",) * (len(names) - 1)),
        *(map(marked, line.cells()) for line in lines),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _figure(value: float | None) -> str:
    return "none" if value is None else f"{round(value, 3):,}"

"""The figures of a run, a history or an audit by name, and their differences."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from pubsub_emulator.files.shown import marked

Figures = dict[str, float]

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
_PUBLISHER: Final = {"published": "publishes", "expired": "expiries", "deleted": "deletions"}


def of_run(summary: Mapping[str, object]) -> Figures:
    """Return the figures in a `summary.json`.

    Files of older versions may lack some figures.
    """
    document: Any = summary
    chains = list(document.get("chains", {}).values())
    publishers = list(document.get("publishers", {}).values())
    out: Figures = {"relay blocks": document.get("relay_blocks", 0)}
    for name, called in _CHAIN.items():
        out[called] = sum(entry[name] for entry in chains if name in entry)
    out["budget unused, bytes"] = sum(
        max(entry["budget_bytes"] - entry["used_bytes"], 0) for entry in chains
    )
    if chains and "latency" in chains[0]:
        out["latency, blocks"] = round(
            sum(entry["latency"] for entry in chains) / max(out["deliveries"], 1), 3
        )
        out["latency at most, blocks"] = max(entry["latest"] for entry in chains)
    for name, called in _PUBLISHER.items():
        out[called] = sum(entry[name] for entry in publishers)
    for entry in publishers:
        for reason, count in entry["failed"].items():
            out[f"publishes failed: {reason}"] = out.get(f"publishes failed: {reason}", 0) + count
    if "expiry_lag" in document:
        lags = {int(lag): count for lag, count in document["expiry_lag"].items()}
        out["expiry lag, blocks"] = round(
            sum(lag * n for lag, n in lags.items()) / max(sum(lags.values()), 1), 3
        )
        out["expiry lag at most, blocks"] = max(lags, default=0)
    for where, called in (("weight", ""), ("heaviest_block", " of the heaviest block")):
        if where in document:
            out[f"relay ref_time, ps{called}"] = document[where]["ref_time"]
            out[f"relay proof_size, bytes{called}"] = document[where]["proof_size"]
    if "deposits" in document:
        out["deposits, plancks"] = document["deposits"]
    return out | {f"refused: {name}": count for name, count in document.get("verdicts", {}).items()}


def of_audit(run_report: Mapping[str, object]) -> Figures:
    """Return the figures in an audit's `run_report.json`."""
    report: Any = run_report
    out: Figures = {name: report[name] for name in ("candidates", "judged", "read_errors")}
    out["proof bytes"] = report["proof_bytes"]
    out |= {f"findings: {name}": count for name, count in report["findings"].items()}
    return out | {f"finding: {name}": count for name, count in report["codes"].items()}


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    """One figure of all sides, `None` for a side that lacks it.

    Changes are relative to the first side.
    """

    name: str
    values: tuple[float | None, ...]

    def change(self, side: int) -> float | None:
        """Return the difference of a side from the first side."""
        first = self.values[0]
        value = self.values[side]
        return None if first is None or value is None else value - first

    def share(self, side: int) -> float | None:
        """Return the change in percent. It is infinite from zero to another number."""
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
        """Return the cells of the line in a table."""
        out = [self.name, _figure(self.values[0])]
        for side in range(1, len(self.values)):
            change = self.change(side)
            share = self.share(side)
            percent = (
                "" if share is None or share == float("inf") or not change else f"{share:+.1f} %"
            )
            out += [
                _figure(self.values[side]),
                "" if not change else f"{round(change, 3):+,}",
                percent,
            ]
        return tuple(out)


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

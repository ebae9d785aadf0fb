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
        out[called] = sum(each[name] for each in chains if name in each)
    out["budget unused, bytes"] = sum(
        max(each["budget_bytes"] - each["used_bytes"], 0) for each in chains
    )
    if chains and "latency" in chains[0]:
        out["latency, blocks"] = round(
            sum(each["latency"] for each in chains) / max(out["deliveries"], 1), 3
        )
        out["latency at most, blocks"] = max(each["latest"] for each in chains)
    for name, called in _PUBLISHER.items():
        out[called] = sum(each[name] for each in publishers)
    for each in publishers:
        for reason, count in each["failed"].items():
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
    """The figures in an audit's `run_report.json`."""
    report: Any = run_report
    out: Figures = {name: report[name] for name in ("candidates", "judged", "read_errors")}
    out["proof bytes"] = report["proof_bytes"]
    out |= {f"findings: {name}": count for name, count in report["findings"].items()}
    return out | {f"finding: {name}": count for name, count in report["codes"].items()}


@dataclass(frozen=True, slots=True)
class Line:
    """One figure of all sides, `None` for a side that lacks it.

    Changes are relative to the first side.
    """

    name: str
    values: tuple[float | None, ...]

    def change(self, at: int) -> float | None:
        """The difference of side `at` from the first."""
        first, other = self.values[0], self.values[at]
        return None if first is None or other is None else other - first

    def share(self, at: int) -> float | None:
        """The change in percent, infinite from nothing to something."""
        first = self.values[0]
        change = self.change(at)
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
        shares = [self.share(at) for at in range(1, len(self.values))]
        return any(share is None or abs(share) > tolerance for share in shares)

    def cells(self) -> tuple[str, ...]:
        """The line as it is shown."""
        out = [self.name, _figure(self.values[0])]
        for at in range(1, len(self.values)):
            change = self.change(at)
            share = self.share(at)
            far = "" if share is None or share == float("inf") or not change else f"{share:+.1f} %"
            out += [_figure(self.values[at]), "" if not change else f"{round(change, 3):+,}", far]
        return tuple(out)


def lines_of(sides: Sequence[Figures]) -> list[Line]:
    """All figures of all sides.

    A verdict or an error that one side has and another has not is 0 there.
    """
    names = dict.fromkeys(chain.from_iterable(sides))
    return [
        Line(name, tuple(side.get(name, 0 if ": " in name else None) for side in sides))
        for name in names
    ]


def header(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the titles of the columns of `Line.cells`."""
    titles = ["figure", labels[0]]
    for label in labels[1:]:
        titles += [label, "change", "%"]
    return tuple(titles)


def markdown(labels: Sequence[str], lines: Iterable[Line]) -> str:
    """The table for a pull request."""
    names = header(labels)
    rows = [
        map(marked, names),
        ("---", *("---:",) * (len(names) - 1)),
        *(map(marked, line.cells()) for line in lines),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _figure(value: float | None) -> str:
    return "none" if value is None else f"{round(value, 3):,}"

"""Counters, gauges and histograms in the text format of Prometheus."""

from bisect import bisect_left
from collections import Counter
from typing import Final

BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds in seconds."""

_HELP: Final = {
    "calls": "Publications on networks by outcome.",
    "posts": "Notifications of subscribers by outcome.",
    "requests": "Requests by method, route and status.",
    "notes": "What was worth a note, by kind: conflicts, quarantined events, rewinds, dead letters.",
    "inputs": "Inputs that the state machine took in.",
    "call_seconds": "How long calls of adapters took.",
    "post_seconds": "How long notifications took.",
    "block_to_post_seconds": "From a block's time, in whole seconds, to the acknowledged notification.",
}


def _labels(pairs: tuple[tuple[str, str], ...]) -> str:
    def text(value: str) -> str:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    return "{" + ",".join(f'{name}="{text(value)}"' for name, value in pairs) + "}" if pairs else ""


class Metrics:
    """Counters and histograms since the start of the process."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()
        self._observed: dict[str, list[int]] = {}
        self._sums: Counter[str] = Counter()

    def count(self, name: str, by: int = 1, **labels: str) -> None:
        """Add to a counter."""
        self._counts[name, tuple(sorted(labels.items()))] += by

    def value(self, name: str, **labels: str) -> int:
        """The value of a counter."""
        return self._counts[name, tuple(sorted(labels.items()))]

    def observe(self, name: str, seconds: float) -> None:
        """Add to a histogram."""
        found = self._observed.setdefault(name, [0] * (len(BUCKETS) + 1))
        found[bisect_left(BUCKETS, seconds)] += 1
        self._sums[name] += seconds  # type: ignore[assignment]  # a counter adds floats as well

    def text(self, gauges: dict[str, tuple[str, float]]) -> str:
        """The text of all counters and histograms, and of `gauges` (help and value by name)."""
        lines: list[str] = []
        for name in sorted({name for name, _ in self._counts}):
            lines += _head(f"ied_{name}_total", "counter", _HELP[name])
            for (found, labels), value in sorted(self._counts.items()):
                if found == name:
                    lines.append(f"ied_{name}_total{_labels(labels)} {value}")
        for name, counts in sorted(self._observed.items()):
            lines += _head(f"ied_{name}", "histogram", _HELP[name])
            total = 0
            for bound, count in zip([*map(str, BUCKETS), "+Inf"], counts, strict=True):
                total += count
                lines.append(f'ied_{name}_bucket{{le="{bound}"}} {total}')
            lines += [f"ied_{name}_sum {self._sums[name]}", f"ied_{name}_count {total}"]
        for name, (words, number) in sorted(gauges.items()):
            lines += [*_head(f"ied_{name}", "gauge", words), f"ied_{name} {number}"]
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, words: str) -> list[str]:
    return [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]

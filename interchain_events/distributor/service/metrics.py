"""Counters, gauges and histograms of a distributor in Prometheus' text format."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from pubsub_emulator.serving.metrics import Histogram, Labels, family, sample

BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The upper bounds of the histograms' buckets, in seconds."""

_HELP: Final = {
    "calls": "Publications on networks by outcome.",
    "posts": "Notifications of subscribers by outcome.",
    "postponed": "Calls and probes that were postponed since too many waited, by network.",
    "requests": "Requests by method, route and status.",
    "notes": ("Notable occurrences by kind, such as conflicts, rewinds and dead letters."),
    "inputs": "Inputs that the state machine took in.",
    "call_seconds": "How long calls of adapters took.",
    "post_seconds": "How long notifications took.",
    "block_to_post_seconds": (
        "From a block's time, in whole seconds, to the acknowledged notification."
    ),
}
"""The help text of each counter and histogram, by its name without prefix and suffix."""


class Gauge(NamedTuple):
    """The current values of a figure."""

    words: str
    """The help text."""
    values: Sequence[tuple[Labels, float]]
    """Each value with its labels."""


def gauge(words: str, value: float) -> Gauge:
    """Return a gauge of one value without labels."""
    return Gauge(words, [((), value)])


class Metrics:
    """Counters and histograms since the start of the process."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, Labels]] = Counter()
        self._observed: dict[str, Histogram] = {}

    def count(self, name: str, by: int = 1, **labels: str) -> None:
        """Add to the counter with these labels."""
        self._counts[name, tuple(sorted(labels.items()))] += by

    def value(self, name: str, **labels: str) -> int:
        """Return the value of the counter with these labels."""
        return self._counts[name, tuple(sorted(labels.items()))]

    def observe(self, name: str, seconds: float) -> None:
        """Add a duration to a histogram."""
        self._observed.setdefault(name, Histogram(BUCKETS)).note(seconds)

    def text(self, gauges: Mapping[str, Gauge]) -> str:
        """Return all counters and histograms, and the given gauges by name, as text."""
        lines: list[str] = []
        for name in sorted({name for name, _ in self._counts}):
            full_name = f"ied_{name}_total"
            samples = [
                sample(full_name, value, labels)
                for (counter, labels), value in sorted(self._counts.items())
                if counter == name
            ]
            lines += family(full_name, "counter", _HELP[name], samples)
        for name, histogram in sorted(self._observed.items()):
            lines += family(f"ied_{name}", "histogram", _HELP[name], histogram.lines(f"ied_{name}"))
        for name, gauge in sorted(gauges.items()):
            samples = [sample(f"ied_{name}", value, labels) for labels, value in gauge.values]
            lines += family(f"ied_{name}", "gauge", gauge.words, samples)
        return "\n".join(lines) + "\n"

"""Metrics in Prometheus' text format."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator

Labels = tuple[tuple[str, str], ...]
"""Pairs of a label's name and value."""


def sample(name: str, value: float, labels: Labels = ()) -> str:
    """Return the line of one value of a metric."""
    label_text = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    return f"{name}{{{label_text}}} {value}" if label_text else f"{name} {value}"


def family(name: str, kind: str, words: str, samples: Iterable[str]) -> Iterator[str]:
    """Yield the lines of one metric. `words` is its help text, which may be empty."""
    if words:
        yield f"# HELP {name} {words}"
    yield f"# TYPE {name} {kind}"
    yield from samples


class Histogram:
    """A histogram: the number of values between each two bounds, and the sum of all values."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """The number of values between each bound and the one below it, and at the end the number
        of values above all bounds."""
        self.total = 0.0
        """The sum of all values."""

    def note(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str, labels: Labels = ()) -> Iterator[str]:
        """Yield the lines of the histogram."""
        cumulated = 0
        for bound, count in zip((*self.bounds, "+Inf"), self.counts, strict=True):
            # Prometheus' buckets are cumulative.
            cumulated += count
            yield sample(f"{name}_bucket", cumulated, (*labels, ("le", str(bound))))
        yield sample(f"{name}_sum", self.total, labels)
        yield sample(f"{name}_count", cumulated, labels)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

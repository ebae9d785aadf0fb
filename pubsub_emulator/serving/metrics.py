"""Metrics in Prometheus' text format."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator

Labels = tuple[tuple[str, str], ...]


def sample(name: str, value: float, labels: Labels = ()) -> str:
    """The line of one value."""
    shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    return f"{name}{{{shown}}} {value}" if shown else f"{name} {value}"


def family(name: str, kind: str, words: str, samples: Iterable[str]) -> Iterator[str]:
    """The lines of one metric: `words` is its help, empty for none."""
    if words:
        yield f"# HELP {name} {words}"
    yield f"# TYPE {name} {kind}"
    yield from samples


class Histogram:
    """Counts by upper bound."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def note(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str, labels: Labels = ()) -> Iterator[str]:
        """The lines of its values."""
        running = 0
        for bound, count in zip((*self.bounds, "+Inf"), self.counts, strict=True):
            running += count
            yield sample(f"{name}_bucket", running, (*labels, ("le", str(bound))))
        yield sample(f"{name}_sum", self.total, labels)
        yield sample(f"{name}_count", running, labels)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

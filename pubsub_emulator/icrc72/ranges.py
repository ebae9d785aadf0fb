"""Which events of a chain were handled: ranges of ids that grow along prevEventId (IC-49c)."""

from bisect import bisect_right
from dataclasses import dataclass, field

from pubsub_emulator.icrc72.ic.stable import stable


@stable
@dataclass(slots=True)
class Ranges:
    """Disjoint ranges of handled ids, ascending; of each, the former event of its first."""

    first: list[int] = field(default_factory=list)
    last: list[int] = field(default_factory=list)
    before: list[int | None] = field(default_factory=list)

    def __contains__(self, identifier: int) -> bool:
        """True when the event was handled."""
        at = bisect_right(self.first, identifier) - 1
        return at >= 0 and identifier <= self.last[at]

    def __bool__(self) -> bool:
        """True when anything was handled."""
        return bool(self.first)

    def add(self, identifier: int, prev: int | None, most: int) -> None:
        """Add a handled event; beyond `most` ranges the two lowest become one."""
        at = bisect_right(self.first, identifier)
        if prev is not None and at and self.last[at - 1] == prev:
            at -= 1
            self.last[at] = identifier
        else:
            self.first.insert(at, identifier)
            self.last.insert(at, identifier)
            self.before.insert(at, prev)
        if at + 1 < len(self.first) and self.before[at + 1] == identifier:
            self.last[at] = self.last[at + 1]
            self._drop(at + 1)
        if len(self.first) > most:
            self.last[0] = self.last[1]
            self._drop(1)

    def _drop(self, at: int) -> None:
        del self.first[at], self.last[at], self.before[at]

    def below(self, identifier: int) -> int | None:
        """The highest handled id below."""
        at = bisect_right(self.first, identifier - 1) - 1
        return min(self.last[at], identifier - 1) if at >= 0 else None

    def above(self, identifier: int) -> int | None:
        """The first event of the next range above."""
        at = bisect_right(self.first, identifier)
        return self.first[at] if at < len(self.first) else None

    def joins(self, low: int, high: int) -> bool:
        """True when prevEventIds join two handled events."""
        at = bisect_right(self.first, low) - 1
        return at >= 0 and low <= self.last[at] >= high

    def highest(self) -> int | None:
        """The highest handled id."""
        return self.last[-1] if self.last else None

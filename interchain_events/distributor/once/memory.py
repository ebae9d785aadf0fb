"""A store in memory, for simulations and tests. The other stores are tested against it."""

import time
from collections import defaultdict
from collections.abc import Callable

from sortedcontainers import SortedList

from interchain_events.distributor.once.transaction import (
    MEMBER,
    ROW,
    DueRow,
    Read,
    Step,
    Store,
    StoredRow,
    T,
    Transaction,
)


def machine_clock() -> int:
    """Return the machine's clock, in ms since 1970."""
    return time.time_ns() // 1_000_000


class MemoryStore(Store):
    """A store whose content is lost with the object.

    `clock` returns the time in ms. Simulations pass a virtual one.
    """

    def __init__(self, clock: Callable[[], int] = machine_clock) -> None:
        super().__init__()
        self._clock = clock
        self.parts: defaultdict[tuple[str, str], dict[str, StoredRow]] = defaultdict(dict)
        """The rows of each table and the members of each set, by `ROW` or `MEMBER` and name."""
        self._lanes: defaultdict[int, SortedList[tuple[int, str, str]]] = defaultdict(SortedList)
        """The due rows of each lane, sorted by time, table and key."""

    def reader(self, kind: str, name: str) -> Read:
        """Return the function that reads a table or set."""
        rows = self.parts[kind, name]
        return lambda key: rows[key].value if key in rows else None

    def transact(self, step: Step[T]) -> T:
        """Run `step` under a lock, and apply its writes unless it raises an exception."""
        with self._lock:
            self._trips += 1
            tx = Transaction(self.reader, self._clock())
            result = step(tx)
            for place, row in tx.writes().items():
                self._apply(*place, row)
            return result

    def _apply(self, kind: str, name: str, key: str, row: StoredRow | None) -> None:
        """Replace or remove a row, and update the lists of due rows."""
        old = self.parts[kind, name].pop(key, None)
        if old is not None and old.due is not None:
            self._lanes[old.lane].remove((old.due, name, key))
        if row is not None:
            self.parts[kind, name][key] = row
            if row.due is not None:
                self._lanes[row.lane].add((row.due, name, key))

    def due(self, limit: int) -> list[DueRow]:
        """Return the rows that are due."""
        with self._lock:
            self._trips += 1
            now = self._clock()
            rows: list[DueRow] = []
            for _, waiting in sorted(self._lanes.items()):
                for due, table, key in waiting:
                    if due > now or len(rows) == limit:
                        break
                    rows.append(DueRow(table, key))
            return rows

    def next_due(self) -> int | None:
        """Return the time in ms at which the next row is due, `None` if there is none.

        Simulations set their virtual clock to it.
        """
        with self._lock:
            return min((waiting[0][0] for waiting in self._lanes.values() if waiting), default=None)

    def rows(self, table: str, after: str = "", limit: int = 1000) -> list[tuple[str, str]]:
        """Return a table in the order of its keys."""
        with self._lock:
            self._trips += 1
            return sorted(
                (key, row.value) for key, row in self.parts[ROW, table].items() if key > after
            )[:limit]

    def members(self, set_name: str, after: str = "", limit: int = 1000) -> list[str]:
        """Return a set in the order of its members."""
        with self._lock:
            self._trips += 1
            return sorted(member for member in self.parts[MEMBER, set_name] if member > after)[
                :limit
            ]

    def backlog(self) -> int:
        """Return the number of rows that have a due time."""
        return sum(map(len, self._lanes.values()))

    def now(self) -> int:
        """Return the time of the clock."""
        return self._clock()

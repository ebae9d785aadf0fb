"""One atomic step over a store: what it read, what it writes, and the protocol that stores keep.

A step is a pure function of a `Transaction`. It reads rows and set members, buffers writes, and nothing is visible to
anybody before the store has applied all of them at once. A store may run a step several times, with other values, and
applies the last run only; so a step must not do anything but read, write and return.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol, TypeVar

T = TypeVar("T")

ROW: Final = "r"
MEMBER: Final = "s"


class Place(NamedTuple):
    """The place of a value: a row of a table, or a member of a set."""

    kind: str
    table: str
    key: str


class Row(NamedTuple):
    """A stored row: its text, and the time in ms at which `Store.due` lists it, `None` for never.

    Rows of a lower lane are listed before all rows of a higher one.
    """

    value: str
    due: int | None = None
    lane: int = 0


PRESENT: Final = Row("1")
"""What is written at the place of a set's member."""


class DueRow(NamedTuple):
    """A row whose time has come."""

    table: str
    key: str


Read = Callable[[Place], "str | None"]
Writes = Mapping[Place, "Row | None"]


class Transaction:
    """Reads and buffered writes of one step; a read sees the step's own writes."""

    __slots__ = ("_read", "_values", "now", "reads", "writes")

    def __init__(self, read: Read, now: int) -> None:
        self._read = read
        self._values: dict[tuple[str, str, str], str | None] = {}
        """What is at each place that was read or written, with the writes."""
        self.now = now
        self.reads: dict[Place, str | None] = {}
        self.writes: dict[Place, Row | None] = {}

    def _first(self, place: Place) -> str | None:
        """Read a place for the first time."""
        value = self._read(place)
        self.reads[place] = self._values[place] = value
        return value

    def _write(self, place: Place, row: Row | None) -> None:
        self.writes[place] = row
        self._values[place] = None if row is None else row.value

    def get(self, table: str, key: str) -> str | None:
        """The text of a row, `None` where there is none."""
        place = (ROW, table, key)  # equal to its `Place`, and made in half the time
        return self._values[place] if place in self._values else self._first(Place(ROW, table, key))

    def put(self, table: str, key: str, value: str, due: int | None = None, lane: int = 0) -> None:
        """Write a row; `value` must not be empty. `due` replaces the row's earlier time."""
        self._write(Place(ROW, table, key), Row(value, due, lane))

    def delete(self, table: str, key: str) -> None:
        """Remove a row; one that is not there stays so."""
        self._write(Place(ROW, table, key), None)

    def has(self, set_name: str, member: str) -> bool:
        """Whether `member` is in a set."""
        place = (MEMBER, set_name, member)
        value = self._values[place] if place in self._values else self._first(Place(MEMBER, set_name, member))
        return value is not None

    def add(self, set_name: str, member: str) -> None:
        """Put `member` into a set."""
        self._write(Place(MEMBER, set_name, member), PRESENT)

    def remove(self, set_name: str, member: str) -> None:
        """Take `member` out of a set."""
        self._write(Place(MEMBER, set_name, member), None)


Step = Callable[[Transaction], T]


class Store(Protocol):
    """Rows and sets that change in atomic steps; safe to use from many processes and threads.

    Every method raises `StoreError` where the store cannot be reached; a step was then applied as a whole or not at
    all.
    """

    def transact(self, step: Step[T]) -> T:
        """Run `step` atomically and return what it returned; an exception of the step applies nothing."""
        ...

    def due(self, limit: int) -> list[DueRow]:
        """Rows whose time has come by the store's clock: lower lanes first, in a lane the earliest first."""
        ...

    def rows(self, table: str, after: str = "", limit: int = 1000) -> list[tuple[str, str]]:
        """Keys and texts of a table in order of the keys' code points, from the first key after `after`."""
        ...

    def members(self, set_name: str, after: str = "", limit: int = 1000) -> list[str]:
        """Members of a set in order of their code points, from the first after `after`."""
        ...

    def backlog(self) -> int:
        """The number of rows that wait for a time, come or not."""
        ...

    def now(self) -> int:
        """The store's clock, in ms since 1970."""
        ...

    def trips(self) -> int:
        """The number of round trips to the store, for measuring."""
        ...

    def close(self) -> None:
        """Close connections and files."""
        ...

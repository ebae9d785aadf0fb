"""One atomic step over a store: what it read, what it writes, and the protocol that stores keep.

A step is a pure function of a `Transaction`. It reads rows and set members, buffers writes, and nothing is visible to
anybody before the store has applied all of them at once. A store may run a step several times, with other values, and
applies the last run only; so a step must not do anything but read, write and return.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from threading import RLock
from typing import Final, NamedTuple, TypeVar

T = TypeVar("T")

ROW: Final = "r"
MEMBER: Final = "s"


Place = tuple[str, str, str]
"""The place of a value: `ROW`, a table and a key, or `MEMBER`, a set and a member."""


class Row(NamedTuple):
    """A stored row: its text, and when `Store.due` lists it, in ms, `None` for never; lower lanes come first."""

    value: str
    due: int | None = None
    lane: int = 0


PRESENT: Final = Row("1")
"""What is written at the place of a set's member."""


class DueRow(NamedTuple):
    """A row whose time has come."""

    table: str
    key: str


Read = Callable[[str], "str | None"]
"""Reads a key of one table, or a member of one set."""
Reader = Callable[[str, str], Read]
"""What reads a table or set, by `ROW` or `MEMBER` and its name."""


class Part:
    """What a step read and wrote of one table or set, by key; `values` is what it sees, with its own writes."""

    __slots__ = ("read", "reads", "values", "writes")

    def __init__(self, read: Read) -> None:
        self.read = read
        self.values: dict[str, str | None] = {}
        self.reads: dict[str, str | None] = {}
        self.writes: dict[str, Row | None] = {}

    def value(self, key: str) -> str | None:
        """The value of a key."""
        if key in self.values:
            return self.values[key]
        value = self.values[key] = self.reads[key] = self.read(key)
        return value

    def write(self, key: str, row: Row | None) -> None:
        """Write a row, or remove it."""
        self.writes[key] = row
        self.values[key] = None if row is None else row.value


class Parts(dict[str, Part]):
    """The tables, or the sets, that a step touched, by name."""

    def __init__(self, kind: str, read: Reader) -> None:
        super().__init__()
        self._kind = kind
        self._read = read

    def __missing__(self, name: str) -> Part:
        """One that is touched for the first time."""
        part = self[name] = Part(self._read(self._kind, name))
        return part


class Transaction:
    """Reads and buffered writes of one step; a read sees the step's own writes."""

    __slots__ = ("now", "sets", "tables")

    def __init__(self, read: Reader, now: int) -> None:
        self.tables = Parts(ROW, read)
        self.sets = Parts(MEMBER, read)
        self.now = now

    def parts(self) -> Iterator[tuple[str, str, Part]]:
        """Yield what was touched: `ROW` or `MEMBER`, the name, and what was read and written of it."""
        for kind, parts in ((ROW, self.tables), (MEMBER, self.sets)):
            for name, part in parts.items():
                yield kind, name, part

    def reads(self) -> dict[Place, str | None]:
        """What was read, in the order of `parts`."""
        return {(kind, name, key): value for kind, name, part in self.parts() for key, value in part.reads.items()}

    def writes(self) -> dict[Place, Row | None]:
        """What was written; `None` is removed."""
        return {(kind, name, key): row for kind, name, part in self.parts() for key, row in part.writes.items()}

    def undo(self) -> None:
        """Write nothing."""
        for _, _, part in self.parts():
            part.values, part.writes = part.reads, {}

    def get(self, table: str, key: str) -> str | None:
        """The text of a row, `None` where there is none."""
        return self.tables[table].value(key)

    def put(self, table: str, key: str, value: str, due: int | None = None, lane: int = 0) -> None:
        """Write a row; `value` must not be empty. `due` replaces the row's earlier time."""
        self.tables[table].write(key, Row(value, due, lane))

    def delete(self, table: str, key: str) -> None:
        """Remove a row; one that is not there stays so."""
        self.tables[table].write(key, None)

    def has(self, set_name: str, member: str) -> bool:
        """Whether `member` is in a set."""
        return self.sets[set_name].value(member) is not None

    def add(self, set_name: str, member: str) -> None:
        """Put `member` into a set."""
        self.sets[set_name].write(member, PRESENT)

    def remove(self, set_name: str, member: str) -> None:
        """Take `member` out of a set."""
        self.sets[set_name].write(member, None)


Step = Callable[[Transaction], T]


class Store(ABC):
    """Rows and sets that change in atomic steps; safe to use from many processes and threads.

    Every method raises `StoreError` where the store cannot be reached; a step was then applied wholly or not at all.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._trips = 0

    @abstractmethod
    def transact(self, step: Step[T]) -> T:
        """Run `step` atomically and return what it returned; an exception of the step applies nothing."""

    @abstractmethod
    def due(self, limit: int) -> list[DueRow]:
        """Rows whose time has come by the store's clock: lower lanes first, in a lane the earliest first."""

    @abstractmethod
    def rows(self, table: str, after: str = "", limit: int = 1000) -> list[tuple[str, str]]:
        """Keys and texts of a table in order of the keys' code points, from the first key after `after`."""

    @abstractmethod
    def members(self, set_name: str, after: str = "", limit: int = 1000) -> list[str]:
        """Members of a set in order of their code points, from the first after `after`."""

    @abstractmethod
    def backlog(self) -> int:
        """The number of rows that wait for a time, come or not."""

    @abstractmethod
    def now(self) -> int:
        """The store's clock, in ms since 1970."""

    def trips(self) -> int:
        """The number of round trips to the store, for measuring."""
        return self._trips

    def close(self) -> None:  # noqa: B027  # not every store has any
        """Close connections and files."""

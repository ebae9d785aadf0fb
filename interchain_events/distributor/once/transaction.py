"""The transaction of one atomic step, and the interface of stores.

A step is a pure function of a `Transaction`. It reads rows and set members and buffers writes. When
the store applies the writes, other processes see all of them at once.

A store may run a step several times with different values, and applies only the last run. So a step
must not do anything except read, write and return a result.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from threading import RLock
from typing import Final, NamedTuple, TypeVar

T = TypeVar("T")

ROW: Final = "r"
"""The kind of a table's row."""
MEMBER: Final = "s"
"""The kind of a set's member."""


Place = tuple[str, str, str]
"""The place of a value: its kind, the table or set, and the key or member."""


class StoredRow(NamedTuple):
    """A row as it is stored."""

    value: str
    """The text. It is not empty."""
    due: int | None = None
    """The time in ms from which `Store.due` lists the row, `None` for never."""
    lane: int = 0
    """`Store.due` lists the rows of lower lanes first."""


PRESENT: Final = StoredRow("1")
"""The row that stands for a member of a set."""


class DueRow(NamedTuple):
    """A row that is due."""

    table: str
    key: str


Read = Callable[[str], "str | None"]
"""A function that reads a key of one table or a member of one set. It returns `None` if there is no
such key or member."""
Reader = Callable[[str, str], Read]
"""A function that returns the `Read` of a table or set. Its arguments are `ROW` or `MEMBER`, and
the name."""


class TableBuffer:
    """The reads and writes of a step in one table or set, by key."""

    __slots__ = ("read", "reads", "values", "writes")

    def __init__(self, read: Read) -> None:
        self.read = read
        self.values: dict[str, str | None] = {}
        """The values that the step sees: those that were read, replaced by its own writes."""
        self.reads: dict[str, str | None] = {}
        """The values that were read. A store compares them with the stored ones before it
        writes."""
        self.writes: dict[str, StoredRow | None] = {}
        """The rows that are to be written, `None` for a removal."""

    def value(self, key: str) -> str | None:
        """Return the value of a key, which is read from the store only once."""
        if key not in self.values:
            value = self.read(key)
            self.values[key] = value
            self.reads[key] = value
        return self.values[key]

    def write(self, key: str, row: StoredRow | None) -> None:
        """Buffer a row, or its removal if `row` is `None`."""
        self.writes[key] = row
        self.values[key] = None if row is None else row.value


class TableBuffers(dict[str, TableBuffer]):
    """The tables or the sets that a step has read or written, by name."""

    def __init__(self, kind: str, read: Reader) -> None:
        super().__init__()
        self._kind = kind
        self._read = read

    def __missing__(self, name: str) -> TableBuffer:
        """Create the buffer of a table or set that is used for the first time."""
        buffer = TableBuffer(self._read(self._kind, name))
        self[name] = buffer
        return buffer


class Transaction:
    """The reads and buffered writes of one step.

    A read sees the writes that the step has made before.
    """

    __slots__ = ("now", "sets", "tables")

    def __init__(self, read: Reader, now: int) -> None:
        self.tables = TableBuffers(ROW, read)
        self.sets = TableBuffers(MEMBER, read)
        self.now = now

    def buffers(self) -> Iterator[tuple[str, str, TableBuffer]]:
        """Yield `ROW` or `MEMBER`, the name and the buffer of each table and set that was used."""
        for kind, buffers in ((ROW, self.tables), (MEMBER, self.sets)):
            for name, buffer in buffers.items():
                yield kind, name, buffer

    def reads(self) -> dict[Place, str | None]:
        """Return the values that were read from the store, in the order of `buffers`."""
        values: dict[Place, str | None] = {}
        for kind, name, buffer in self.buffers():
            for key, value in buffer.reads.items():
                values[kind, name, key] = value
        return values

    def writes(self) -> dict[Place, StoredRow | None]:
        """Return the rows that were written, `None` for a removal."""
        rows: dict[Place, StoredRow | None] = {}
        for kind, name, buffer in self.buffers():
            for key, row in buffer.writes.items():
                rows[kind, name, key] = row
        return rows

    def undo(self) -> None:
        """Discard all writes after the step has failed.

        The reads remain, because the store must check whether the step failed over true values.
        """
        for _, _, buffer in self.buffers():
            # The step will not write any more, so `values` may be the same dictionary.
            buffer.values = buffer.reads
            buffer.writes = {}

    def get(self, table: str, key: str) -> str | None:
        """Return the text of a row, `None` if there is none."""
        return self.tables[table].value(key)

    def put(self, table: str, key: str, value: str, due: int | None = None, lane: int = 0) -> None:
        """Write a row.

        `value` must not be empty. `due` and `lane` replace those that the row had: a row that is
        written without `due` is not due any more.
        """
        self.tables[table].write(key, StoredRow(value, due, lane))

    def delete(self, table: str, key: str) -> None:
        """Remove a row, if there is one."""
        self.tables[table].write(key, None)

    def has(self, set_name: str, member: str) -> bool:
        """Return whether `member` is in a set."""
        return self.sets[set_name].value(member) is not None

    def add(self, set_name: str, member: str) -> None:
        """Add `member` to a set."""
        self.sets[set_name].write(member, PRESENT)

    def remove(self, set_name: str, member: str) -> None:
        """Remove `member` from a set, if it is there."""
        self.sets[set_name].write(member, None)


Step = Callable[[Transaction], T]
"""A function that reads and writes in a transaction and returns a result."""


class Store(ABC):
    """Rows and sets that change in atomic steps.

    Many processes and threads may use a store at once. Every method raises `StoreError` if the
    store cannot be reached. The caller then does not know whether a step has been applied, but it
    is never applied partly.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        """Held during a step, so that the steps of a process run one after the other."""
        self._trips = 0
        """The number of round trips to the store."""

    @abstractmethod
    def transact(self, step: Step[T]) -> T:
        """Run `step` atomically and return its result.

        If the step raises an exception, nothing is applied and the exception is raised.
        """

    @abstractmethod
    def due(self, limit: int) -> list[DueRow]:
        """Return at most `limit` rows that are due by the store's clock.

        Rows of lower lanes come first, and in a lane those that have been due the longest.
        """

    @abstractmethod
    def rows(self, table: str, after: str = "", limit: int = 1000) -> list[tuple[str, str]]:
        """Return keys and texts of a table in the order of the keys' code points.

        At most `limit` rows are returned, beginning with the first key after `after`.
        """

    @abstractmethod
    def members(self, set_name: str, after: str = "", limit: int = 1000) -> list[str]:
        """Return members of a set in the order of their code points.

        At most `limit` members are returned, beginning with the first one after `after`.
        """

    @abstractmethod
    def backlog(self) -> int:
        """Return the number of rows that have a due time, past or future."""

    @abstractmethod
    def now(self) -> int:
        """Return the store's clock, in ms since 1970."""

    def trips(self) -> int:
        """Return the number of round trips to the store, for measurements."""
        return self._trips

    def close(self) -> None:  # noqa: B027  # a store in memory has none
        """Close connections and files."""

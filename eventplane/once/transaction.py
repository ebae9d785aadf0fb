"""One atomic step over a store: what it read, what it writes, and the protocol that stores keep.

A step is a pure function of a `Transaction`. It reads rows and set members, buffers writes, and nothing is visible to
anybody before the store has applied all of them at once. A store may run a step several times, with other values, and
applies the last run only; so a step must not do anything but read, write and return.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol, TypeVar

from pubsub_emulator.primitives.errors import PubsubError

T = TypeVar("T")

ROW: Final = "r"
MEMBER: Final = "s"


class StoreError(PubsubError):
    """The store cannot be reached, is not one of ours, or cannot be used safely; the message says which."""


class Place(NamedTuple):
    """Where a value is stored: a row of a table, or a member of a set."""

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


class DueRow(NamedTuple):
    """A row whose time has come."""

    table: str
    key: str


Read = Callable[[Place], "str | None"]
Writes = Mapping[Place, "Row | None"]


class Transaction:
    """Reads and buffered writes of one step; a read sees the step's own writes."""

    __slots__ = ("_read", "now", "reads", "writes")

    def __init__(self, read: Read, now: int) -> None:
        self._read = read
        self.now = now
        self.reads: dict[Place, str | None] = {}
        self.writes: dict[Place, Row | None] = {}

    def _value(self, place: Place) -> str | None:
        if place in self.writes:
            row = self.writes[place]
            return None if row is None else row.value
        if place not in self.reads:
            self.reads[place] = self._read(place)
        return self.reads[place]

    def get(self, table: str, key: str) -> str | None:
        """The text of a row, `None` where there is none."""
        return self._value(Place(ROW, table, key))

    def put(self, table: str, key: str, value: str, due: int | None = None, lane: int = 0) -> None:
        """Write a row; `value` must not be empty. `due` replaces the row's earlier time."""
        self.writes[Place(ROW, table, key)] = Row(value, due, lane)

    def delete(self, table: str, key: str) -> None:
        """Remove a row; one that is not there stays so."""
        self.writes[Place(ROW, table, key)] = None

    def has(self, set_name: str, member: str) -> bool:
        """Whether `member` is in a set."""
        return self._value(Place(MEMBER, set_name, member)) is not None

    def add(self, set_name: str, member: str) -> None:
        """Put `member` into a set."""
        self.writes[Place(MEMBER, set_name, member)] = Row("1")

    def remove(self, set_name: str, member: str) -> None:
        """Take `member` out of a set."""
        self.writes[Place(MEMBER, set_name, member)] = None


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
        """How many rows wait for a time, come or not."""
        ...

    def now(self) -> int:
        """The store's clock, in ms since 1970."""
        ...

    def trips(self) -> int:
        """How often this object asked the store something, for measuring."""
        ...

    def close(self) -> None:
        """Let go of connections and files."""
        ...

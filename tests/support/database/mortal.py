"""A database whose writer dies at a drawn statement, as a killed process does: the transaction is
lost.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from interchain_events.database.database import Database, Session


class Crash(Exception):
    """The process dies here."""


class Mortal:
    """A database whose process can die before any statement; see the module.

    `draw` is called before each statement of a writer and returns whether the writer dies there.
    """

    def __init__(self, real: Database, draw: Callable[[], bool]) -> None:
        self._real = real
        self._draw = draw
        self.dialect = real.dialect
        self.place = real.place

    @contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[Session]:
        """See `Database.transaction`."""
        with self._real.transaction(write=write) as session:
            yield _MortalSession(session, self._draw) if write else session

    def select(self, sql: str, params: Any = ()) -> list[tuple[Any, ...]]:
        """See `Database.select`."""
        return self._real.select(sql, params)

    def notify(self, session: Session, channel: str) -> None:
        """See `Database.notify`."""
        self._real.notify(
            session._real if isinstance(session, _MortalSession) else session, channel
        )

    def wait(self, channel: str, timeout: float) -> None:
        """See `Database.wait`."""
        self._real.wait(channel, timeout)

    def close(self) -> None:
        """Do nothing, because the real database stays open."""


class _MortalSession:
    def __init__(self, real: Session, draw: Callable[[], bool]) -> None:
        self._real = real
        self._draw = draw

    def run(self, sql: str, params: Any = ()) -> list[tuple[Any, ...]]:
        if self._draw():
            raise Crash
        return self._real.run(sql, params)

    def run_many(self, sql: str, listed: Any) -> None:
        if self._draw():
            raise Crash
        self._real.run_many(sql, listed)

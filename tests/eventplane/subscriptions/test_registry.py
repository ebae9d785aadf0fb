"""EV-24: a cancelled token is as unknown as any other, in what is asked of the database too."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pubsub_emulator.eventplane.errors import UnknownToken
from pubsub_emulator.eventplane.filters.algebra import ANY
from pubsub_emulator.eventplane.log.database import Database, Session
from pubsub_emulator.eventplane.log.open_database import open_database
from pubsub_emulator.eventplane.subscriptions.cursor import Cursor
from pubsub_emulator.eventplane.subscriptions.registry import SqlRegistry


class Listening:
    """A database that writes down what is asked of it."""

    def __init__(self, real: Database) -> None:
        self._real = real
        self.dialect = real.dialect
        self.place = real.place
        self.asked: list[tuple[str, int]] = []

    @contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[Session]:
        with self._real.transaction(write=write) as session:
            yield _Heard(session, self.asked)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class _Heard:
    def __init__(self, real: Session, asked: list[tuple[str, int]]) -> None:
        self._real = real
        self._asked = asked

    def run(self, sql: str, params: Any = ()) -> list[tuple[Any, ...]]:
        found = self._real.run(sql, params)
        self._asked.append((sql, len(found)))
        return found

    def run_many(self, sql: str, rows: Any) -> None:
        self._real.run_many(sql, rows)


@pytest.mark.parametrize("act", ["get", "cancel"])
def test_ev_24_the_same_is_done_for_a_cancelled_token_and_one_that_never_was(database_place: str, act: str) -> None:
    """Equal statements with equal results take equal time; a stopwatch would only test the machine."""
    database = Listening(open_database(database_place))
    registry = SqlRegistry(database)
    token = registry.add([ANY], Cursor(0, 0), "me")
    registry.cancel(token)
    work = []
    for each in (token, "x" * len(token), ""):
        database.asked.clear()
        with pytest.raises(UnknownToken, match=r"^no subscription has this token$"):
            getattr(registry, act)(each)
        work.append(list(database.asked))
    assert work[0]
    assert work[0] == work[1] == work[2]
    database.close()

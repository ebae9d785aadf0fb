"""Stores of every kind for the contract suites; the one of PostgreSQL goes to its own worker."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from interchain_events.events import MemoryStore, open_store
from interchain_events.events.log.sql_store import SqlStore
from interchain_events.events.log.store import Store

POSTGRES = pytest.param("postgresql", marks=pytest.mark.xdist_group("postgres"))


@pytest.fixture(params=["sqlite", POSTGRES])
def database_place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty database is: a path or a URL."""
    if request.param == "sqlite":
        return str(tmp_path / "events.db")
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture(params=["memory", "sqlite", POSTGRES])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Opens the log `net`; every call after the first is another reader or writer of the same
    log.
    """
    made: list[Store] = []
    if request.param == "memory":
        shared = MemoryStore("net")

        def again() -> Store:
            return shared

    else:
        is_file = request.param == "sqlite"
        place = str(tmp_path / "events.db") if is_file else request.getfixturevalue("postgres_url")

        def again() -> Store:
            made.append(open_store(place, "net"))
            return made[-1]

    yield again
    for store in made:
        store.close()


@pytest.fixture
def store(opened: Callable[[], Store]) -> Store:
    """An empty log."""
    return opened()


@pytest.fixture
def any_log(database_place: str) -> Iterator[SqlStore]:
    """An empty log in a database of each kind."""
    with closing(open_store(database_place, "net")) as made:
        yield made


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SqlStore]:
    """An empty log in a file."""
    with closing(open_store(str(tmp_path / "log.db"), "net")) as made:
        yield made

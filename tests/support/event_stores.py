"""Stores of every kind for the contract suites; the one of PostgreSQL goes to its own worker."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pubsub_emulator.events.log.memory import MemoryStore
from pubsub_emulator.events.log.sql_store import open_store
from pubsub_emulator.events.log.store import Store

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
    """Opens the log `net`; every call after the first is another reader or writer of the same log."""
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

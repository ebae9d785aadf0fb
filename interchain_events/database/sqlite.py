"""The SQLite database: one file in WAL mode, with a connection for each running transaction."""

import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from interchain_events.database.database import Dialect, Params, Session
from interchain_events.database.errors import (
    StoreError,
    StoreReplaced,
    StoreUnavailable,
    TablesMissing,
)

_BUSY_SECONDS: Final = 20.0
"""How long to wait for a lock of another process."""
_POLL_SECONDS: Final = 0.1
"""The greatest delay until another process's commit is seen, as SQLite notifies only inside of a
process."""
_PAUSE_SECONDS: Final = 0.01
"""The wait between two attempts to switch the journal."""
_MODE: Final = 0o600
"""The mode of a new file. SQLite gives the same one to the files beside it, `-wal` and `-shm`.
Databases contain secrets, such as those of web hooks."""
_IN_MEMORY: Final = ":memory:"
"""The path with which SQLite opens a database without a file."""
_EARLIER: Final = 0x1ED0_0CE1
"""The application id of distributors' files that are older than the table `migrations`."""


class SqliteDatabase:
    """A SQLite file, which is created if there is none, readable by its owner only.

    Raises `StoreError` if the file cannot be opened or belongs to another program. Methods raise
    `StoreReplaced` once if the file was removed or replaced: transactions would otherwise go on in
    a file that nobody finds any more.
    """

    dialect = Dialect.SQLITE

    def __init__(self, path: str) -> None:
        self.place = path
        self._idle: list[sqlite3.Connection] = []
        """Connections that no thread uses."""
        self._lock = threading.Lock()
        self._changed = threading.Condition()
        """Notified when a writing transaction of this process ends."""
        self._closed = False
        self._file: tuple[int, int] | None = None
        """The device and inode of the file that the connections have open."""
        self._opening = threading.Lock()
        """Held by the thread that opens another file."""
        self._opened = 0
        """How often a file was opened. Connections of earlier files are closed."""
        # Opened now, so that a file that cannot be used is refused at once.
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        """Open the file that is there now, or create one."""
        with self._lock:
            idle, self._idle = self._idle, []
            self._opened += 1
            self._file = None
        for connection in idle:
            connection.close()
        self._create()
        with self._connection() as connection:
            self._check_owner(connection)
            _set_journal(connection)
        self._file = self._there()

    def _create(self) -> None:
        """Create the file if there is none. Raises `StoreError`."""
        if self.place == _IN_MEMORY:
            return
        try:
            os.close(os.open(self.place, os.O_CREAT | os.O_RDWR, _MODE))
        except OSError as error:
            raise StoreUnavailable(f"{self.place}: {error.strerror or error}") from error

    def _there(self) -> tuple[int, int] | None:
        """Return the device and inode of the file at the path, `None` if there is none."""
        try:
            found = os.stat(self.place)  # noqa: PTH116  # the path is SQLite's text, not a `Path`
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _check_file(self) -> None:
        """Raise `StoreReplaced` if the path does not lead to the open file any more."""
        known = self._file
        if known is None or self._there() == known:
            return
        with self._opening:
            if self._file == known:
                try:
                    self._open()
                except BaseException:
                    # The next call tries again.
                    self._file = known
                    raise
        raise StoreReplaced(f"{self.place}: the file was removed or replaced")

    def select(self, sql: str, params: Params = ()) -> list[tuple[Any, ...]]:
        """Return the rows of one reading statement, in a snapshot of its own."""
        with self._connection() as connection:
            return _SqliteSession(connection).run(sql, params)

    @contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[Session]:
        """Return the context of a transaction, which sees one snapshot.

        A writing transaction holds the file's write lock from its beginning.
        """
        with self._connection() as connection:
            try:
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                yield _SqliteSession(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        if write:
            with self._changed:
                self._changed.notify_all()

    def notify(self, _session: Session, _channel: str) -> None:
        """Do nothing: the end of a writing transaction wakes this process, and others poll."""

    def wait(self, _channel: str, timeout: float) -> None:
        """Wait for a notification, at most `timeout` seconds.

        It may return early and may miss one.
        """
        with self._changed:
            if not self._closed:
                self._changed.wait(min(timeout, _POLL_SECONDS))

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        with self._changed:
            self._changed.notify_all()

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection, and turn the driver's errors into ours."""
        self._check_file()
        opened = self._opened
        try:
            connection = self._borrow()
            try:
                yield connection
            finally:
                self._give_back(connection, opened)
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                raise TablesMissing(f"{self.place}: {error}") from error
            raise StoreUnavailable(f"{self.place}: {error}") from error
        except sqlite3.Error as error:
            raise StoreError(f"{self.place}: {error}") from error

    def _borrow(self) -> sqlite3.Connection:
        """Return an idle connection, or open another one."""
        with self._lock:
            if self._closed:
                raise StoreUnavailable(f"{self.place}: closed")
            if self._idle:
                return self._idle.pop()
        connection = sqlite3.connect(
            self.place,
            timeout=_BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        try:
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_owner(self, connection: sqlite3.Connection) -> None:
        """Raise `StoreError` if the file has tables of another program."""
        tables = {
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        ours = not tables or "migrations" in tables
        if not ours and connection.execute("PRAGMA application_id").fetchone() != (_EARLIER,):
            raise StoreError(f"{self.place}: not a database of this program")

    def _give_back(self, connection: sqlite3.Connection, opened: int) -> None:
        """Make a connection idle, or close it if the database is closed or it is of another file.

        `opened` is the value of `_opened` when it was lent.
        """
        with self._lock:
            if not self._closed and opened == self._opened:
                self._idle.append(connection)
                return
        connection.close()


def _set_journal(connection: sqlite3.Connection) -> None:
    """Switch a file to WAL mode.

    If two processes do that at once, one gets an error at once, although it has a timeout. So this
    tries again itself.
    """
    patience = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > patience:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return


class _SqliteSession:
    """A transaction on a connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, sql: str, params: Params = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, tuple(params)).fetchall()

    def run_many(self, sql: str, rows: Iterable[Params]) -> None:
        self._connection.executemany(sql, rows)

"""SQLite databases: a file in WAL mode, with a connection for each running transaction."""

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
"""The longest wait for a lock of another process."""
_POLL_SECONDS: Final = 0.1
"""The longest time until a commit of another process is seen. Notifications reach only the same
process."""
_PAUSE_SECONDS: Final = 0.01
"""The wait between two attempts to switch the journal."""
_MODE: Final = 0o600
"""The mode of a new file. SQLite gives the files `-wal` and `-shm` the same mode. Databases contain
secrets, for example those of webhooks."""
_IN_MEMORY: Final = ":memory:"
"""The path with which SQLite opens a database without a file."""
_EARLIER: Final = 0x1ED0_0CE1
"""The application id of distributors' files from before there was a table `migrations`."""


class SqliteDatabase:
    """A SQLite file. If there is none, it is created and is readable by its owner only.

    Raises `StoreError` if the file cannot be opened or belongs to another program. Methods raise
    `StoreReplaced` once after the file was removed or replaced. Otherwise transactions would
    continue in a file that is no longer at the path.
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
        """The device and inode of the file that the connections use."""
        self._opening = threading.Lock()
        """Held by the thread that opens another file."""
        self._opened = 0
        """The number of times that a file was opened. Connections of earlier files are closed."""
        # The file is opened now, so that an unusable one is refused at once.
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        """Open the file that is at the path now, or create one."""
        with self._lock:
            idle = self._idle
            self._idle = []
            self._opened += 1
            self._file = None
        for connection in idle:
            connection.close()
        self._create()
        with self._connection() as connection:
            self._check_owner(connection)
            _set_journal(connection)
        self._file = self._identity()

    def _create(self) -> None:
        """Create the file if it does not exist. Raises `StoreUnavailable`."""
        if self.place == _IN_MEMORY:
            return
        try:
            os.close(os.open(self.place, os.O_CREAT | os.O_RDWR, _MODE))
        except OSError as error:
            raise StoreUnavailable(f"{self.place}: {error.strerror or error}") from error

    def _identity(self) -> tuple[int, int] | None:
        """Return the device and inode of the file at the path, `None` if there is none."""
        try:
            status = os.stat(self.place)  # noqa: PTH116  # the path is SQLite's text, not a `Path`
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _check_file(self) -> None:
        """Raise `StoreReplaced` if the open file is no longer at the path.

        First open the file that is at the path now, so that later calls use it.
        """
        known = self._file
        if known is None or self._identity() == known:
            return
        with self._opening:
            # Another thread may have opened the new file meanwhile.
            if self._file == known:
                try:
                    self._open()
                except BaseException:
                    # The next call tries again.
                    self._file = known
                    raise
        raise StoreReplaced(f"{self.place}: the file was removed or replaced")

    def select(self, sql: str, params: Params = ()) -> list[tuple[Any, ...]]:
        """Return the rows of one reading statement, all of the same moment."""
        with self._connection() as connection:
            return _SqliteSession(connection).run(sql, params)

    @contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[Session]:
        """Return the context of a transaction. Its statements see the state of one moment.

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
        """Do nothing: each writing transaction notifies this process, and others poll."""

    def wait(self, _channel: str, timeout: float) -> None:
        """Wait for a notification, at most `timeout` seconds.

        This may return early, and may miss a notification.
        """
        with self._changed:
            if not self._closed:
                self._changed.wait(min(timeout, _POLL_SECONDS))

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            self._closed = True
            idle = self._idle
            self._idle = []
        for connection in idle:
            connection.close()
        with self._changed:
            self._changed.notify_all()

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection, and turn the driver's errors into `StoreError`."""
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
        """Return an idle connection, or a new one if there is none."""
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
        is_ours = not tables or "migrations" in tables
        if not is_ours and connection.execute("PRAGMA application_id").fetchone() != (_EARLIER,):
            raise StoreError(f"{self.place}: not a database of this program")

    def _give_back(self, connection: sqlite3.Connection, opened: int) -> None:
        """Keep a borrowed connection for the next borrower, or close it.

        `opened` is the value of `_opened` at the time when it was borrowed. The connection
        is closed if the database has been closed or another file has been opened since.
        """
        with self._lock:
            if not self._closed and opened == self._opened:
                self._idle.append(connection)
                return
        connection.close()


def _set_journal(connection: sqlite3.Connection) -> None:
    """Switch a file to WAL mode.

    If two processes do this at the same time, one of them gets an error without any wait, although
    the connection has a timeout. So this tries again for `_BUSY_SECONDS`.
    """
    end = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
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

"""PostgreSQL databases, with a pool of checked connections and one that listens."""

import logging
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql as quoting
from psycopg.errors import DeadlockDetected, SerializationFailure, UndefinedTable
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from interchain_events.database.database import Dialect, Params, Session
from interchain_events.database.errors import (
    StoreConflict,
    StoreError,
    StoreUnavailable,
    TablesMissing,
)

_POOL: Final = 8
"""The greatest number of connections in the pool."""
_ANSWER_SECONDS: Final = 10.0
"""The longest wait for a connection."""
_POLL_SECONDS: Final = 1.0
"""The longest wait for a notification, and so the greatest delay if one is lost."""
_PAUSE_SECONDS: Final = 0.2
"""The wait before the next attempt to listen, after a failed one."""
_IDLE_SECONDS: Final = 0.5
"""The idle time after which a connection is checked before use."""
_STATEMENT_MS: Final = 30_000
"""The longest time of a statement."""
_BY_INDEX: Final = (
    f"-c statement_timeout={_STATEMENT_MS} -c enable_seqscan=off -c enable_hashjoin=off -c"
    " enable_mergejoin=off"
)
"""The options of serializable connections, which make the database find each row by an index.

A serializable transaction that reads a whole table would conflict with every other one.
"""

# The pool would log two lines for each failed attempt. The program itself logs the failure once.
logging.getLogger("psycopg.pool").setLevel(logging.ERROR)


class PostgresDatabase:
    """A PostgreSQL database at a URL.

    If `serializable` is true, writing transactions are serializable. Raises `StoreUnavailable` if
    the database does not answer.
    """

    dialect = Dialect.POSTGRESQL

    def __init__(self, url: str, *, serializable: bool = False) -> None:
        self.place = _without_password(url)
        self._writing = psycopg.IsolationLevel.READ_COMMITTED
        if serializable:
            self._writing = psycopg.IsolationLevel.SERIALIZABLE
        """The isolation level of writing transactions."""
        self._url = url
        self._used: dict[int, float] = {}
        """The time at which each recently used connection was last returned, by its identity."""
        kwargs: dict[str, Any] = {"connect_timeout": int(_ANSWER_SECONDS), "autocommit": True}
        if serializable:
            kwargs["options"] = _BY_INDEX
        self._pool = ConnectionPool(
            url,
            min_size=1,
            max_size=_POOL,
            timeout=_ANSWER_SECONDS,
            open=False,
            check=self._check,
            kwargs=kwargs,
        )
        try:
            psycopg.connect(url, connect_timeout=int(_ANSWER_SECONDS)).close()
        except psycopg.Error as error:
            raise StoreUnavailable(f"{self.place}: {_line(error)}") from error
        self._pool.open()
        self._listening: psycopg.Connection[Any] | None = None
        """The connection that listens, opened at the first `wait`."""
        self._listen_lock = threading.Lock()
        """Held by the thread that listens."""
        self._closed = False

    def select(self, sql: str, params: Params = ()) -> list[tuple[Any, ...]]:
        """Return the rows of one reading statement, all of the same moment."""
        with self._connection() as connection:
            return _PostgresSession(connection).run(sql, params)

    @contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[Session]:
        """Return the context of a transaction. Its statements see the state of the first one.

        Writers that lock the same row wait for each other.
        """
        reading = psycopg.IsolationLevel.REPEATABLE_READ
        with self._connection() as connection:
            # A connection of the pool may have the settings of an earlier transaction.
            is_as_wanted = connection.read_only is not write
            if not is_as_wanted or connection.isolation_level is None:
                connection.read_only = not write
                connection.isolation_level = self._writing if write else reading
            with connection.transaction():
                yield _PostgresSession(connection)

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection[Any]]:
        """Lend a connection of the pool, and turn the driver's errors into `StoreError`."""
        try:
            with self._pool.connection() as connection:
                yield connection
                # Most of so many connections no longer exist. Forgetting the time of one that does
                # only costs a check.
                if len(self._used) > 4 * _POOL:
                    self._used.clear()
                self._used[id(connection)] = time.monotonic()
        except UndefinedTable as error:
            raise TablesMissing(f"{self.place}: {_line(error)}") from error
        except (SerializationFailure, DeadlockDetected) as error:
            raise StoreConflict(f"{self.place}: {_line(error)}") from error
        except (psycopg.OperationalError, PoolTimeout, PoolClosed) as error:
            raise StoreUnavailable(f"{self.place}: {_line(error)}") from error
        except psycopg.Error as error:
            raise StoreError(f"{self.place}: {_line(error)}") from error

    def notify(self, session: Session, channel: str) -> None:
        """Wake those who wait on a channel when the transaction of `session` is committed."""
        session.run("SELECT pg_notify(?::text, '')", (channel,))

    def wait(self, channel: str, timeout: float) -> None:
        """Wait for a notification on a channel, at most `timeout` seconds.

        This may return early. Only one thread listens at a time.
        """
        timeout = min(timeout, _POLL_SECONDS)
        if not self._listen_lock.acquire(timeout=timeout):
            return
        try:
            for _ in self._listen(channel).notifies(timeout=timeout, stop_after=1):
                return
        except psycopg.Error:
            self._stop_listening()
            time.sleep(min(timeout, _PAUSE_SECONDS))
        finally:
            self._listen_lock.release()

    def close(self) -> None:
        """Close all connections."""
        self._closed = True
        with self._listen_lock:
            self._stop_listening()
        self._pool.close()

    def _check(self, connection: psycopg.Connection[Any]) -> None:
        """Check a connection if it has been idle. A check costs as much as a small read."""
        if time.monotonic() - self._used.get(id(connection), 0.0) > _IDLE_SECONDS:
            ConnectionPool.check_connection(connection)

    def _listen(self, channel: str) -> psycopg.Connection[Any]:
        """Return the connection that listens on a channel, and open it if necessary."""
        if self._closed:
            raise psycopg.OperationalError("closed")
        if self._listening is None:
            self._listening = psycopg.connect(
                self._url, autocommit=True, connect_timeout=int(_ANSWER_SECONDS)
            )
            self._listening.execute(quoting.SQL("LISTEN {}").format(quoting.Identifier(channel)))
        return self._listening

    def _stop_listening(self) -> None:
        """Close the connection that listens, if there is one."""
        if self._listening is not None:
            with suppress(psycopg.Error):
                self._listening.close()
            self._listening = None


class _PostgresSession:
    """A transaction on a connection."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def run(self, sql: str, params: Params = ()) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(_translated(sql), tuple(params), binary=True)
        return cursor.fetchall() if cursor.description is not None else []

    def run_many(self, sql: str, rows: Iterable[Params]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_translated(sql), rows)


@lru_cache(maxsize=256)
def _translated(sql: str) -> quoting.SQL:
    """Return a statement with the driver's placeholders.

    In the program's statements, `?` is always a placeholder, and `%` does not occur.
    """
    return quoting.SQL(sql.replace("?", "%s"))


def _without_password(url: str) -> str:
    """Return a URL without its password."""
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    name = user.partition(":")[0]
    return urlunsplit(parts._replace(netloc=f"{name}@{host}" if name else host))


def _line(error: Exception) -> str:
    """Return the message of an error in one line, without the place in the statement."""
    if isinstance(error, psycopg.Error) and error.diag.message_primary:
        return error.diag.message_primary
    return " ".join(str(error).split()) or type(error).__name__

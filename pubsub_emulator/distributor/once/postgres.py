"""A store in a PostgreSQL database, for replicas on several machines."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import RLock
from typing import Any, Final

import psycopg
from psycopg.errors import DeadlockDetected, SerializationFailure, UniqueViolation

from pubsub_emulator.eventplane.once.beliefs import Attempt, Beliefs
from pubsub_emulator.eventplane.once.transaction import DueRow, Place, Row, Step, StoreError, T

VERSION: Final = 1
CONNECT_SECONDS: Final = 5
STATEMENT_MS: Final = 30_000
_SCHEMA_LOCK: Final = 0x1ED0_0CE1

_NOW: Final = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_CLOCK: Final = f"SELECT {_NOW}"
_DUE: Final = (
    f"SELECT tbl, key FROM once_places WHERE due IS NOT NULL AND due <= {_NOW} ORDER BY lane, due, tbl, key LIMIT %s"
)
_PLACES: Final = "unnest(%s::text[], %s::text[], %s::text[]) AS asked (kind, tbl, key)"
_READ: Final = f"SELECT kind, tbl, key, value FROM once_places JOIN {_PLACES} USING (kind, tbl, key)"
_WRITE: Final = (
    "INSERT INTO once_places (kind, tbl, key, value, due, lane)"
    " SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::smallint[])"
    " ON CONFLICT (tbl, kind, key)"
    " DO UPDATE SET value = excluded.value, due = excluded.due, lane = excluded.lane"
)
_DELETE: Final = (
    f"DELETE FROM once_places AS place USING {_PLACES}"
    " WHERE place.kind = asked.kind AND place.tbl = asked.tbl AND place.key = asked.key"
)
_OPTIONS: Final = (
    f"-c statement_timeout={STATEMENT_MS} -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off"
)
"""A transaction that read a whole table would conflict with every other, so each row is found by the index."""

_MIGRATIONS: Final = {
    1: (
        """CREATE TABLE once_places (
            kind text COLLATE "C" NOT NULL, tbl text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL,
            value text NOT NULL, due bigint, lane smallint NOT NULL, PRIMARY KEY (tbl, kind, key))""",
        "CREATE INDEX once_places_due ON once_places (lane, due) WHERE due IS NOT NULL",
    )
}

_Connection = psycopg.Connection[tuple[Any, ...]]


class PostgresStore:
    """Steps run as serializable transactions and are repeated where PostgreSQL refuses one."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = RLock()
        self._trips = 0
        self._believed = Beliefs()
        self._connection: _Connection | None = None
        try:
            with self._connected() as connection:
                self._migrate(connection)
        except StoreError:
            self.close()  # also gives the lock back
            raise

    @contextmanager
    def _connected(self) -> Iterator[_Connection]:
        """The connection, made again if it was lost; every failure of the server becomes a `StoreError`."""
        with self._lock:
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = psycopg.connect(
                        self._url, autocommit=True, connect_timeout=CONNECT_SECONDS, options=_OPTIONS
                    )
                    self._connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
                yield self._connection
            except psycopg.Error as error:
                if isinstance(error, psycopg.OperationalError) and self._connection is not None:
                    self._connection.close()
                raise StoreError(f"PostgreSQL: {str(error).strip().splitlines()[0]}") from error

    def _migrate(self, connection: _Connection) -> None:
        """Bring the schema up to date; the lock is taken first, so that the transaction sees what others did."""
        connection.execute("SELECT pg_advisory_lock(%s)", (_SCHEMA_LOCK,))
        with connection.transaction():
            connection.execute("CREATE TABLE IF NOT EXISTS once_schema (version integer NOT NULL)")
            found = connection.execute("SELECT version FROM once_schema").fetchone()
            version = 0 if found is None else int(found[0])
            if version > VERSION:
                raise StoreError(f"PostgreSQL: made by a newer version (schema {version}, this one knows {VERSION})")
            for number in range(version + 1, VERSION + 1):
                for statement in _MIGRATIONS[number]:
                    connection.execute(statement)
            connection.execute("DELETE FROM once_schema")
            connection.execute("INSERT INTO once_schema VALUES (%s)", (VERSION,))
        connection.execute("SELECT pg_advisory_unlock(%s)", (_SCHEMA_LOCK,))

    def transact(self, step: Step[T]) -> T:
        """Run `step` as a serializable transaction."""
        with self._connected() as connection:
            while True:
                try:
                    with connection.transaction():
                        made = self._run(connection, step)
                    self._believed.learn_all(made.tx)
                    return made.end()
                except (SerializationFailure, DeadlockDetected, UniqueViolation):
                    continue

    def _run(self, connection: _Connection, step: Step[T]) -> Attempt[T]:
        """Run `step` over beliefs until all that it read is stored so; the transaction sees one state of the store."""
        now = self._clock(connection)
        while True:
            made = Attempt(step, self._believed, now)
            wrong = self._wrong(connection, made.tx.reads)
            if not wrong:
                self._write(connection, made.tx.writes)
                return made
            for place, value in wrong.items():
                self._believed.learn(place, value)

    def _wrong(self, connection: _Connection, reads: Mapping[Place, str | None]) -> dict[Place, str | None]:
        """The true values of places that were believed to have others."""
        self._trips += 1
        found = connection.execute(_READ, _columns(reads, 3)).fetchall() if reads else []
        stored = {Place(kind, table, key): str(value) for kind, table, key, value in found}
        return {place: stored.get(place) for place, value in reads.items() if stored.get(place) != value}

    def _write(self, connection: _Connection, writes: Mapping[Place, Row | None]) -> None:
        removed = [place for place, row in writes.items() if row is None]
        written = [(*place, *row) for place, row in writes.items() if row is not None]
        if removed:
            connection.execute(_DELETE, _columns(removed, 3))
        if written:
            connection.execute(_WRITE, _columns(written, 6))
        self._trips += bool(removed) + bool(written)

    @staticmethod
    def _clock(connection: _Connection) -> int:
        found = connection.execute(_CLOCK).fetchone()
        if found is None:
            raise StoreError("PostgreSQL: no clock")
        return int(found[0])

    def _all(self, query: str, *values: str | int) -> list[tuple[Any, ...]]:
        with self._connected() as connection:
            self._trips += 1
            return connection.execute(query, values).fetchall()

    def due(self, limit: int) -> list[DueRow]:
        """Rows whose time has come."""
        return [DueRow(*row) for row in self._all(_DUE, limit)]

    def rows(self, table: str, after: str = "", limit: int = 1000) -> list[tuple[str, str]]:
        """A table in order of its keys."""
        query = "SELECT key, value FROM once_places WHERE tbl = %s AND kind = 'r' AND key > %s ORDER BY key LIMIT %s"
        return [(key, value) for key, value in self._all(query, table, after, limit)]

    def members(self, set_name: str, after: str = "", limit: int = 1000) -> list[str]:
        """A set in order of its members."""
        query = "SELECT key FROM once_places WHERE tbl = %s AND kind = 's' AND key > %s ORDER BY key LIMIT %s"
        return [row[0] for row in self._all(query, set_name, after, limit)]

    def backlog(self) -> int:
        """How many rows wait."""
        return int(self._all("SELECT count(*) FROM once_places WHERE due IS NOT NULL")[0][0])

    def now(self) -> int:
        """The server's clock."""
        with self._connected() as connection:
            self._trips += 1
            return self._clock(connection)

    def trips(self) -> int:
        """Statements sent."""
        return self._trips

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()


def _columns(rows: Iterable[tuple[Any, ...]], width: int) -> list[list[Any]]:
    """Rows as one array for each column."""
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)]

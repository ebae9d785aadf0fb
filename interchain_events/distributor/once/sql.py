"""A store in a SQLite file, which is the default, or in a PostgreSQL database for replicas.

Everything is in one table, `once_places`. Transactions are serializable, and a transaction that
conflicts with another one is repeated.

On SQLite, reading a value is cheap, so a step reads directly. On PostgreSQL, each statement is a
round trip. So a step runs over beliefs (see `beliefs`), and one statement checks everything that it
has read.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from interchain_events.database.database import Database, Dialect, Session, migrate
from interchain_events.database.errors import StoreConflict, StoreReplaced, TablesMissing
from interchain_events.distributor.once.beliefs import Attempt, Beliefs
from interchain_events.distributor.once.memory import machine_clock
from interchain_events.distributor.once.transaction import (
    MEMBER,
    ROW,
    DueRow,
    Place,
    Read,
    Reader,
    Step,
    Store,
    StoredRow,
    T,
)

_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS once_places (kind {TEXT} NOT NULL, tbl {TEXT} NOT NULL, key {TEXT}"
    " NOT NULL, value TEXT NOT NULL, due {INT}, lane SMALLINT NOT NULL, PRIMARY KEY (tbl, kind,"
    " key))"
)
_INDEX: Final = (
    "CREATE INDEX IF NOT EXISTS once_places_due ON once_places (lane, due) WHERE due IS NOT NULL"
)
_INSERT: Final = "INSERT INTO once_places (kind, tbl, key, value, due, lane)"
_UPDATE: Final = (
    "ON CONFLICT (tbl, kind, key) DO UPDATE SET value = excluded.value, due = excluded.due, lane ="
    " excluded.lane"
)
_DUE: Final = (
    "SELECT tbl, key FROM once_places WHERE due IS NOT NULL AND due <= {} ORDER BY lane, due, tbl,"
    " key LIMIT ?"
)
"""The query for due rows. The clock is filled in. The order is that of the index."""
_NAMED: Final = "FROM once_places WHERE tbl = ? AND kind = ? AND key > ? ORDER BY key LIMIT ?"
"""The end of a query for a part of a table or set, beginning after a given key."""
_ASKED: Final = "unnest(?::text[], ?::text[], ?::text[]) AS asked (kind, tbl, key)"
"""The places that a PostgreSQL statement concerns, as three arrays."""
_NOW: Final = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
"""The clock of the PostgreSQL server in ms, which advances during a transaction."""


class _Sql(NamedTuple):
    """The statements that differ between the databases.

    On SQLite a statement concerns one place and is run once for each. On PostgreSQL it takes arrays
    of places, so that all of them together cost one round trip.
    """

    steps: tuple[tuple[str | Callable[[Session], None], ...], ...]
    """The steps that create the schema or update an older one, for `migrate`."""
    read: str
    write: str
    delete: str


def _adopt_sqlite(session: Session) -> None:
    """Take over the table of earlier versions of this package.

    Those versions refuse a file with a `user_version` above their own, so they will refuse this
    one.
    """
    if session.run("SELECT 1 FROM sqlite_master WHERE name = 'places'"):
        session.run("ALTER TABLE places RENAME TO once_places")
        session.run("DROP INDEX places_due")
        session.run("PRAGMA user_version = 2")


def _adopt_postgres(session: Session) -> None:
    """Make earlier versions of this package, which use the same table, refuse the database."""
    if session.run("SELECT to_regclass('once_schema')::text") != [(None,)]:
        session.run("UPDATE once_schema SET version = 2")


_OF: Final = {
    Dialect.SQLITE: _Sql(
        ((_adopt_sqlite, f"{_TABLE} WITHOUT ROWID", _INDEX),),
        "SELECT value FROM once_places WHERE kind = ? AND tbl = ? AND key = ?",
        f"{_INSERT} VALUES (?, ?, ?, ?, ?, ?) {_UPDATE}",
        "DELETE FROM once_places WHERE kind = ? AND tbl = ? AND key = ?",
    ),
    Dialect.POSTGRESQL: _Sql(
        ((_adopt_postgres, _TABLE, _INDEX),),
        f"SELECT kind, tbl, key, value FROM once_places JOIN {_ASKED} USING (kind, tbl, key)",
        f"{_INSERT} SELECT * FROM unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::bigint[],"
        f" ?::smallint[]) {_UPDATE}",
        f"DELETE FROM once_places AS place USING {_ASKED}"
        " WHERE place.kind = asked.kind AND place.tbl = asked.tbl AND place.key = asked.key",
    ),
}


class SqlStore(Store):
    """Rows and sets in one SQL table.

    The database must have been opened as `serializable`. Otherwise a step could overwrite values
    that another process has changed since the step read them.
    """

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database
        self._sqlite = database.dialect is Dialect.SQLITE
        self._sql = _OF[database.dialect]
        self._believed = Beliefs()
        self._make_tables()

    def _make_tables(self) -> None:
        """Create the table, or update it to this version."""
        migrate(self._database, "once", self._sql.steps, only_table="once_places")

    def transact(self, step: Step[T]) -> T:
        """Run `step` in a serializable transaction, and again after each conflict.

        If the table is gone, it is created again, and `step` finds it empty.
        """
        with self._lock:
            made_tables = False
            while True:
                try:
                    with self._database.transaction(write=True) as session:
                        attempt = self._run(session, step)
                except StoreConflict:
                    continue
                except (StoreReplaced, TablesMissing):
                    if made_tables:
                        raise
                    made_tables = True
                    self._believed.clear()
                    self._make_tables()
                    continue
                # Before the commit, the writes might still have been lost.
                if not self._sqlite:
                    self._believed.learn_all(attempt.tx)
                return attempt.end()

    def _run(self, session: Session, step: Step[T]) -> Attempt[T]:
        """Run `step` in an open transaction until all values that it read are true, and write.

        On SQLite the step reads the stored values directly, so one run suffices.
        """
        if self._sqlite:
            attempt = Attempt(step, self._reader(session), machine_clock())
            if isinstance(attempt.failure, sqlite3.Error):
                # A read of the step failed. The transaction turns the database's error into a
                # `StoreError`.
                raise attempt.failure
            self._write(session, attempt.tx.writes())
            return attempt
        now = int(session.run(f"SELECT {_NOW}")[0][0])
        while True:
            attempt = Attempt(step, self._believed.reader, now)
            wrong = self._wrong(session, attempt.tx.reads())
            if not wrong:
                self._write(session, attempt.tx.writes())
                return attempt
            for place, value in wrong.items():
                self._believed.learn(place, value)

    def _reader(self, session: Session) -> Reader:
        """Return the function that reads tables and sets in a session on SQLite."""

        def reader(kind: str, name: str) -> Read:
            def read(key: str) -> str | None:
                rows = session.run(self._sql.read, (kind, name, key))
                value: str | None = rows[0][0] if rows else None
                return value

            return read

        return reader

    def _wrong(
        self, session: Session, reads: Mapping[Place, str | None]
    ) -> dict[Place, str | None]:
        """Return the stored values of the places at which the beliefs `reads` are wrong."""
        self._trips += 1
        rows = session.run(self._sql.read, _columns(list(reads))) if reads else []
        stored = {(kind, table, key): value for kind, table, key, value in rows}
        return {
            place: stored.get(place) for place, value in reads.items() if stored.get(place) != value
        }

    def _write(self, session: Session, writes: Mapping[Place, StoredRow | None]) -> None:
        """Write and remove rows, in at most two round trips."""
        removed = [place for place, row in writes.items() if row is None]
        written = [(*place, *row) for place, row in writes.items() if row is not None]
        for sql, rows in ((self._sql.delete, removed), (self._sql.write, written)):
            if not rows:
                continue
            if self._sqlite:
                session.run_many(sql, rows)
            else:
                session.run(sql, _columns(rows))
            self._trips += 1

    def _all(self, query: str, *values: str | int) -> list[tuple[Any, ...]]:
        """Return the rows of a query outside of a step. If the table is gone, create it again."""
        self._trips += 1
        try:
            return self._database.select(query, values)
        except (StoreReplaced, TablesMissing):
            self._make_tables()
            return self._database.select(query, values)

    def due(self, limit: int) -> list[DueRow]:
        """Return the rows that are due."""
        clock = (machine_clock(),) if self._sqlite else ()
        rows = self._all(_DUE.format("?" if self._sqlite else _NOW), *clock, limit)
        return [DueRow(*row) for row in rows]

    def rows(self, table: str, after: str = "", limit: int = 1000) -> list[tuple[str, str]]:
        """Return a table in the order of its keys."""
        rows = self._all(f"SELECT key, value {_NAMED}", table, ROW, after, limit)
        return [(key, value) for key, value in rows]

    def members(self, set_name: str, after: str = "", limit: int = 1000) -> list[str]:
        """Return a set in the order of its members."""
        rows = self._all(f"SELECT key {_NAMED}", set_name, MEMBER, after, limit)
        return [key for (key,) in rows]

    def backlog(self) -> int:
        """Return the number of rows that have a due time."""
        return int(self._all("SELECT count(*) FROM once_places WHERE due IS NOT NULL")[0][0])

    def now(self) -> int:
        """Return the clock of the PostgreSQL server, or the machine's clock for SQLite.

        All processes that open a SQLite file are on the same machine and share its clock.
        """
        return machine_clock() if self._sqlite else int(self._all(f"SELECT {_NOW}")[0][0])

    def close(self) -> None:
        """Close the connections."""
        self._database.close()


def _columns(rows: Sequence[Sequence[object]]) -> list[list[object]]:
    """Turn rows into columns, which PostgreSQL takes as arrays."""
    return [list(column) for column in zip(*rows, strict=True)]

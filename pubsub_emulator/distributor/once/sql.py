"""A store in a SQLite file, the default, or in a PostgreSQL database, for replicas on several machines.

On PostgreSQL one statement checks everything that a step read, and the step is repeated over what proved wrong.
Transactions are serializable, and one that met another is repeated.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from pubsub_emulator.database.database import Database, Dialect, Session, migrate
from pubsub_emulator.database.errors import StoreConflict
from pubsub_emulator.distributor.once.beliefs import Attempt, Beliefs
from pubsub_emulator.distributor.once.memory import machine_clock
from pubsub_emulator.distributor.once.transaction import DueRow, Place, Reader, Row, Step, Store, T

_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS once_places (kind {TEXT} NOT NULL, tbl {TEXT} NOT NULL, key {TEXT} NOT NULL,"
    " value TEXT NOT NULL, due {INT}, lane SMALLINT NOT NULL, PRIMARY KEY (tbl, kind, key))"
)
_INDEX: Final = "CREATE INDEX IF NOT EXISTS once_places_due ON once_places (lane, due) WHERE due IS NOT NULL"
_INSERT: Final = "INSERT INTO once_places (kind, tbl, key, value, due, lane)"
_UPDATE: Final = (
    "ON CONFLICT (tbl, kind, key) DO UPDATE SET value = excluded.value, due = excluded.due, lane = excluded.lane"
)
_DUE: Final = (
    "SELECT tbl, key FROM once_places WHERE due IS NOT NULL AND due <= {} ORDER BY lane, due, tbl, key LIMIT ?"
)
_NAMED: Final = "FROM once_places WHERE tbl = ? AND kind = ? AND key > ? ORDER BY key LIMIT ?"
_ASKED: Final = "unnest(?::text[], ?::text[], ?::text[]) AS asked (kind, tbl, key)"
_NOW: Final = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"


class _Sql(NamedTuple):
    """Statements that differ: on SQLite of one place, on PostgreSQL of many."""

    steps: tuple[tuple[str | Callable[[Session], None], ...], ...]
    read: str
    write: str
    delete: str


def _adopt_sqlite(session: Session) -> None:
    """Take over the table of earlier versions, and have those refuse the file."""
    if session.run("SELECT 1 FROM sqlite_master WHERE name = 'places'"):
        session.run("ALTER TABLE places RENAME TO once_places")
        session.run("DROP INDEX places_due")
        session.run("PRAGMA user_version = 2")


def _adopt_postgres(session: Session) -> None:
    """Have earlier versions, whose table this is, refuse the database."""
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
        f"{_INSERT} SELECT * FROM unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::bigint[], ?::smallint[])"
        f" {_UPDATE}",
        f"DELETE FROM once_places AS place USING {_ASKED}"
        " WHERE place.kind = asked.kind AND place.tbl = asked.tbl AND place.key = asked.key",
    ),
}


class SqlStore(Store):
    """Rows and sets in one table. The database must be opened as `serializable`."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database
        self._sqlite = database.dialect is Dialect.SQLITE
        self._sql = _OF[database.dialect]
        self._believed = Beliefs()
        migrate(database, "once", self._sql.steps)

    def transact(self, step: Step[T]) -> T:
        """Run `step` as a serializable transaction."""
        with self._lock:
            while True:
                try:
                    with self._database.transaction(write=True) as session:
                        made = self._run(session, step)
                except StoreConflict:
                    continue
                if not self._sqlite:
                    self._believed.learn_all(made.tx)
                return made.end()

    def _run(self, session: Session, step: Step[T]) -> Attempt[T]:
        """Run `step` over what is stored: over beliefs until all that it read is stored so, where reading is slow."""
        if self._sqlite:
            made = Attempt(step, self._reader(session), machine_clock())
            self._write(session, made.tx.writes())
            return made
        now = int(session.run(f"SELECT {_NOW}")[0][0])
        while True:
            made = Attempt(step, self._believed.reader, now)
            wrong = self._wrong(session, made.tx.reads())
            if not wrong:
                self._write(session, made.tx.writes())
                return made
            for place, value in wrong.items():
                self._believed.learn(place, value)

    def _reader(self, session: Session) -> Reader:
        return lambda kind, name: lambda key: next(chain(*session.run(self._sql.read, (kind, name, key))), None)

    def _wrong(self, session: Session, reads: Mapping[Place, str | None]) -> dict[Place, str | None]:
        """The true values of places that were believed to have others."""
        self._trips += 1
        found = session.run(self._sql.read, _columns(list(reads))) if reads else []
        stored = {(kind, table, key): value for kind, table, key, value in found}
        return {place: stored.get(place) for place, value in reads.items() if stored.get(place) != value}

    def _write(self, session: Session, writes: Mapping[Place, Row | None]) -> None:
        removed = [place for place, row in writes.items() if row is None]
        written = [(*place, *row) for place, row in writes.items() if row is not None]
        for sql, rows in ((self._sql.delete, removed), (self._sql.write, written)):
            if rows and self._sqlite:
                session.run_many(sql, rows)
            elif rows:
                session.run(sql, _columns(rows))
        self._trips += bool(removed) + bool(written)

    def _all(self, query: str, *values: str | int) -> list[tuple[Any, ...]]:
        self._trips += 1
        return self._database.select(query, values)

    def due(self, limit: int) -> list[DueRow]:
        """Rows whose time has come."""
        clock = (machine_clock(),) if self._sqlite else ()
        found = self._all(_DUE.format("?" if self._sqlite else _NOW), *clock, limit)
        return [DueRow(*row) for row in found]

    def rows(self, table: str, after: str = "", limit: int = 1000) -> list[tuple[str, str]]:
        """A table in order of its keys."""
        return [(key, value) for key, value in self._all(f"SELECT key, value {_NAMED}", table, "r", after, limit)]

    def members(self, set_name: str, after: str = "", limit: int = 1000) -> list[str]:
        """A set in order of its members."""
        return [key for (key,) in self._all(f"SELECT key {_NAMED}", set_name, "s", after, limit)]

    def backlog(self) -> int:
        """The number of rows that wait."""
        return int(self._all("SELECT count(*) FROM once_places WHERE due IS NOT NULL")[0][0])

    def now(self) -> int:
        """The clock of the PostgreSQL server, or the machine's, which all processes that open a file share."""
        return machine_clock() if self._sqlite else int(self._all(f"SELECT {_NOW}")[0][0])

    def close(self) -> None:
        """Close the connections."""
        self._database.close()


def _columns(rows: Sequence[Sequence[object]]) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)]

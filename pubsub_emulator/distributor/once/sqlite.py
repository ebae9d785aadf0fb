"""A store in one SQLite file: the default, for one machine."""

import sqlite3
import time
from pathlib import Path
from threading import RLock
from typing import Final

from pubsub_emulator.eventplane.once.memory import machine_clock
from pubsub_emulator.eventplane.once.transaction import DueRow, Place, Row, Step, StoreError, T, Transaction

APPLICATION: Final = 0x1ED0_0CE1
VERSION: Final = 1
BUSY_SECONDS: Final = 30.0

_MIGRATIONS: Final = {
    1: (
        """CREATE TABLE places (
            kind TEXT NOT NULL, tbl TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, due INTEGER,
            lane INTEGER NOT NULL, PRIMARY KEY (tbl, kind, key)) WITHOUT ROWID""",
        "CREATE INDEX places_due ON places (lane, due) WHERE due IS NOT NULL",
    )
}


class SqliteStore:
    """A file that several processes of one machine may open; steps are serialized by SQLite's write lock."""

    def __init__(self, path: Path) -> None:
        self._lock = RLock()
        self._trips = 0
        self._path = path
        try:
            self._connection = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._open()
        except sqlite3.Error as error:
            raise StoreError(f"{path}: {error}") from error

    def _open(self) -> None:
        run = self._connection.execute
        found = (run("PRAGMA application_id").fetchone()[0], run("PRAGMA user_version").fetchone()[0])
        if found[0] not in {0, APPLICATION}:
            raise StoreError(f"{self._path}: not a database of this program")
        if found[1] > VERSION:
            raise StoreError(f"{self._path}: made by a newer version (schema {found[1]}, this one knows {VERSION})")
        self._set_journal()
        run("BEGIN IMMEDIATE")
        version = run("PRAGMA user_version").fetchone()[0]
        if version == 0 and run("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            run("ROLLBACK")
            raise StoreError(f"{self._path}: not a database of this program")
        for number in range(version + 1, VERSION + 1):
            for statement in _MIGRATIONS[number]:
                run(statement)
        run(f"PRAGMA application_id = {APPLICATION}")
        run(f"PRAGMA user_version = {VERSION}")
        run("COMMIT")

    def _set_journal(self) -> None:
        """Two processes that switch to the journal at once get `locked` without waiting, so this waits itself."""
        patience = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = FULL")
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > patience:
                    raise
                time.sleep(0.01)
            else:
                return

    def _read(self, place: Place) -> str | None:
        found = self._connection.execute(
            "SELECT value FROM places WHERE tbl = ? AND kind = ? AND key = ?", (place.table, place.kind, place.key)
        ).fetchone()
        return None if found is None else str(found[0])

    def _apply(self, place: Place, row: Row | None) -> None:
        if row is None:
            self._connection.execute(
                "DELETE FROM places WHERE tbl = ? AND kind = ? AND key = ?", (place.table, place.kind, place.key)
            )
        else:
            self._connection.execute(
                "INSERT INTO places (kind, tbl, key, value, due, lane) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (tbl, kind, key)"
                " DO UPDATE SET value = excluded.value, due = excluded.due, lane = excluded.lane",
                (*place, *row),
            )

    def transact(self, step: Step[T]) -> T:
        """Run `step` between `BEGIN IMMEDIATE` and `COMMIT`."""
        with self._lock:
            self._trips += 1
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    tx = Transaction(self._read, machine_clock())
                    result = step(tx)
                    for place, row in tx.writes.items():
                        self._apply(place, row)
                    self._connection.execute("COMMIT")
                except BaseException:
                    self._connection.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise StoreError(f"{self._path}: {error}") from error
            return result

    def _all(self, query: str, *values: str | int) -> list[tuple[str, ...]]:
        with self._lock:
            self._trips += 1
            try:
                return self._connection.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise StoreError(f"{self._path}: {error}") from error

    def due(self, limit: int) -> list[DueRow]:
        """Rows whose time has come."""
        found = self._all(
            "SELECT tbl, key FROM places WHERE due IS NOT NULL AND due <= ? ORDER BY lane, due, tbl, key LIMIT ?",
            machine_clock(),
            limit,
        )
        return [DueRow(table, key) for table, key in found]

    def rows(self, table: str, after: str = "", limit: int = 1000) -> list[tuple[str, str]]:
        """A table in order of its keys."""
        found = self._all(
            "SELECT key, value FROM places WHERE tbl = ? AND kind = 'r' AND key > ? ORDER BY key LIMIT ?",
            table,
            after,
            limit,
        )
        return [(key, value) for key, value in found]

    def members(self, set_name: str, after: str = "", limit: int = 1000) -> list[str]:
        """A set in order of its members."""
        found = self._all(
            "SELECT key FROM places WHERE tbl = ? AND kind = 's' AND key > ? ORDER BY key LIMIT ?",
            set_name,
            after,
            limit,
        )
        return [row[0] for row in found]

    def backlog(self) -> int:
        """How many rows wait."""
        return int(self._all("SELECT count(*) FROM places WHERE due IS NOT NULL")[0][0])

    def now(self) -> int:
        """The machine's clock, which all processes that open the file share."""
        return machine_clock()

    def trips(self) -> int:
        """Steps and queries."""
        return self._trips

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

"""The protocol of a database, and the migration of a component's tables.

    with database.transaction(write=True) as session:
        session.run("INSERT INTO t VALUES (?, ?)", (1, b"…"))

Placeholders are `?` for both. In statements of `migrate`, `{BLOB}`, `{INT}` and `{BOOL}` are the dialect's types for
bytes, 64 bit integers and truth, and `{TEXT}` its text that is ordered by code points. A transaction is committed when
its block ends and rolled back when the block raises. What a driver raises becomes `StoreError`, and `StoreUnavailable`
where asking again may succeed.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Any, Final, Protocol

from pubsub_emulator.database.errors import StoreError

Params = Sequence[object]


class Dialect(StrEnum):
    """Whose SQL; placeholders are written `?` for both."""

    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"


_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,40}")
_TYPES: Final = {
    Dialect.SQLITE: {"BLOB": "BLOB", "INT": "INTEGER", "TEXT": "TEXT", "BOOL": "INTEGER"},
    Dialect.POSTGRESQL: {"BLOB": "BYTEA", "INT": "BIGINT", "TEXT": 'TEXT COLLATE "C"', "BOOL": "BOOLEAN"},
}


class Session(Protocol):
    """One transaction."""

    def run(self, sql: str, params: Params = ()) -> list[tuple[Any, ...]]:
        """Execute a statement; its rows, none for a statement that has no rows."""

    def run_many(self, sql: str, rows: Iterable[Params]) -> None:
        """Execute a statement once for each row."""


class Database(Protocol):
    """A place for tables; its methods may be called from any thread."""

    dialect: Dialect
    place: str
    """The file, or the URL without its password: for messages."""

    def select(self, sql: str, params: Params = ()) -> list[tuple[Any, ...]]:
        """The rows of one statement that only reads: a moment of its own, without the cost of a transaction."""

    def transaction(self, *, write: bool = False) -> AbstractContextManager[Session]:
        """A transaction that sees one moment. Writers come one after the other where they lock the same row."""

    def notify(self, session: Session, channel: str) -> None:
        """Wake those who wait on a channel once the transaction is committed."""

    def wait(self, channel: str, timeout: float) -> None:
        """Wait for a notification, at most `timeout` seconds; it may return early, and may miss one."""

    def close(self) -> None:
        """Release all connections."""


def check_prefix(prefix: str) -> str:
    """A prefix of table names, which becomes SQL text. Raises `StoreError` for anything but a plain name."""
    if not _NAME.fullmatch(prefix):
        raise StoreError(f"a table prefix is a lower-case name, not {prefix!r}")
    return prefix


def migrate(database: Database, component: str, steps: Sequence[Sequence[str | Callable[[Session], None]]]) -> None:
    """Bring a component's tables to version `len(steps)`; each step is the statements of one version (EV-6).

    A function among the statements moves what SQL cannot. All is one transaction. Newer tables raise `StoreError`.
    """
    types = _TYPES[database.dialect]
    with database.transaction(write=True) as session:
        if database.dialect is Dialect.POSTGRESQL:  # two programs that start at once, the second of which must see
            session.run("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")  # what the first has done
            session.run("SELECT pg_advisory_xact_lock(?::bigint)", (0x7075_6273_7562,))
        session.run(f"CREATE TABLE IF NOT EXISTS migrations (component {types['TEXT']} PRIMARY KEY, version INTEGER)")
        found = session.run("SELECT version FROM migrations WHERE component = ?", (component,))
        version = found[0][0] if found else 0
        if version > len(steps):
            raise StoreError(
                f"{database.place}: its {component} tables have version {version}, this program knows {len(steps)}; "
                "open it with a newer pubsub"
            )
        for step in steps[version:]:
            for statement in step:
                if callable(statement):
                    statement(session)
                else:
                    session.run(statement.format(**types))
        update = "ON CONFLICT (component) DO UPDATE SET version = excluded.version"
        session.run(f"INSERT INTO migrations VALUES (?, ?) {update}", (component, len(steps)))

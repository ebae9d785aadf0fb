"""The interface of databases, and the migration of a component's tables.

    with database.transaction(write=True) as session:
        session.run("INSERT INTO t VALUES (?, ?)", (1, b"…"))

Placeholders are `?` in both dialects. In statements for `migrate`, `{BLOB}`, `{INT}`, `{BOOL}` and
`{TEXT}` stand for the dialect's types of bytes, 64-bit integers, truth values, and text that is
ordered by code points.

A transaction is committed when its context ends, and rolled back when the context raises. The
drivers' errors become `StoreError`, or `StoreUnavailable` if the same call may succeed later.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Any, Final, Protocol

from interchain_events.database.errors import StoreError

Params = Sequence[object]
"""The values of a statement's placeholders."""


class Dialect(StrEnum):
    """The dialect of SQL of a database."""

    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"


_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,40}")
"""The form of a prefix of table names."""
_TYPES: Final = {
    Dialect.SQLITE: {"BLOB": "BLOB", "INT": "INTEGER", "TEXT": "TEXT", "BOOL": "INTEGER"},
    Dialect.POSTGRESQL: {
        "BLOB": "BYTEA",
        "INT": "BIGINT",
        "TEXT": 'TEXT COLLATE "C"',
        "BOOL": "BOOLEAN",
    },
}
"""The types of columns in each dialect."""


class Session(Protocol):
    """An open transaction."""

    def run(self, sql: str, params: Params = ()) -> list[tuple[Any, ...]]:
        """Execute a statement and return its rows.

        A statement without a result returns an empty list.
        """

    def run_many(self, sql: str, rows: Iterable[Params]) -> None:
        """Execute a statement once for each row of parameters."""


class Database(Protocol):
    """A database. Its methods may be called from any thread, and raise `StoreError`."""

    dialect: Dialect
    place: str
    """The file, or the URL without its password, for messages."""

    def select(self, sql: str, params: Params = ()) -> list[tuple[Any, ...]]:
        """Return the rows of one reading statement, all of the same moment.

        This is cheaper than a transaction.
        """

    def transaction(self, *, write: bool = False) -> AbstractContextManager[Session]:
        """Return the context of a transaction. Its statements see the state of one moment.

        Writers that lock the same row wait for each other.
        """

    def notify(self, session: Session, channel: str) -> None:
        """Wake those who wait on a channel when the transaction of `session` is committed."""

    def wait(self, channel: str, timeout: float) -> None:
        """Wait for a notification on a channel, at most `timeout` seconds.

        This may return early, and may miss a notification.
        """

    def close(self) -> None:
        """Close all connections."""


def check_prefix(prefix: str) -> str:
    """Return a prefix of table names. It becomes a part of SQL text.

    Raises `StoreError` unless the prefix is a plain name.
    """
    if not _NAME.fullmatch(prefix):
        raise StoreError(f"a table prefix is a lower-case name, not {prefix!r}")
    return prefix


_EXISTS: Final = {
    Dialect.SQLITE: "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?",
    Dialect.POSTGRESQL: "SELECT count(to_regclass(?::text))",
}
"""The query for the number of tables with a name, 0 or 1."""


def migrate(
    database: Database,
    component: str,
    steps: Sequence[Sequence[str | Callable[[Session], None]]],
    *,
    only_table: str = "",
) -> None:
    """Create or update the tables of a component to version `len(steps)` (EV-6).

    Each step has the statements that lead to the next version. Functions among them move data that
    SQL cannot move. All steps are one transaction. Raises `StoreError` if the tables are newer.

    `only_table` names the table of a component that has only one and can start with an empty one.
    If it has been dropped, it is created again, although its version is still recorded.
    """
    types = _TYPES[database.dialect]
    with database.transaction(write=True) as session:
        if database.dialect is Dialect.POSTGRESQL:
            # If two programs start at once, the second one must see the changes of the first.
            session.run("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            session.run("SELECT pg_advisory_xact_lock(?::bigint)", (0x7075_6273_7562,))
        session.run(
            f"CREATE TABLE IF NOT EXISTS migrations (component {types['TEXT']} PRIMARY KEY, version"
            " INTEGER)"
        )
        rows = session.run("SELECT version FROM migrations WHERE component = ?", (component,))
        version = rows[0][0] if rows else 0
        if version > len(steps):
            raise StoreError(
                f"{database.place}: its {component} tables have version {version}, this program"
                f" knows {len(steps)}; open it with a newer pubsub"
            )
        if only_table and not session.run(_EXISTS[database.dialect], (only_table,))[0][0]:
            version = 0
        for step in steps[version:]:
            for statement in step:
                if callable(statement):
                    statement(session)
                else:
                    session.run(statement.format(**types))
        update = "ON CONFLICT (component) DO UPDATE SET version = excluded.version"
        session.run(f"INSERT INTO migrations VALUES (?, ?) {update}", (component, len(steps)))

"""Opens databases. Each kind is imported when it is opened: the driver of PostgreSQL is an extra."""

from pubsub_emulator.database.database import Database
from pubsub_emulator.database.errors import StoreError


def open_database(place: str, *, serializable: bool = False) -> Database:
    """The database at a path (SQLite, created if need be) or a `postgresql://` URL. Raises `StoreError`.

    `serializable`: transactions that write end as if each had run alone, as SQLite's do, or raise `StoreConflict`.
    """
    if place.startswith(("postgresql://", "postgres://")):
        from pubsub_emulator.database.postgres import PostgresDatabase  # noqa: PLC0415  # its driver is an extra

        return PostgresDatabase(place, serializable=serializable)
    if "://" in place:
        raise StoreError(f"{place.partition('://')[0]}:// is not supported; give a path or a postgresql:// URL")
    from pubsub_emulator.database.sqlite import SqliteDatabase  # noqa: PLC0415  # each loads when it is used

    return SqliteDatabase(place)

"""Opens databases. Each kind is imported when it is opened: the driver of PostgreSQL is an extra."""

from pubsub_emulator.eventplane.errors import StoreError
from pubsub_emulator.eventplane.log.database import Database


def open_database(place: str) -> Database:
    """The database at a path (SQLite, created if need be) or a `postgresql://` URL. Raises `StoreError`."""
    if place.startswith(("postgresql://", "postgres://")):
        from pubsub_emulator.eventplane.log.postgres import PostgresDatabase  # noqa: PLC0415  # its driver is an extra

        return PostgresDatabase(place)
    if "://" in place:
        raise StoreError(f"{place.partition('://')[0]}:// is not supported; give a path or a postgresql:// URL")
    from pubsub_emulator.eventplane.log.sqlite import SqliteDatabase  # noqa: PLC0415  # each loads when it is used

    return SqliteDatabase(place)

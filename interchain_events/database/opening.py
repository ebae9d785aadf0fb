"""The opening of databases.

Each kind is imported only when it is opened, because PostgreSQL's driver is an extra.
"""

from interchain_events.database.database import Database
from interchain_events.database.errors import StoreError


def open_database(place: str, *, serializable: bool = False) -> Database:
    """Open the database at a path or URL. Raises `StoreError`.

    A path is that of a SQLite file, which is created if necessary. A URL is `postgresql://…`.

    If `serializable` is true, writing transactions either have the same effect as if each had run
    alone, or raise `StoreConflict`. In SQLite they always do.
    """
    if place.startswith(("postgresql://", "postgres://")):
        from interchain_events.database.postgres import PostgresDatabase  # noqa: PLC0415  # its driver is an extra

        return PostgresDatabase(place, serializable=serializable)
    if "://" in place:
        raise StoreError(
            f"{place.partition('://')[0]}:// is not supported; give a path or a postgresql:// URL"
        )
    from interchain_events.database.sqlite import SqliteDatabase  # noqa: PLC0415  # imported only if it is used

    return SqliteDatabase(place)

"""From an address to a store: `sqlite:PATH`, `postgresql://…`, `redis://…`, `memory:`."""

from pathlib import Path

from pubsub_emulator.eventplane.once.memory import MemoryStore
from pubsub_emulator.eventplane.once.transaction import Store, StoreError


def open_store(address: str) -> Store:
    """Open the store at `address`; the drivers of PostgreSQL and Redis are loaded only where they are asked for.

    Raises `StoreError`.
    """
    scheme, colon, rest = address.partition(":")
    if scheme == "memory" and colon and not rest:
        return MemoryStore()
    if scheme == "sqlite" and rest:
        from pubsub_emulator.eventplane.once.sqlite import SqliteStore  # noqa: PLC0415  # only who asks pays

        return SqliteStore(Path(rest.removeprefix("//")))
    if scheme in {"postgresql", "postgres"} and rest.startswith("//"):
        from pubsub_emulator.eventplane.once.postgres import PostgresStore  # noqa: PLC0415  # the same

        return PostgresStore(address)
    if scheme in {"redis", "rediss", "valkey", "unix"} and rest:
        from pubsub_emulator.eventplane.once.redis import RedisStore  # noqa: PLC0415  # the same

        return RedisStore("redis:" + rest if scheme == "valkey" else address)
    raise StoreError(f"store {scheme!r} is not one of sqlite:PATH, postgresql://…, redis://…, memory:")

"""Doing something once: a transactional store, and claims with leases (ID-3, ID-4).

A `Store` runs steps atomically. A claim is a lease on an id, so that only one process works on it.
It is committed when the work is done, released to let others try, and revoked if a commit proves
untrue.
"""

from interchain_events.database.errors import StoreError
from interchain_events.database.opening import open_database
from interchain_events.distributor.once.claims import Claim, claim, commit, release, revoke
from interchain_events.distributor.once.memory import MemoryStore
from interchain_events.distributor.once.transaction import DueRow, Store, Transaction

__all__ = [
    "Claim",
    "DueRow",
    "MemoryStore",
    "Store",
    "Transaction",
    "claim",
    "commit",
    "open_store",
    "release",
    "revoke",
]


def open_store(address: str) -> Store:
    """Open the store at an address. Raises `StoreError`.

    The address is `sqlite:PATH`, `postgresql://…`, `redis://…` (also `rediss:`, `valkey:` and
    `unix:`) or `memory:`. Only the driver of that store is imported.
    """
    scheme, colon, rest = address.partition(":")
    if scheme == "memory" and colon and not rest:
        return MemoryStore()
    if (scheme == "sqlite" and rest) or (
        scheme in {"postgresql", "postgres"} and rest.startswith("//")
    ):
        from interchain_events.distributor.once.sql import SqlStore  # noqa: PLC0415  # imported only if it is used

        location = rest.removeprefix("//") if scheme == "sqlite" else address
        database = open_database(location, serializable=True)
        try:
            return SqlStore(database)
        except BaseException:
            database.close()
            raise
    if scheme in {"redis", "rediss", "valkey", "unix"} and rest:
        from interchain_events.distributor.once.redis import RedisStore  # noqa: PLC0415  # imported only if it is used

        return RedisStore("redis:" + rest if scheme == "valkey" else address)
    raise StoreError(
        f"store {scheme!r} is not one of sqlite:PATH, postgresql://…, redis://…, memory:"
    )

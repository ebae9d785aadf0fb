"""Stories of a PRISM node whose chain is a db-sync in PostgreSQL, which is written and rolled back
as the chain is.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from support.prism.db_sync import DbSync
from support.prism.prism_chain import Branches
from support.prism.prism_stories import PrismStory

from interchain_events.database.database import Database
from interchain_events.database.opening import open_database
from interchain_events.events.log.store import Store
from interchain_events.prism.core.status import BestBlock
from interchain_events.prism.service.db_sync import SOURCE, BlockRef, DbSyncChain


class ManyChains(DbSync):
    """One database for chain after chain, over one connection; its blocks have the times of
    `Branches`.
    """

    begins = 0
    seconds = 6

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(
            url, autocommit=True, options="-c synchronous_commit=off"
        )
        super().__init__(url)
        self.reader: Database = open_database(url)

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
        with self._connection.transaction():
            yield self._connection

    def clear(self) -> None:
        """Remove all blocks except for the first one."""
        self.run("DELETE FROM tx_metadata")
        self.run("DELETE FROM tx")
        self.run("DELETE FROM block WHERE block_no IS NOT NULL")
        self.number = self.branch = 0

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()
        self.reader.close()


class _Mirrored(Branches):
    """A chain that is read from its db-sync. Objects that the node submits wait in the pool."""

    def __init__(self, cardano: DbSync, lag: int) -> None:
        self.cardano = cardano
        super().__init__(lag)

    def build(self, *objects: bytes) -> int:
        number = super().build(*objects)
        self.cardano.has_json = bool(number % 3)
        assert self.cardano.build(*objects) == number
        return number

    def drop_to(self, number: int) -> None:
        super().drop_to(number)
        self.cardano.back_to(number)

    def read_by(self, database: Database) -> None:
        """Let a node read the chain that has not read any of it yet."""
        self._reader = DbSyncChain(self.cardano.url, self.lag)
        self._reader._database = database

    async def catch_up(self, log: Store) -> None:
        await self._reader.catch_up(log)

    async def best(self) -> BlockRef:  # type: ignore[override]  # alike
        return await self._reader.best()

    async def hash_at(self, number: int) -> bytes | None:
        return await self._reader.hash_at(number)

    async def block(self, number: int) -> BestBlock:
        return await self._reader.block(number)

    def settled(self, number: int) -> int:
        return self._reader.settled(number)


class DbSyncStory(PrismStory):
    """A story whose blocks go through PostgreSQL: depth is db-sync's, since its log has only blocks
    with objects.
    """

    source = SOURCE

    def __init__(self, seed: int, database: Database, cardano: ManyChains) -> None:
        super().__init__(seed, database)
        cardano.clear()
        self._cardano = cardano
        self.chain: _Mirrored = _Mirrored(cardano, self.chain.lag + self.depth)
        self.depth = 0

    def _start(self) -> None:
        self.chain.read_by(self._cardano.reader)
        super()._start()

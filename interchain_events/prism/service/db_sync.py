"""The chain Cardano for a PRISM node, read from a database of cardano-db-sync.

    async with PrismNode(service, log, DbSyncChain("postgresql://…", depth=112)): …

The tables `block`, `tx` and `tx_metadata` are read and never written.

A block is appended to the log when `depth` blocks are above it, and only if it has objects. So the
log leaves out the blocks without objects. A block that db-sync no longer has is taken back.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NoReturn, TypeVar

from interchain_events.database.database import Database, Dialect, Session
from interchain_events.database.opening import open_database
from interchain_events.events.errors import AnotherChain, NotTheNextBlock, SourceError
from interchain_events.events.log.store import Store
from interchain_events.events.rows import Block, ChainBlock, assemble
from interchain_events.prism.core.metadata import LABEL, MOST_BYTES, object_of
from interchain_events.prism.core.status import BestBlock, best_block
from interchain_events.prism.service.chain import POLL_SECONDS, AnchoringChain, BlockRef
from interchain_events.prism.tables.processor import Source
from pubsub_emulator.client.errors import ClientError, UnknownBlock

T = TypeVar("T")

_LOG: Final = logging.getLogger("pubsub.prism")

DEPTH: Final = 112
"""The number of blocks for which PRISM nodes on Cardano wait."""
SOURCE: Final = Source("Cardano.Metadata")
"""The events of the log that carry objects."""
_BEGINNING: Final = "Cardano.LogBegins"
"""The kind of the event of the log's first block, which is appended even if it has no objects."""
SCHEMAS: Final = range(25, 51)
"""The known values of `schema_version.stage_two`: those of cardano-db-sync 13.1.0.0 to 13.7.2.1."""
_COLUMNS: Final = {
    "block": ("id", "hash", "block_no", "time"),
    "tx": ("id", "block_id", "block_index", "valid_contract"),
    "tx_metadata": ("key", "json", "bytes", "tx_id"),
    "schema_version": ("stage_two",),
}
"""The columns that are read, by table."""
_WINDOW: Final = 20_000
"""The number of blocks that one statement covers."""
_MOST_OBJECTS: Final = 1_000
"""The greatest number of objects in one answer. A block of Cardano has fewer, because it has at
most 88 KiB."""
_PAGE: Final = 500
"""The number of rows in one read of the log."""

_BEST: Final = (
    "SELECT block_no, hash FROM block WHERE block_no IS NOT NULL ORDER BY block_no DESC LIMIT 1"
)
_BLOCK: Final = "SELECT block_no, hash, (extract(epoch FROM time) * 1000)::bigint FROM block"
_FIRST: Final = f"{_BLOCK} WHERE block_no >= ?::bigint ORDER BY block_no LIMIT 1"
_AT: Final = f"{_BLOCK} WHERE block_no = ?::bigint LIMIT 1"
_OBJECTS: Final = (
    "SELECT b.block_no, b.hash, (extract(epoch FROM b.time) * 1000)::bigint, left(m.json::text,"
    f" {MOST_BYTES + 1}), substring(m.bytes FROM 1 FOR {MOST_BYTES + 1}) FROM block AS b JOIN tx AS"
    f" t ON t.block_id = b.id JOIN tx_metadata AS m ON m.tx_id = t.id WHERE m.key = {LABEL} AND"
    " t.valid_contract AND b.block_no > ?::bigint AND b.block_no <= ?::bigint ORDER BY b.block_no,"
    f" t.block_index LIMIT {_MOST_OBJECTS}"
)
_EXISTING: Final = (
    "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = ANY"
    " (current_schemas(false))"
)


class DbSyncChain(AnchoringChain):
    """A Cardano chain, which this node only reads.

    An empty log begins with block `first`, or with the next one if that is missing.

    Methods raise `StoreUnavailable` while the database does not answer, `UnknownBlock` while it
    lacks blocks, `SourceError` if it is not a known version of db-sync, and `AnotherChain` if it is
    not the log's chain.
    """

    def __init__(
        self, url: str, depth: int = DEPTH, first: int = 0, poll_seconds: float = POLL_SECONDS
    ) -> None:
        self._url = url
        self._depth = depth
        self._first = first
        self._poll_seconds = poll_seconds
        self._database: Database | None = None
        self._read: BlockRef | None = None
        """The block up to which the log is complete, `None` if it is not known yet."""

    def close(self) -> None:
        """Close the connections."""
        if self._database is not None:
            self._database.close()

    # An `AnchoringChain`

    async def catch_up(self, log: Store) -> None:
        """Append the deep blocks that have objects, and take back those that db-sync has lost."""
        while await asyncio.to_thread(self._append, log):
            pass

    async def best(self) -> BlockRef:
        return await asyncio.to_thread(self._ask, _best)

    async def hash_at(self, number: int) -> bytes | None:
        return await asyncio.to_thread(self._ask, partial(_hash_at, number=number))

    async def block(self, number: int) -> BestBlock:
        return await asyncio.to_thread(self._ask, partial(_block, number=number))

    async def wait(self, _known: bytes) -> None:
        """Wait for `poll_seconds`, because db-sync does not announce blocks."""
        await asyncio.sleep(self._poll_seconds)

    async def anchor(self, _content: bytes) -> NoReturn:
        """Raise `ClientError`, because db-sync only reads a chain."""
        raise ClientError("a chain that is read from db-sync anchors nothing")

    def settled(self, number: int) -> int:
        return number - self._depth

    # In a thread

    def _ask(self, query: Callable[[Session], T]) -> T:
        """Run a function that reads in a transaction, and return its result."""
        with self._opened().transaction() as session:
            return query(session)

    def _opened(self) -> Database:
        """Return the database, and open it if necessary. Raises `SourceError`."""
        if self._database is None:
            database = open_database(self._url)
            try:
                _check_schema(database)
            except BaseException:
                database.close()
                raise
            self._database = database
        return self._database

    def _append(self, log: Store) -> bool:
        """Append the next blocks to the log. Returns whether there may be more."""
        with self._opened().transaction() as session:
            final = self.settled(_best(session).number)
            if self._read is None or _hash_at(session, self._read.number) != self._read.hash:
                self._read = self._common(session, log)
            after = self._read
            # The events of each block, by its number, hash and time.
            events: dict[tuple[Any, ...], list[tuple[str, dict[str, bytes]]]] = {}
            if after is None:
                rows = session.run(_FIRST, (self._first,))
                if not rows or rows[0][0] > final:
                    return False
                first = rows[0]
                events[first] = [(_BEGINNING, {})]
                after = BlockRef(first[0] - 1, b"")
            last = min(after.number + _WINDOW, final)
            if last <= after.number:
                return False
            objects = session.run(_OBJECTS, (after.number, last))
            # The last block may have more objects, so it is left to the next call.
            if len(objects) == _MOST_OBJECTS:
                last = objects[-1][0] - 1
                if last <= after.number:
                    raise SourceError(
                        f"{self._opened().place}: block {last + 1} has {_MOST_OBJECTS} objects or"
                        " more"
                    )
            for *block, text, cbor in objects:
                if block[0] <= last:
                    events.setdefault(tuple(block), []).append(
                        (SOURCE.kind, {"object": object_of(text, cbor)})
                    )
            end = _hash_at(session, last)
        if end is None:
            raise UnknownBlock(f"{self._opened().place}: there is no block {last} now")
        blocks = list[Block]()
        parent = log.head().hash or bytes(32)
        for (number, block_hash, time), block_events in events.items():
            chain_block = ChainBlock(None, number, block_hash, time=time, events=block_events)
            blocks.append(assemble(chain_block, (), parent=parent, after_gap=True))
            parent = block_hash
        try:
            log.append(blocks)
        except NotTheNextBlock as error:
            # Another process has written to the log meanwhile.
            self._read = None
            raise UnknownBlock(str(error)) from error
        self._read = BlockRef(last, end)
        return last < final

    def _common(self, session: Session, log: Store) -> BlockRef | None:
        """Rewind the log to its last block that db-sync also has, and return that block.

        Returns `None` for an empty log. Raises `AnotherChain` if there is no such block.
        """
        log.bind(session.run("SELECT hash FROM block ORDER BY id LIMIT 1")[0][0])
        head = log.head()
        after = log.head().seq
        begins = 0
        while after > 0:
            after = max(0, after - _PAGE)
            for begins in sorted({row.anchor for row in log.read(after, _PAGE).rows}, reverse=True):
                block_hash = log.hash_at(begins)
                if block_hash is not None and block_hash == _hash_at(session, begins):
                    if begins != head.anchor:
                        _LOG.warning("blocks after %d were reverted", begins)
                        log.rewind(begins)
                    return BlockRef(begins, block_hash)
        if head.anchor is None:
            return None
        place = self._opened().place
        best = _best(session).number
        if best < begins:
            raise UnknownBlock(
                f"{place}: its newest block is {best}, and the log begins with block {begins}"
            )
        raise AnotherChain(
            f"{place} shares no block with the log, which begins with block {begins}"
        )


def is_db_sync(database: Database) -> bool:
    """Return whether a database has the columns of db-sync that are read."""
    if database.dialect is not Dialect.POSTGRESQL:
        return False
    existing = set(database.select(_EXISTING))
    for table, columns in _COLUMNS.items():
        if not all((table, column) in existing for column in columns):
            return False
    return True


def is_url(text: str) -> bool:
    """Return whether a text is the URL of a PostgreSQL database."""
    return text.startswith(("postgresql://", "postgres://"))


def _best(session: Session) -> BlockRef:
    """Return the newest block. Raises `UnknownBlock` if there is none."""
    rows = session.run(_BEST)
    if not rows:
        raise UnknownBlock("db-sync has no block yet")
    return BlockRef(*rows[0])


def _hash_at(session: Session, number: int) -> bytes | None:
    """Return the hash of a block, `None` if db-sync does not have it."""
    rows = session.run(_AT, (number,))
    return rows[0][1] if rows else None


def _block(session: Session, number: int) -> BestBlock:
    """Return a block with its objects. Raises `UnknownBlock`."""
    rows = session.run(_AT, (number,))
    if not rows:
        raise UnknownBlock(f"db-sync has no block {number} now")
    objects = [
        object_of(text, cbor) for *_, text, cbor in session.run(_OBJECTS, (number - 1, number))
    ]
    _, block_hash, time = rows[0]
    return best_block(number, block_hash, time, objects=objects)


def _check_schema(database: Database) -> None:
    """Raise `SourceError` unless the tables are those of a known db-sync."""
    existing = set(database.select(_EXISTING))
    for table, columns in _COLUMNS.items():
        for column in columns:
            if (table, column) not in existing:
                raise SourceError(
                    f"{database.place}: there is no column {column} of db-sync's table {table} to"
                    " read"
                )
    versions = database.select("SELECT stage_two FROM schema_version")
    version = versions[0][0] if versions else "not given"
    if version not in SCHEMAS:
        known = f"{SCHEMAS[0]} to {SCHEMAS[-1]} are known"
        raise SourceError(f"{database.place}: stage two of db-sync's schema is {version}; {known}")

"""The log in a database. Each append is one transaction.

The tables are:

- `{prefix}_meta` has one row, which writers lock: network, id, genesis, epoch, seq, anchor, hash.
- `{prefix}_blocks` has each leading block: anchor, hash, and the log's last seq after the block.
- `{prefix}_rows` has the columns of `Row`.
- `{prefix}_epochs` has each rewind: epoch, and the last seq that remained.
"""

import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from interchain_events.database.database import Database, Dialect, Session, check_prefix, migrate
from interchain_events.database.errors import StoreError
from interchain_events.database.opening import open_database
from interchain_events.events.errors import AnotherChain, NotTheNextBlock
from interchain_events.events.filters.algebra import ANY, Filter
from interchain_events.events.filters.sql import LogColumns
from interchain_events.events.filters.sql import where as compile_where
from interchain_events.events.log.store import SPAN, Head, Page, Store, follows
from interchain_events.events.rows import Block, Row, row_of

_META: Final = (
    "network {TEXT} NOT NULL, id {BLOB} NOT NULL, genesis {BLOB}, epoch {INT} NOT NULL, seq {INT}"
    " NOT NULL, anchor {INT}, hash {BLOB}"
)
_ROW: Final = (
    "anchor {INT} NOT NULL, chain {INT}, block {INT} NOT NULL, idx {INT} NOT NULL, kind {TEXT} NOT"
    " NULL, id {BLOB} NOT NULL, time {INT} NOT NULL, body {TEXT} NOT NULL"
)
_COLUMNS: Final = "seq, anchor, chain, block, idx, kind, id, time, body"

_NO_LOG: Final = "there is no log; `pubsub log follow` creates one"


class SqlStore(Store):
    """The log of a network in a database.

    If `network` is `None`, the existing log is opened, whichever network it is of. Logs with
    different prefixes are separate. Raises `AnotherChain` if the database has the log of another
    network, and `StoreError` if `network` is `None` and there is no log.
    """

    def __init__(self, database: Database, network: str | None, *, prefix: str = "log") -> None:
        self.database = database
        self._prefix = check_prefix(prefix)
        self._columns = LogColumns(database.dialect)
        self._head_sql = f"SELECT epoch, seq, anchor, hash FROM {prefix}_meta"
        self._hash_sql = f"SELECT hash FROM {prefix}_blocks WHERE anchor = ?"
        first = [
            f"CREATE TABLE {prefix}_meta (one INTEGER PRIMARY KEY CHECK (one = 1), {_META})",
            (
                f"CREATE TABLE {prefix}_blocks (anchor {{INT}} PRIMARY KEY, hash {{BLOB}} NOT NULL,"
                " seq {INT} NOT NULL)"
            ),
            f"CREATE TABLE {prefix}_rows (seq {{INT}} PRIMARY KEY, {_ROW})",
            f"CREATE INDEX {prefix}_rows_kind ON {prefix}_rows (kind, seq)",
            f"CREATE TABLE {prefix}_epochs (epoch {{INT}} PRIMARY KEY, common {{INT}} NOT NULL)",
        ]
        migrate(database, prefix, [first])
        with database.transaction(write=True) as session:
            rows = session.run(f"SELECT network, id FROM {prefix}_meta")
            if not rows and network is None:
                raise StoreError(f"{database.place}: {_NO_LOG}")
            if not rows:
                rows = [(network, secrets.token_bytes(16))]
                session.run(
                    f"INSERT INTO {prefix}_meta VALUES (1, ?, ?, NULL, 0, 0, NULL, NULL)", rows[0]
                )
        self.network, self.id = rows[0]
        if network not in {None, self.network}:
            raise AnotherChain(
                f"{database.place} holds the log of {self.network!r}, not of {network!r}"
            )
        self._channel = f"{prefix}_{self.id.hex()}"
        """The channel on which writers report changes of this log."""

    def head(self) -> Head:
        return Head(*self.database.select(self._head_sql)[0])

    def hash_at(self, anchor: int) -> bytes | None:
        rows = self.database.select(self._hash_sql, (anchor,))
        return rows[0][0] if rows else None

    def bind(self, genesis: bytes) -> None:
        with self.database.transaction(write=True) as session:
            (stored,) = session.run(f"SELECT genesis FROM {self._prefix}_meta")[0]
            if stored is None:
                session.run(f"UPDATE {self._prefix}_meta SET genesis = ?", (genesis,))
            elif stored != genesis:
                log = f"that of the log in {self.database.place} is 0x{stored.hex()}"
                raise AnotherChain(f"the source's genesis is 0x{genesis.hex()}, {log}")

    def append(self, blocks: Sequence[Block]) -> int:
        """Append all blocks in order, and return the number of those that were new.

        The head is locked first, so that writers wait for each other. Raises `NotTheNextBlock`.
        """
        with self.database.transaction(write=True) as session:
            before = self._head(session, lock=True)
            head = before
            fresh: dict[int, Block] = {}
            rows: list[Row] = []
            ends: list[tuple[int, bytes, int]] = []
            for block in blocks:
                if block.number in fresh:
                    # Blocks of this call are not in the database yet.
                    stored: bytes | None = fresh[block.number].hash
                else:
                    stored = self._hash_at(session, block.number, head)
                if follows(head, block, stored):
                    rows += block.rows(head.seq)
                    head = head.after(block)
                    fresh[block.number] = block
                    ends.append((block.number, block.hash, head.seq))
            if head is not before:
                insert = (
                    f"INSERT INTO {self._prefix}_rows ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?,"
                    " ?, ?)"
                )
                session.run_many(insert, rows)
                session.run_many(f"INSERT INTO {self._prefix}_blocks VALUES (?, ?, ?)", ends)
                self._set_head(session, head)
        return len(ends)

    def rewind(self, anchor: int) -> Head:
        with self.database.transaction(write=True) as session:
            head = self._head(session, lock=True)
            if anchor == head.anchor:
                return head
            blocks = session.run(
                f"SELECT hash, seq FROM {self._prefix}_blocks WHERE anchor = ?", (anchor,)
            )
            if not blocks:
                raise NotTheNextBlock(
                    f"the log has no block {anchor} to go back to; it ends at {head.anchor}"
                )
            block_hash, common = blocks[0]
            session.run(f"DELETE FROM {self._prefix}_rows WHERE seq > ?", (common,))
            session.run(f"DELETE FROM {self._prefix}_blocks WHERE anchor > ?", (anchor,))
            rewound = Head(head.epoch + 1, common, anchor, hash=block_hash)
            session.run(f"INSERT INTO {self._prefix}_epochs VALUES (?, ?)", (rewound.epoch, common))
            self._set_head(session, rewound)
        return rewound

    def common(self, epoch: int) -> int | None:
        rows = self.database.select(
            f"SELECT min(common) FROM {self._prefix}_epochs WHERE epoch > ?", (epoch,)
        )
        common: int | None = rows[0][0]
        return common

    def epochs(self) -> list[tuple[int, int]]:
        rows = self.database.select(
            f"SELECT epoch, common FROM {self._prefix}_epochs ORDER BY epoch"
        )
        return [(epoch, common) for epoch, common in rows]

    def read(self, after: int, limit: int, where: Filter = ANY, span: int = SPAN) -> Page:
        """Return matching rows with `seq > after`, and the head of the same moment."""
        clause = compile_where(where, self._columns)
        matching = f"seq > ? AND seq <= ? AND {clause.sql}"
        statement = (
            f"SELECT {_COLUMNS} FROM {self._prefix}_rows WHERE {matching} ORDER BY seq LIMIT ?"
        )
        params = (after, after + span, *clause.params, limit)
        if self.database.dialect is Dialect.POSTGRESQL:
            selected = self.database.select(self._with_head(statement), params)
            # The columns in which `_with_head` has put the head.
            _, anchor, epoch, seq, _, _, block_hash, _, _ = selected.pop(0)
            head = Head(epoch, seq, anchor, hash=block_hash)
        else:
            with self.database.transaction() as session:
                head = self._head(session)
                selected = session.run(statement, params)
        rows = list(map(row_of, selected))
        # The end of the span or of the log, unless `limit` ended the read earlier.
        through = max(min(after + span, head.seq), after)
        if len(rows) == limit:
            through = rows[-1].seq
        return Page(rows, through, head)

    def wait(self, known: Head, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while self.head() == known:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self.database.wait(self._channel, left)
        return True

    def close(self) -> None:
        self.database.close()

    def _with_head(self, statement: str) -> str:
        """Return a statement whose first row is the head, followed by the rows of `statement`.

        On PostgreSQL, this saves the round trips of a transaction. On SQLite it would be slower.
        """
        head = f"SELECT 0 AS seq, anchor, epoch, seq, 0, '', hash, 0, '' FROM {self._prefix}_meta"
        return f"{head} UNION ALL ({statement}) ORDER BY 1"

    # Within a transaction

    def _head(self, session: Session, *, lock: bool = False) -> Head:
        """Return the head. If `lock` is true, also lock it against other writers.

        SQLite needs no such lock, because it has only one write transaction at a time.
        """
        locking = " FOR UPDATE" if lock and self.database.dialect is Dialect.POSTGRESQL else ""
        return Head(*session.run(self._head_sql + locking)[0])

    def _set_head(self, session: Session, head: Head) -> None:
        """Write the head, and wake the readers that wait for it."""
        session.run(
            f"UPDATE {self._prefix}_meta SET epoch = ?, seq = ?, anchor = ?, hash = ?",
            (head.epoch, head.seq, head.anchor, head.hash),
        )
        self.database.notify(session, self._channel)

    def _hash_at(self, session: Session, anchor: int, head: Head | None = None) -> bytes | None:
        """Return the hash of a leading block, `None` if the log does not have it.

        If `head` is given, blocks after it are not looked up.
        """
        if head is not None and (head.anchor is None or anchor > head.anchor):
            return None
        rows = session.run(self._hash_sql, (anchor,))
        return rows[0][0] if rows else None


def existing_store(place: str, *, prefix: str = "log") -> SqlStore:
    """Open the log at a path or URL, of any network. Raises `StoreError` if there is none."""
    if "://" not in place and not Path(place).is_file():
        raise StoreError(f"{place}: {_NO_LOG}")
    return _opened(place, None, prefix)


def open_store(place: str, network: str, *, prefix: str = "log") -> SqlStore:
    """Open the log at a path or URL, and create it if there is none.

    Raises `StoreError`, and `AnotherChain` if the log is of another network.
    """
    return _opened(place, network, prefix)


def _opened(place: str, network: str | None, prefix: str) -> SqlStore:
    """Open a log, and close its database if that fails."""
    database = open_database(place)
    try:
        return SqlStore(database, network, prefix=prefix)
    except BaseException:
        database.close()
        raise

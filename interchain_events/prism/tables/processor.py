"""The processing of the log's blocks into rows (PR-2 to PR-5).

    processor = Processor(database, log, Source(), depth=2)
    processor.run()                # processes deep blocks, follows rewinds, and returns

Each block with objects is one transaction.
"""

import secrets
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain as chained
from itertools import groupby
from typing import Final, NamedTuple

from interchain_events.database.database import Database, Session
from interchain_events.events.errors import AnotherChain
from interchain_events.events.filters.algebra import All, Chain, Filter, Kind
from interchain_events.events.log.store import SPAN, Page, Store
from interchain_events.events.rows import Row
from interchain_events.events.values import Value
from interchain_events.prism.core.identifiers import sha256
from interchain_events.prism.core.process import (
    DecidedOperation,
    ExaminedOperation,
    OperationType,
    Status,
    examine,
    judge,
    read_object,
)
from interchain_events.prism.tables.ledger import LedgerCache, SqlLedger
from interchain_events.prism.tables.position import Position, position, rewind
from interchain_events.prism.tables.schema import prepare

DEPTH: Final = 2
"""The number of blocks that must be above a block before it is processed."""
_PAGE: Final = 500
"""The number of rows in one read of the log."""
_REMEMBERED: Final = 1_024
"""The number of processed blocks whose hashes are remembered. After a rewind they show which of
these blocks the log still has."""
CHANNEL: Final = "prism_rows"
"""The channel on which databases report that rows were added or removed."""
_APPLIED: Final = Status.APPLIED.value
_REJECTED: Final = Status.REJECTED.value
_TYPES: Final = {int(kind): kind.name for kind in OperationType}
"""The names of the types in a dictionary, because each use of an enumeration costs a lookup."""


@dataclass(frozen=True, slots=True)
class Source:
    """The events of the leading chain that carry objects, and the path to the objects (PR-1)."""

    kind: str = "Prism.ObjectAnchored"
    """The kind of the events."""
    path: tuple[str | int, ...] = ("object",)
    """The names and indices that lead to the bytes."""

    @property
    def where(self) -> Filter:
        """Return the filter of these events."""
        return All(Chain(None), Kind(self.kind))

    def bytes_of(self, row: Row) -> bytes:
        """Return the object of an event, empty bytes if there are no bytes at the path."""
        value: Value = row.fields
        for step in self.path:
            value = _inner(value, step)
        if not isinstance(value, str) or not value.startswith("0x"):
            return b""
        try:
            return bytes.fromhex(value[2:])
        except ValueError:
            return b""

    def text(self) -> str:
        """Return a text that identifies the source.

        It is stored in the tables. A processor with another source refuses them.
        """
        return f"{self.kind} {'.'.join(map(str, self.path))}"


class _Object(NamedTuple):
    """An object in a block."""

    place: int
    """The object's place among the objects of the block."""
    id: bytes
    raw: bytes
    operations: tuple[ExaminedOperation, ...]


class Processor:
    """The writer of the rows of a log's blocks, and the only writer of processed operations.

    `committed` is called after each change of the tables. Raises `AnotherChain` if the tables have
    the operations of another log or source.
    """

    def __init__(
        self,
        database: Database,
        log: Store,
        source: Source | None = None,
        depth: int = DEPTH,
        committed: Callable[[], None] = lambda: None,
    ) -> None:
        self.database = database
        self.source = source or Source()
        self.depth = depth
        self.log = log
        self.ignored = 0
        """The number of objects that this processor could not decode (PR-20)."""
        self._committed = committed
        self._cache = LedgerCache()
        prepare(database)
        with database.transaction(write=True) as session:
            rows = session.run("SELECT id, source, log_id FROM prism_meta")
            if not rows:
                rows = [(secrets.token_bytes(16), self.source.text(), log.id)]
                session.run("INSERT INTO prism_meta VALUES (1, ?, ?, ?, 0, 0, 0, 0, NULL)", rows[0])
        tables_id, source_text, log_id = rows[0]
        if bytes(log_id) != log.id or source_text != self.source.text():
            raise AnotherChain(
                f"{database.place} has operations of another log, or of other events"
            )
        self.id = bytes(tables_id)
        self.processed = -1
        """The last processed block on the log's branch."""
        self._last_block = -1
        """The last processed block with objects. It remains processed even if it is less deep after
        a rewind (PR-5)."""
        self._processed_blocks: deque[tuple[int, bytes]] = deque(maxlen=_REMEMBERED)
        """The number and hash of blocks up to which everything has been processed, ascending."""
        self._seen = 0
        """The last `seq` of the log that need not be read again. It is not stored."""

    def position(self) -> Position:
        """Return the position of the tables."""
        with self.database.transaction() as session:
            return position(session)

    def run(self, until: int | None = None) -> int:
        """Process all blocks that are deep enough, and return the number of new rows.

        If `until` is given, blocks of the log after it are ignored.
        """
        before = self.position()
        self._last_block = -1 if before.block_number is None else before.block_number
        self._seen = max(before.log_seq, self._seen)
        rows = 0
        epoch = before.log_epoch
        while True:
            page = self.log.read(self._seen, _PAGE, self.source.where)
            if page.head.epoch != epoch:
                epoch = self._follow_rewind(epoch, page.head.epoch)
                continue
            through = page.head.anchor if until is None else min(until, page.head.anchor or 0)
            last = (-1 if through is None else through) - self.depth
            deep = self._deep(page, last)
            # The log was rewound between two reads, so the page is read again.
            if deep is None:
                continue
            for number, anchored in deep:
                rows += self._block(epoch, number, anchored)
            reaches_last = bool(page.rows) and page.rows[-1].block > last
            if not reaches_last and not deep:
                self._seen = max(self._seen, page.through)
            if reaches_last or page.is_last:
                self._note_processed(last)
                return rows

    def _note_processed(self, last: int) -> None:
        """Set `processed`, after everything up to block `last` has been processed.

        Processed blocks that the log no longer has after a rewind are forgotten.
        """
        deepest = -1
        while self._processed_blocks:
            number, block_hash = self._processed_blocks[-1]
            if self.log.hash_at(number) == block_hash:
                deepest = number
                break
            self._processed_blocks.pop()
        last_hash = self.log.hash_at(last) if last > deepest else None
        if last_hash is not None:
            self._processed_blocks.append((last, last_hash))
            deepest = last
        self.processed = max(self._last_block, deepest)

    def _deep(self, page: Page, last: int) -> list[tuple[int, list[Row]]] | None:
        """Return the page's blocks up to number `last`, each with all of its rows.

        Returns `None` if the log was rewound meanwhile.
        """
        blocks = [
            (number, list(rows)) for number, rows in groupby(page.rows, key=lambda row: row.block)
        ]
        deep = [(number, rows) for number, rows in blocks if number <= last]
        if not deep or len(page.rows) < _PAGE:
            return deep
        if len(deep) > 1:
            # The last block may continue on the next page. That page will begin with it.
            return deep[:-1]
        number, rows = deep[0]
        while True:
            more = self.log.read(rows[-1].seq, _PAGE, self.source.where, SPAN)
            if more.head.epoch != page.head.epoch:
                return None
            of_block = [row for row in more.rows if row.block == number]
            rows += of_block
            if len(of_block) < _PAGE:
                return [(number, rows)]

    def _block(self, log_epoch: int, number: int, anchored: Sequence[Row]) -> int:
        """Process one block in one transaction, and return the number of its rows."""
        objects, ignored = self._objects(anchored)
        block_hash = self.log.hash_at(anchored[0].anchor)
        with self.database.transaction(write=True) as session:
            current = position(session, lock=self.database.dialect)
            # Another process may have processed this block.
            if current.log_seq >= anchored[-1].seq:
                return 0
            ledger = SqlLedger(session, self._cache)
            ledger.look_up(list(chained.from_iterable(item.operations for item in objects)))
            outcomes: list[tuple[_Object, int, DecidedOperation]] = []
            for item in objects:
                for place, examined in enumerate(item.operations):
                    outcome = judge(ledger, examined)
                    if outcome is not None:
                        outcomes.append((item, place, outcome))
            _note_objects(session, objects, number)
            _insert(
                session,
                outcomes,
                current.seq_no,
                number=number,
                block_hash=block_hash,
                time=anchored[0].time,
            )
            session.run("INSERT INTO processed_blocks VALUES (?, ?)", (number, anchored[-1].seq))
            session.run(
                "UPDATE prism_meta SET seq_no = ?, log_epoch = ?, log_seq = ?, block_number = ?",
                (current.seq_no + len(outcomes), log_epoch, anchored[-1].seq, number),
            )
            self.database.notify(session, CHANNEL)
        self._cache.put(self._cache.dids, ledger.dids)
        self._cache.put(self._cache.batches, ledger.batches)
        self._last_block = number
        self._seen = max(self._seen, anchored[-1].seq)
        self.ignored += ignored
        self._committed()
        return len(outcomes)

    def _objects(self, anchored: Sequence[Row]) -> tuple[list[_Object], int]:
        """Return the objects of a block, and the number of those that are ignored."""
        objects: list[_Object] = []
        for index, row in enumerate(anchored):
            raw = self.source.bytes_of(row)
            operations = read_object(raw)
            if operations is not None:
                objects.append(
                    _Object(index, sha256(raw), raw, operations=tuple(map(examine, operations)))
                )
        return objects, len(anchored) - len(objects)

    def _follow_rewind(self, known: int, epoch: int) -> int:
        """Remove the rows of blocks that the log has taken back.

        `known` is the epoch of the log that the tables have, and `epoch` is its current one, which
        is returned.
        """
        common = self.log.common(known)
        if common is None:
            common = self._seen
        self._seen = min(self._seen, common)
        with self.database.transaction(write=True) as session:
            current = position(session, lock=self.database.dialect)
            if common >= current.log_seq:
                return epoch
            self._cache.clear()
            last_block = rewind(session, current, epoch, common=common)
            self.database.notify(session, CHANNEL)
        self._last_block = last_block
        self._committed()
        return epoch


def _inner(value: Value, step: str | int) -> Value:
    """Return the value at a name or index inside of a value, `None` if there is none."""
    if isinstance(value, dict) and isinstance(step, str):
        return value.get(step)
    if isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
        return value[step]
    return None


def _note_objects(session: Session, objects: Sequence[_Object], number: int) -> None:
    """Store the objects of a block.

    The rows of their operations that were scheduled here are removed, because the operations are
    now processed.
    """
    session.run_many(
        "INSERT INTO atala_objects VALUES (?, ?, 'PROCESSED', ?) ON CONFLICT (atala_object_id) DO"
        " UPDATE SET atala_object_status = 'PROCESSED', block_number ="
        " coalesce(atala_objects.block_number, ?)",
        [(item.id, item.raw, number, number) for item in objects],
    )
    session.run_many(
        "DELETE FROM atala_operations WHERE atala_object_id = ? "
        "AND atala_operation_status IN ('RECEIVED', 'CANCELLED')",
        [(item.id,) for item in objects],
    )


def _insert(  # noqa: PLR0917  # the parts of the rows' position
    session: Session,
    outcomes: Sequence[tuple[_Object, int, DecidedOperation]],
    after: int,
    number: int,
    block_hash: bytes | None,
    time: int,
) -> None:
    """Store the rows of a block's operations. Their numbers follow `after`."""
    rows: list[tuple[object, ...]] = []
    shared = {anchored.place: bytearray(anchored.id) for anchored, _, _ in outcomes}
    block = None if block_hash is None else bytearray(block_hash)
    for seq_no, (anchored, place, outcome) in enumerate(outcomes, after + 1):
        (
            operation_id, operation_hash, kind, reason, did_suffix, created, batch_id, _, content,
            entry_id,
        ) = outcome  # fmt: skip
        status, details = (_APPLIED, None) if reason is None else (_REJECTED, reason.name)
        # sqlite3 looks for an adapter of each `bytes`, which costs more than binding a `bytearray`.
        rows.append((
            bytearray(operation_id), status, shared[anchored.place], details, did_suffix,
            _TYPES[kind], bytearray(content), seq_no, created,
            None if operation_hash is None else bytearray(operation_hash),
            batch_id, number, block, time, anchored.place, place, entry_id,
        ))  # fmt: skip
    session.run_many(f"INSERT INTO atala_operations VALUES ({'?, ' * 16} NULL, NULL, ?)", rows)
    revoked: list[tuple[bytes, int]] = []
    for seq_no, (_, _, outcome) in enumerate(outcomes, after + 1):
        revoked += [(credential, seq_no) for credential in outcome.revoked_hashes]
    session.run_many("INSERT INTO revoked_credentials VALUES (?, ?)", revoked)

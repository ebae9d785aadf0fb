"""From the log's blocks to rows (PR-2 to PR-5).

    processor = Processor(database, log, Source(), depth=2)
    processor.run()                # processes what is deep enough, follows rewinds, and returns

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
    Examined,
    OperationType,
    Outcome,
    Status,
    examine,
    judge,
    read_object,
)
from interchain_events.prism.tables.ledger import Kept, SqlLedger
from interchain_events.prism.tables.position import Position, position, rewind
from interchain_events.prism.tables.schema import prepare

DEPTH: Final = 2
"""The number of blocks that must be above a block before it is processed."""
_PAGE: Final = 500
"""The number of rows in one read of the log."""
_REMEMBERED: Final = 1_024
"""The number of processed blocks whose hashes are remembered, to find out after a rewind which are
still in the log."""
CHANNEL: Final = "prism_rows"
"""The channel on which databases report that rows were added or removed."""
_APPLIED: Final = Status.APPLIED.value
_REJECTED: Final = Status.REJECTED.value
_TYPES: Final = {int(each): each.name for each in OperationType}
"""The names of the types, which the enumeration would look up each time."""


@dataclass(frozen=True, slots=True)
class Source:
    """The events of the leading chain that carry objects, and where their bytes are (PR-1)."""

    kind: str = "Prism.ObjectAnchored"
    """The kind of the events."""
    path: tuple[str | int, ...] = ("object",)
    """The names and indices that lead to the bytes."""

    @property
    def where(self) -> Filter:
        """Return the filter of these events."""
        return All(Chain(None), Kind(self.kind))

    def bytes_of(self, row: Row) -> bytes:
        """Return the object of an event.

        Returns empty bytes, which are not an object, if there are no bytes at the path.
        """
        found: Value = row.fields
        for step in self.path:
            found = _inner(found, step)
        try:
            return (
                bytes.fromhex(found[2:])
                if isinstance(found, str) and found.startswith("0x")
                else b""
            )
        except ValueError:
            return b""

    def text(self) -> str:
        """Return a text that identifies the source.

        It is stored, and tables that were made from another source are refused.
        """
        return f"{self.kind} {'.'.join(map(str, self.path))}"


class _Object(NamedTuple):
    """An object in a block."""

    place: int
    """Its place among the objects of the block."""
    id: bytes
    raw: bytes
    operations: tuple[Examined, ...]


class Processor:
    """Writes the rows of a log's blocks. It is the only writer of processed operations.

    `committed` is called after each change of the tables. Raises `AnotherChain` if the tables were
    made from another log or source.
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
        """The number of objects that could not be decoded, since this processor was made
        (PR-20)."""
        self._committed = committed
        self._kept = Kept()
        prepare(database)
        with database.transaction(write=True) as session:
            found = session.run("SELECT id, source, log_id FROM prism_meta")
            if not found:
                found = [(secrets.token_bytes(16), self.source.text(), log.id)]
                session.run(
                    "INSERT INTO prism_meta VALUES (1, ?, ?, ?, 0, 0, 0, 0, NULL)", found[0]
                )
        if bytes(found[0][2]) != log.id or found[0][1] != self.source.text():
            raise AnotherChain(
                f"{database.place} has operations of another log, or of other events"
            )
        self.id = bytes(found[0][0])
        self.processed = -1
        """The last processed block on the branch that the log has."""
        self._last_block = -1
        """The last block with objects. A rewind leaves it processed, even if it is less deep then
        (PR-5)."""
        self._deep_blocks: deque[tuple[int, bytes]] = deque(maxlen=_REMEMBERED)
        """The number and hash of blocks up to which everything was processed, ascending."""
        self._seen = 0
        """The last `seq` of the log that needs no further look. It is not stored."""

    def position(self) -> Position:
        """Return the position of the tables."""
        with self.database.transaction() as session:
            return position(session)

    def run(self, until: int | None = None) -> int:
        """Process all blocks that are deep enough, and return the number of new rows.

        With `until`, the log counts as ending at that block.
        """
        before = self.position()
        self._last_block = -1 if before.block_number is None else before.block_number
        self._seen = max(before.log_seq, self._seen)
        rows, epoch = 0, before.log_epoch
        while True:
            page = self.log.read(self._seen, _PAGE, self.source.where)
            if page.head.epoch != epoch:
                epoch = self._follow_rewind(epoch, page.head.epoch)
                continue
            through = page.head.anchor if until is None else min(until, page.head.anchor or 0)
            last = (-1 if through is None else through) - self.depth
            found = self._deep(page, last)
            # The log was rewound between two reads, so the page is read again.
            if found is None:
                continue
            for number, anchored in found:
                rows += self._block(epoch, number, anchored)
            is_all = bool(page.rows) and page.rows[-1].block > last
            if not is_all and not found:
                self._seen = max(self._seen, page.through)
            if is_all or page.is_last:
                self._note_deep(last)
                return rows

    def _note_deep(self, last: int) -> None:
        """Note that everything up to block `last` was processed.

        After a rewind, only blocks that the log still has count.
        """
        while (
            self._deep_blocks
            and self.log.hash_at(self._deep_blocks[-1][0]) != self._deep_blocks[-1][1]
        ):
            self._deep_blocks.pop()
        known = self._deep_blocks[-1][0] if self._deep_blocks else -1
        block_hash = self.log.hash_at(last) if last > known else None
        if block_hash is not None:
            self._deep_blocks.append((last, block_hash))
        self.processed = max(
            self._last_block, self._deep_blocks[-1][0] if self._deep_blocks else -1
        )

    def _deep(self, page: Page, last: int) -> list[tuple[int, list[Row]]] | None:
        """Return the page's blocks up to number `last`, each complete.

        Returns `None` if the log was rewound meanwhile.
        """
        blocks = [
            (number, list(rows)) for number, rows in groupby(page.rows, key=lambda row: row.block)
        ]
        deep = [(number, rows) for number, rows in blocks if number <= last]
        if not deep or len(page.rows) < _PAGE:
            return deep
        if len(deep) > 1:
            # The last block may continue on the next page, which begins with it.
            return deep[:-1]
        number, rows = deep[0]
        while True:
            more = self.log.read(rows[-1].seq, _PAGE, self.source.where, SPAN)
            if more.head.epoch != page.head.epoch:
                return None
            same = [row for row in more.rows if row.block == number]
            rows += same
            if len(same) < _PAGE:
                return [(number, rows)]

    def _block(self, log_epoch: int, number: int, anchored: Sequence[Row]) -> int:
        """Process one block in one transaction, and return the number of its rows."""
        objects, ignored = self._objects(anchored)
        block_hash = self.log.hash_at(anchored[0].anchor)
        with self.database.transaction(write=True) as session:
            at = position(session, lock=self.database.dialect)
            # Another process has processed this block.
            if at.log_seq >= anchored[-1].seq:
                return 0
            ledger = SqlLedger(session, self._kept)
            ledger.look_up(list(chained.from_iterable(each.operations for each in objects)))
            outcomes: list[tuple[_Object, int, Outcome]] = []
            for anchored_object in objects:
                outcomes += [
                    (anchored_object, place, outcome)
                    for place, examined in enumerate(anchored_object.operations)
                    if (outcome := judge(ledger, examined)) is not None
                ]
            _note_objects(session, objects, number)
            _insert(session, outcomes, at.seq_no, number, block_hash, anchored[0].time)
            session.run("INSERT INTO processed_blocks VALUES (?, ?)", (number, anchored[-1].seq))
            session.run(
                "UPDATE prism_meta SET seq_no = ?, log_epoch = ?, log_seq = ?, block_number = ?",
                (at.seq_no + len(outcomes), log_epoch, anchored[-1].seq, number),
            )
            self.database.notify(session, CHANNEL)
        self._kept.put(self._kept.dids, ledger.dids)
        self._kept.put(self._kept.batches, ledger.batches)
        self._last_block = number
        self._seen = max(self._seen, anchored[-1].seq)
        self.ignored += ignored
        self._committed()
        return len(outcomes)

    def _objects(self, anchored: Sequence[Row]) -> tuple[list[_Object], int]:
        """Return the objects of a block, and the number of those that are ignored."""
        found: list[_Object] = []
        for index, row in enumerate(anchored):
            raw = self.source.bytes_of(row)
            operations = read_object(raw)
            if operations is not None:
                found.append(_Object(index, sha256(raw), raw, tuple(map(examine, operations))))
        return found, len(anchored) - len(found)

    def _follow_rewind(self, known: int, epoch: int) -> int:
        """Remove the rows of blocks that the log has taken back.

        `known` is the log's epoch that the tables have, `epoch` the present one. Returns the epoch
        from which to read on.
        """
        common = self.log.common(known)
        least = self._seen if common is None else common
        self._seen = min(self._seen, least)
        with self.database.transaction(write=True) as session:
            at = position(session, lock=self.database.dialect)
            if least >= at.log_seq:
                return epoch
            self._kept.clear()
            kept = rewind(session, at, epoch, least)
            self.database.notify(session, CHANNEL)
        self._last_block = kept
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

    Rows of their operations that were scheduled here are removed, as the operations are now
    processed.
    """
    session.run_many(
        "INSERT INTO atala_objects VALUES (?, ?, 'PROCESSED', ?) ON CONFLICT (atala_object_id) DO"
        " UPDATE SET atala_object_status = 'PROCESSED', block_number ="
        " coalesce(atala_objects.block_number, ?)",
        [(each.id, each.raw, number, number) for each in objects],
    )
    session.run_many(
        "DELETE FROM atala_operations WHERE atala_object_id = ? "
        "AND atala_operation_status IN ('RECEIVED', 'CANCELLED')",
        [(each.id,) for each in objects],
    )


def _insert(  # noqa: PLR0917  # the parts of the rows' position
    session: Session,
    outcomes: Sequence[tuple[_Object, int, Outcome]],
    after: int,
    number: int,
    block_hash: bytes | None,
    time: int,
) -> None:
    """Store the rows of a block's operations."""
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
        revoked += [(each, seq_no) for each in outcome.revoked_hashes]
    session.run_many("INSERT INTO revoked_credentials VALUES (?, ?)", revoked)

"""The log of processed operations, which `EventService` serves and audits read (PR-6, EV-40).

The columns of a row are:

- seq is the operation's seq_no.
- kind is TYPE.STATUS, for example CREATE_DID.APPLIED.
- id is the operation id.
- body has did, batch, reason, signed (the SHA-256 hash of the content), entry (for an operation on
  a storage entry, the entry's id), whole (for a revocation, whether it concerns the whole batch),
  and `c<hex>`, which is true, for each listed credential hash.

The log has no table of its own. It is read from `atala_operations`, and filters on fields become
conditions on the columns of that table.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from interchain_events.database.database import Database, Session
from interchain_events.events.errors import BadCursor, BadFilter
from interchain_events.events.filters.algebra import (
    ANY,
    All,
    Field,
    Filter,
    Kind,
    OneOf,
    Scalar,
    Step,
)
from interchain_events.events.filters.sql import Clause, Columns, where
from interchain_events.events.log.store import SPAN, Head, LogReader, Page
from interchain_events.events.rows import ROW_BYTES, Row
from interchain_events.events.subscriptions.cursor import Cursor
from interchain_events.prism.core.errors import Reason
from interchain_events.prism.core.filters import OWNERS, TYPES, FilterType
from interchain_events.prism.core.filters import Filter as PrismFilter
from interchain_events.prism.core.identifiers import sha256
from interchain_events.prism.core.messages import SignedAtalaOperation, decode
from interchain_events.prism.core.process import OperationType, Status, revoked_hashes
from interchain_events.prism.core.status import OperationPlace
from interchain_events.prism.tables.position import position
from interchain_events.prism.tables.processor import CHANNEL

NETWORK: Final = "prism"
"""The name of the log in cursors and in the tables of deliveries."""

_COLUMNS: Final = (
    "atala_operation_seq_no, signed_atala_operation_id, atala_operation_type,"
    " atala_operation_status, status_details, coalesce(atala_operation_did_suffix,"
    " created_did_suffix), credential_batch_id, atala_operation_content, block_number, block_hash,"
    " object_index, operation_index, block_time, storage_entry_id"
)
_REVOKED: Final = (
    "EXISTS (SELECT 1 FROM revoked_credentials AS r WHERE r.seq_no = o.atala_operation_seq_no"
)

_TYPES: Final = {kind: kind.name for kind in OperationType}
_BY_TYPE: Final = OperationType.__members__
_BY_STATUS: Final = Status.__members__
"""Names and members in dictionaries, because each use of an enumeration costs a lookup."""


class Event(NamedTuple):
    """A processed operation, as streams deliver it."""

    seq_no: int
    operation_id: bytes
    type: OperationType
    status: Status
    reason: Reason | None
    """The reason of a rejection, `None` if the operation was applied."""
    did_suffix: str | None
    """The DID to which the operation is attributed, or that it created."""
    credential_batch_id: str | None
    content: bytes
    """The bytes of the SignedAtalaOperation."""
    place: OperationPlace
    storage_entry_id: str | None = None
    """The id of the storage entry that the operation creates, changes or ends."""


class OperationRow(Row):
    """An operation as a row of the log."""

    event: Event
    """The operation with everything that clients get."""
    revokes_whole_batch: bool = False
    """Whether the operation is a revocation without hashes, which concerns its whole batch."""

    @property
    def weight(self) -> int:
        """Return the row's approximate size in bytes."""
        return ROW_BYTES + len(self.event.content)


class OperationLog(LogReader):
    """The processed operations in a node's tables, as a log."""

    network = NETWORK

    def __init__(self, database: Database) -> None:
        self._database = database
        self.id = bytes(database.select("SELECT id FROM prism_meta")[0][0])

    def head(self) -> Head:
        with self._database.transaction() as session:
            current = position(session)
        return Head(current.epoch, current.seq_no)

    def common(self, epoch: int) -> int | None:
        rows = self._database.select(
            "SELECT min(last_seq_no) FROM epochs WHERE epoch > ?", (epoch,)
        )
        common: int | None = rows[0][0]
        return common

    def epochs(self) -> list[tuple[int, int]]:
        return [
            (epoch, last)
            for epoch, last in self._database.select("SELECT * FROM epochs ORDER BY epoch")
        ]

    def read(self, after: int, limit: int, where: Filter = ANY, span: int = SPAN) -> Page:
        with self._database.transaction() as session:
            current = position(session)
            events = read_events(session, after, limit, wanted=where, span=span)
        rows: list[Row] = [row_of(event) for event in events]
        # The end of the span or of the log, unless `limit` ended the read earlier.
        through = max(min(after + span, current.seq_no), after)
        if len(rows) == limit:
            through = rows[-1].seq
        return Page(rows, through, Head(current.epoch, current.seq_no))

    def wait(self, known: Head, timeout: float) -> bool:
        self._database.wait(CHANNEL, timeout)
        return self.head() != known

    def after_operation(self, operation_id: bytes) -> Cursor:
        """Return the cursor after the first processed row of an operation id.

        Raises `BadCursor` if there is no such row.
        """
        with self._database.transaction() as session:
            of_id = "atala_operations WHERE signed_atala_operation_id = ?"
            (first,) = session.run(
                f"SELECT min(atala_operation_seq_no) FROM {of_id}", (operation_id,)
            )[0]
            if first is None:
                raise BadCursor("no processed operation has this id")
            return Cursor(position(session).epoch, first)

    def last_common(self, cut: Cursor) -> tuple[Cursor, bytes]:
        """Return the cursor of the last row that remains after a rewind to `cut`, and its id.

        Later rewinds may have removed more rows, and are taken into account. If no row remains, the
        cursor has seq 0 and the id is empty.
        """
        with self._database.transaction() as session:
            epoch = position(session).epoch
            (common,) = session.run(
                "SELECT min(last_seq_no) FROM epochs WHERE epoch > ?", (cut.epoch,)
            )[0]
            seq_no = cut.seq if common is None else min(cut.seq, common)
            return Cursor(epoch, seq_no), id_at(session, seq_no)


class _Columns(Columns):
    """The translation of filters into conditions on the columns of operations."""

    def chain(self, chain: int | None) -> Clause:
        return Clause("(1 = 1)" if chain is None else "(1 = 0)")

    def kind(self, kind: str) -> Clause:
        """Return the condition for `TYPE.STATUS`, or for any status with `TYPE.*`."""
        name, _, status = kind.partition(".")
        if status == "*":
            return Clause("(atala_operation_type = ?)", (name,))
        return Clause("(atala_operation_type = ? AND atala_operation_status = ?)", (name, status))

    def field(self, path: tuple[Step, ...], op: str, value: Scalar | tuple[Scalar, ...]) -> Clause:
        """Return the condition for a comparison that `log_filter` uses.

        Raises `BadFilter` for others.
        """
        match (path, op, value):
            case (("did",), "=", str()):
                sql = (
                    "((o.atala_operation_did_suffix IS NOT NULL AND o.atala_operation_did_suffix ="
                    " ?) OR (o.created_did_suffix IS NOT NULL AND o.created_did_suffix = ?))"
                )
                return Clause(sql, (value, value))
            case (("batch",), "=", str()):
                return Clause(
                    "(o.credential_batch_id IS NOT NULL AND o.credential_batch_id = ?)", (value,)
                )
            case (("reason",), "=" | "!=", None):
                return Clause(f"(status_details IS {'' if op == '=' else 'NOT '}NULL)")
            case (("whole",), "=", True):
                return Clause(f"(atala_operation_type = 'REVOKE_CREDENTIALS' AND NOT {_REVOKED}))")
            case ((str(name),), "=", True) if name.startswith("c"):
                return Clause(
                    f"({_REVOKED} AND r.credential_hash = ?))", (bytes.fromhex(name[1:]),)
                )
            case _:
                raise BadFilter(f"operations have no index by {path} {op}")


def read_events(
    session: Session, after: int, limit: int, wanted: Filter = ANY, span: int = SPAN
) -> list[Event]:
    """Return operations that match `wanted` and have `seq_no > after`.

    At most `limit` operations are returned, and at most `span` are looked at.
    """
    clause = where(wanted, _Columns())
    rows = session.run(
        f"SELECT {_COLUMNS} FROM atala_operations AS o WHERE atala_operation_seq_no > ? "
        f"AND atala_operation_seq_no <= ? AND {clause.sql} ORDER BY atala_operation_seq_no LIMIT ?",
        (after, after + span, *clause.params, limit),
    )
    return [_event(row) for row in rows]


def row_of(event: Event) -> OperationRow:
    """Return an operation as a row of the log."""
    reason = None if event.reason is None else event.reason.name
    # The values are names or hexadecimal digits, which need no escapes in JSON.
    body = f'"did":{_text(event.did_suffix)},"batch":{_text(event.credential_batch_id)}'
    body += f',"reason":{_text(reason)},"signed":"{sha256(event.content).hex()}"'
    if event.storage_entry_id is not None:
        body += f',"entry":{_text(event.storage_entry_id)}'
    revokes_whole_batch = False
    if event.type is OperationType.REVOKE_CREDENTIALS:
        hashes = revoked_hashes(decode(SignedAtalaOperation, event.content))
        revokes_whole_batch = not hashes
        body += f',"whole":{"true" if revokes_whole_batch else "false"}'
        body += "".join(f',"c{credential.hex()}":true' for credential in hashes)
    place = event.place
    row = OperationRow(
        seq=event.seq_no,
        anchor=place.number,
        chain=None,
        block=place.number,
        index=place.object_index << 32 | place.operation_index,
        kind=f"{_TYPES[event.type]}.{event.status}",
        id=event.operation_id,
        time=place.time,
        body=f"{{{body}}}",
    )
    row.event = event
    row.revokes_whole_batch = revokes_whole_batch
    return row


def log_filter(part: PrismFilter) -> Filter:
    """Return the filter of this log that stands for a filter of PRISM."""
    parts: list[Filter] = []
    if part.type in TYPES:
        parts.append(OneOf(*(Kind(f"{kind.name}.*") for kind in TYPES[part.type])))
    if part.type in OWNERS and part.did_suffix is not None:
        parts.append(Field("did", "=", part.did_suffix))
    if part.type is FilterType.REVOKE_CREDENTIAL_FILTER and part.credential_hash is not None:
        parts.append(
            OneOf(
                Field("whole", "=", value=True),
                Field(f"c{part.credential_hash.hex()}", "=", value=True),
            )
        )
        if part.credential_batch_id is not None:
            parts.append(Field("batch", "=", part.credential_batch_id))
    if part.status is not None:
        # Only rejected operations have a reason.
        parts.append(Field("reason", "=" if part.status is Status.APPLIED else "!=", None))
    return All(*parts) if parts else ANY


def id_at(session: Session, seq_no: int) -> bytes:
    """Return the operation id of the row with a number, empty if there is no row."""
    rows = session.run(
        "SELECT signed_atala_operation_id FROM atala_operations WHERE atala_operation_seq_no = ?",
        (seq_no,),
    )
    return bytes(rows[0][0]) if rows else b""


def _event(row: Sequence[Any]) -> Event:
    """Return the operation in a row of the table."""
    (
        number,
        operation_id,
        kind,
        status,
        details,
        suffix,
        batch,
        content,
        block,
        block_hash,
        object_index,
        operation_index,
        time,
        entry_id,
    ) = row
    place = OperationPlace(
        block,
        bytes(block_hash or b""),
        object_index,
        operation_index=operation_index,
        time=time,
    )
    return Event(
        number,
        bytes(operation_id),
        _BY_TYPE[kind],
        status=_BY_STATUS[status],
        reason=None if details is None else Reason[details],
        did_suffix=suffix,
        credential_batch_id=batch,
        content=bytes(content),
        place=place,
        storage_entry_id=entry_id,
    )


def _text(value: str | None) -> str:
    """Return the JSON of a name or of hexadecimal digits."""
    return "null" if value is None else f'"{value}"'

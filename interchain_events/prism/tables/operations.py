"""The processed operations as a log, which `EventService` serves and audits read (PR-6, EV-40).

The columns of a row are:

- seq is the operation's seq_no.
- kind is TYPE.STATUS, for example CREATE_DID.APPLIED.
- id is the operation id.
- body has did, batch, reason, signed (the SHA-256 hash of the content), entry (for an operation on
  a storage entry, its id), whole (for a revocation, whether it concerns the whole batch), and
  `c<hex>`: true for each credential hash that is listed.

No row is stored twice: `atala_operations` is the table of this log, and filters on fields become
conditions on its columns.
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
from interchain_events.prism.core.status import Place
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

_TYPES: Final = {each: each.name for each in OperationType}
_BY_TYPE: Final = OperationType.__members__
_BY_STATUS: Final = Status.__members__
"""Names and members, because an enumeration looks them up at each use."""


class Event(NamedTuple):
    """A processed operation, as streams deliver it."""

    seq_no: int
    operation_id: bytes
    type: OperationType
    status: Status
    reason: Reason | None
    """The reason of a rejection, `None` if the operation was applied."""
    did_suffix: str | None
    """The DID to which it is attributed, or that it created."""
    credential_batch_id: str | None
    content: bytes
    """The bytes of the SignedAtalaOperation."""
    place: Place
    storage_entry_id: str | None = None
    """The storage entry that it creates, changes or ends."""


class OperationRow(Row):
    """An operation as a row of the log."""

    event: Event
    """The operation with all that clients get."""
    revokes_whole_batch: bool = False
    """Whether it is a revocation without hashes, which concerns every credential of its batch."""

    @property
    def weight(self) -> int:
        """Return about how many bytes the row takes."""
        return ROW_BYTES + len(self.event.content)


class OperationLog(LogReader):
    """The processed operations in a node's tables, as a log."""

    network = NETWORK

    def __init__(self, database: Database) -> None:
        self._database = database
        self.id = bytes(database.select("SELECT id FROM prism_meta")[0][0])

    def head(self) -> Head:
        with self._database.transaction() as session:
            at = position(session)
        return Head(at.epoch, at.seq_no)

    def common(self, epoch: int) -> int | None:
        found = self._database.select(
            "SELECT min(last_seq_no) FROM epochs WHERE epoch > ?", (epoch,)
        )
        least: int | None = found[0][0]
        return least

    def epochs(self) -> list[tuple[int, int]]:
        return [
            (epoch, last)
            for epoch, last in self._database.select("SELECT * FROM epochs ORDER BY epoch")
        ]

    def read(self, after: int, limit: int, where: Filter = ANY, span: int = SPAN) -> Page:
        with self._database.transaction() as session:
            at = position(session)
            rows: list[Row] = [
                row_of(each) for each in read_events(session, after, limit, where, span)
            ]
        through = rows[-1].seq if len(rows) == limit else max(min(after + span, at.seq_no), after)
        return Page(rows, through, Head(at.epoch, at.seq_no))

    def wait(self, known: Head, timeout: float) -> bool:
        self._database.wait(CHANNEL, timeout)
        return self.head() != known

    def after_operation(self, operation_id: bytes) -> Cursor:
        """Return the cursor after the first processed row of an operation id.

        Raises `BadCursor` if there is none.
        """
        with self._database.transaction() as session:
            rows = "atala_operations WHERE signed_atala_operation_id = ?"
            found = session.run(f"SELECT min(atala_operation_seq_no) FROM {rows}", (operation_id,))
            if found[0][0] is None:
                raise BadCursor("no processed operation has this id")
            return Cursor(position(session).epoch, found[0][0])

    def last_common(self, cut: Cursor) -> tuple[Cursor, bytes]:
        """Return the last row that remains at a cut, and its operation id.

        Rows may have been taken back since the cut. If no row remains, the cursor has seq 0 and the
        id is empty.
        """
        with self._database.transaction() as session:
            epoch = position(session).epoch
            least = session.run(
                "SELECT min(last_seq_no) FROM epochs WHERE epoch > ?", (cut.epoch,)
            )[0][0]
            seq_no = cut.seq if least is None else min(cut.seq, least)
            return Cursor(epoch, seq_no), id_at(session, seq_no)


class _Columns(Columns):
    """The fields of operations, as conditions on the columns that have them."""

    def chain(self, chain: int | None) -> Clause:
        return Clause("(1 = 1)" if chain is None else "(1 = 0)")

    def kind(self, kind: str) -> Clause:
        """Return the condition for a type and status, or for a type with `TYPE.*`."""
        name, _, status = kind.partition(".")
        if status == "*":
            return Clause("(atala_operation_type = ?)", (name,))
        return Clause("(atala_operation_type = ? AND atala_operation_status = ?)", (name, status))

    def field(self, path: tuple[Step, ...], op: str, value: Scalar | tuple[Scalar, ...]) -> Clause:
        """Return the condition for a field that `log_filter` uses.

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
    """Return matching operations with `seq_no > after`.

    At most `limit` operations are returned, and at most `span` are looked at.
    """
    clause = where(wanted, _Columns())
    found = session.run(
        f"SELECT {_COLUMNS} FROM atala_operations AS o WHERE atala_operation_seq_no > ? "
        f"AND atala_operation_seq_no <= ? AND {clause.sql} ORDER BY atala_operation_seq_no LIMIT ?",
        (after, after + span, *clause.params, limit),
    )
    return [_event(row) for row in found]


def row_of(event: Event) -> OperationRow:
    """Return an operation as a row of the log."""
    reason = None if event.reason is None else event.reason.name
    # The JSON is written directly, as all values are names or hexadecimal digits.
    body = f'"did":{_text(event.did_suffix)},"batch":{_text(event.credential_batch_id)}'
    body += f',"reason":{_text(reason)},"signed":"{sha256(event.content).hex()}"'
    if event.storage_entry_id is not None:
        body += f',"entry":{_text(event.storage_entry_id)}'
    revokes_whole_batch = False
    if event.type is OperationType.REVOKE_CREDENTIALS:
        listed = revoked_hashes(decode(SignedAtalaOperation, event.content))
        revokes_whole_batch = not listed
        body += "".join(
            (
                f',"whole":{"false" if listed else "true"}',
                *(f',"c{each.hex()}":true' for each in listed),
            )
        )
    place = event.place
    row = OperationRow(
        event.seq_no,
        place.number,
        None,
        place.number,
        place.object_index << 32 | place.operation_index,
        f"{_TYPES[event.type]}.{event.status}",
        event.operation_id,
        place.time,
        f"{{{body}}}",
    )
    row.event = event
    row.revokes_whole_batch = revokes_whole_batch
    return row


def log_filter(each: PrismFilter) -> Filter:
    """Return a filter of PRISM as a filter over these rows."""
    parts: list[Filter] = []
    if each.type in TYPES:
        parts.append(OneOf(*(Kind(f"{kind.name}.*") for kind in TYPES[each.type])))
    if each.type in OWNERS and each.did_suffix is not None:
        parts.append(Field("did", "=", each.did_suffix))
    if each.type is FilterType.REVOKE_CREDENTIAL_FILTER and each.credential_hash is not None:
        parts.append(
            OneOf(
                Field("whole", "=", value=True),
                Field(f"c{each.credential_hash.hex()}", "=", value=True),
            )
        )
        if each.credential_batch_id is not None:
            parts.append(Field("batch", "=", each.credential_batch_id))
    if each.status is not None:
        parts.append(Field("reason", "=" if each.status is Status.APPLIED else "!=", None))
    return All(*parts) if parts else ANY


def id_at(session: Session, seq_no: int) -> bytes:
    """Return the operation id of a row, empty if there is no row."""
    row = "atala_operations WHERE atala_operation_seq_no = ?"
    found = session.run(f"SELECT signed_atala_operation_id FROM {row}", (seq_no,))
    return bytes(found[0][0]) if found else b""


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
        at,
        place,
        time,
        entry_id,
    ) = row
    return Event(
        number,
        bytes(operation_id),
        _BY_TYPE[kind],
        _BY_STATUS[status],
        None if details is None else Reason[details],
        suffix,
        batch,
        bytes(content),
        Place(block, bytes(block_hash or b""), at, place, time),
        entry_id,
    )


def _text(value: str | None) -> str:
    """Return the JSON of a name or of hexadecimal digits."""
    return "null" if value is None else f'"{value}"'

"""Subscriptions, and the rows that each is due: pages of one moment (PR-50 to PR-53)."""

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pubsub_emulator.eventplane.errors import BadCursor, UnknownToken
from pubsub_emulator.eventplane.filters.sql import Clause
from pubsub_emulator.eventplane.log.database import Database, Session
from pubsub_emulator.eventplane.prism.core.errors import PrismError, Reason
from pubsub_emulator.eventplane.prism.core.filters import OWNERS, TYPES, Filter, FilterType, normal_form
from pubsub_emulator.eventplane.prism.core.process import OperationType, Status
from pubsub_emulator.eventplane.prism.core.status import Place
from pubsub_emulator.eventplane.prism.tables.processor import position
from pubsub_emulator.eventplane.subscriptions.cursor import Cursor

TOKEN_BYTES: Final = 24
SPAN: Final = 20
"""A page looks at so many times as many rows as it may hold."""

_COLUMNS: Final = (
    "atala_operation_seq_no, signed_atala_operation_id, atala_operation_type, atala_operation_status, "
    "status_details, coalesce(atala_operation_did_suffix, created_did_suffix), credential_batch_id, "
    "atala_operation_content, block_number, block_hash, object_index, operation_index, block_time"
)


class Event(NamedTuple):
    """A processed row, as streams deliver it."""

    seq_no: int
    operation_id: bytes
    type: OperationType
    status: Status
    reason: Reason | None
    did_suffix: str | None
    credential_batch_id: str | None
    content: bytes
    place: Place


class Abandoned(PrismError):
    """A cursor beyond a cut. `seq_no` is the last common row, 0 if none is left; `operation_id` is its id."""

    def __init__(self, operation_id: bytes, seq_no: int, epoch: int) -> None:
        super().__init__(f"operations after {seq_no} were taken back; go on from there (epoch {epoch})")
        self.operation_id = operation_id
        self.seq_no = seq_no
        self.epoch = epoch


@dataclass(frozen=True, slots=True)
class Subscription:
    """The subscription of a token; `key` is its SHA-256, `after` the lower bound."""

    key: bytes
    filters: tuple[Filter, ...]
    batches: bool
    after: Cursor


class Page(NamedTuple):
    """Matching rows in (after, through], all of one moment; `end` is the last row that there was."""

    events: list[Event]
    through: int
    end: int


class Bound(NamedTuple):
    """A subscription's lower bound: the last row there is, if any."""

    cursor: Cursor
    operation_id: bytes


class FromStart(NamedTuple):
    """Everything."""


class SinceSubscription(NamedTuple):
    """After the lower bound."""


class AfterOperation(NamedTuple):
    """After the first processed row of an id."""

    operation_id: bytes


class AfterCursor(NamedTuple):
    """Exactly after a cursor."""

    cursor: Cursor


Start = FromStart | SinceSubscription | AfterOperation | AfterCursor


class Subscriptions:
    """Subscriptions and their pages in PRISM's tables."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, filters: Iterable[Filter], *, batches: bool) -> tuple[str, Bound]:
        """A token, and the lower bound; serialised with block processing."""
        token = secrets.token_urlsafe(TOKEN_BYTES)
        key = key_of(token)
        with self._database.transaction(write=True) as session:
            at = position(session, lock=self._database.dialect)
            last = _id_at(session, at.seq_no)
            session.run(
                "INSERT INTO subscriptions VALUES (?, ?, ?, ?, ?)",
                (key, last or None, bool(batches), at.seq_no, at.epoch),
            )
            session.run_many(
                "INSERT INTO subscription_filters VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    (
                        key,
                        number,
                        each.type.name,
                        each.did_suffix,
                        None if each.status is None else each.status.value,
                        each.credential_hash,
                        each.credential_batch_id,
                    )
                    for number, each in enumerate(normal_form(filters))
                ),
            )
        return token, Bound(Cursor(at.epoch, at.seq_no), last)

    def get(self, token: str) -> Subscription:
        """The subscription of a token. Raises `UnknownToken`."""
        with self._database.transaction() as session:
            return _subscription(session, key_of(token))

    def cancel(self, token: str) -> bytes:
        """Forget a subscription; returns its key. Raises `UnknownToken`."""
        key = key_of(token)
        with self._database.transaction(write=True) as session:
            session.run("DELETE FROM subscription_filters WHERE subscription_token = ?", (key,))
            gone = "DELETE FROM subscriptions WHERE subscription_token = ? RETURNING subscription_token"
            if not session.run(gone, (key,)):
                raise UnknownToken("no subscription has this token")
        return key

    def begin(self, token: str, start: Start) -> tuple[Subscription, Cursor]:
        """Where a stream starts, in the present epoch. Raises `UnknownToken`, `BadCursor`, `Abandoned`."""
        with self._database.transaction() as session:
            subscription = _subscription(session, key_of(token))
            at = position(session)
            if isinstance(start, FromStart):
                return subscription, Cursor(at.epoch, 0)
            if isinstance(start, AfterOperation):
                return subscription, Cursor(at.epoch, _seq_no_of(session, start.operation_id))
            given = start.cursor if isinstance(start, AfterCursor) else subscription.after
            if given.epoch > at.epoch:
                raise BadCursor("the cursor is beyond the end")
            check_cut(session, given, at.epoch)
            if given.seq > at.seq_no:
                raise BadCursor("the cursor is beyond the end")
            return subscription, Cursor(at.epoch, given.seq)

    def page(self, subscription: Subscription, sent: Cursor, after: int, limit: int) -> tuple[Page, Cursor]:
        """Matching rows after `after`, and `sent` in the present epoch, all of one moment.

        Raises `UnknownToken` when the subscription was cancelled, `Abandoned` when `sent` was taken back. After a
        rewind that left `sent` the page begins where the rewind cut, if that is before `after`.
        """
        with self._database.transaction() as session:
            if not session.run("SELECT 1 FROM subscriptions WHERE subscription_token = ?", (subscription.key,)):
                raise UnknownToken("the subscription was cancelled")
            at = position(session)
            if at.epoch != sent.epoch:
                least = check_cut(session, sent, at.epoch)
                after = after if least is None else min(after, least)
            until = min(after + limit * SPAN, at.seq_no)
            clause = _any_of(subscription.filters)
            found = session.run(
                f"SELECT {_COLUMNS} FROM atala_operations AS o WHERE atala_operation_seq_no > ? "
                f"AND atala_operation_seq_no <= ? AND {clause.sql} ORDER BY atala_operation_seq_no LIMIT ?",
                (after, until, *clause.params, limit),
            )
        events = [_event(row) for row in found]
        through = events[-1].seq_no if len(events) == limit else max(until, after)
        return Page(events, through, at.seq_no), Cursor(at.epoch, sent.seq)


def read_all(session: Session, after: int, limit: int) -> list[Event]:
    """Every processed row after `after`, at most `limit`."""
    found = session.run(
        f"SELECT {_COLUMNS} FROM atala_operations WHERE atala_operation_seq_no > ? "
        "ORDER BY atala_operation_seq_no LIMIT ?",
        (after, limit),
    )
    return [_event(row) for row in found]


def key_of(token: str) -> bytes:
    """What is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def check_cut(session: Session, cursor: Cursor, epoch: int) -> int | None:
    """The least row that rewinds after a cursor's epoch left, `None` without any. Raises `Abandoned`."""
    least: int | None = session.run("SELECT min(last_seq_no) FROM epochs WHERE epoch > ?", (cursor.epoch,))[0][0]
    if least is not None and cursor.seq > least:
        raise Abandoned(_id_at(session, least), least, epoch)
    return least


def _subscription(session: Session, key: bytes) -> Subscription:
    found = session.run(
        "SELECT operations_batching_allowed, epoch, after_seq_no FROM subscriptions WHERE subscription_token = ?",
        (key,),
    )
    if not found:
        raise UnknownToken("no subscription has this token")
    batches, epoch, after = found[0]
    rows = session.run(
        "SELECT filter_type, did_suffix, revoked_credential_hash, credential_batch_id, statuses "
        "FROM subscription_filters WHERE subscription_token = ? ORDER BY filter_no",
        (key,),
    )
    filters = tuple(
        Filter(
            FilterType[kind], suffix, None if hash_ is None else bytes(hash_), batch, Status(status) if status else None
        )
        for kind, suffix, hash_, batch, status in rows
    )
    return Subscription(key, filters, bool(batches), Cursor(epoch, after))


def _id_at(session: Session, seq_no: int) -> bytes:
    found = session.run(
        "SELECT signed_atala_operation_id FROM atala_operations WHERE atala_operation_seq_no = ?", (seq_no,)
    )
    return bytes(found[0][0]) if found else b""


def _seq_no_of(session: Session, operation_id: bytes) -> int:
    found = session.run(
        "SELECT min(atala_operation_seq_no) FROM atala_operations WHERE signed_atala_operation_id = ?", (operation_id,)
    )
    if found[0][0] is None:
        raise BadCursor("no processed operation has this id")
    number: int = found[0][0]
    return number


def _event(row: Sequence[Any]) -> Event:
    number, operation_id, kind, status, details, suffix, batch, content, *where = row
    block, block_hash, object_index, operation_index, time = where
    return Event(
        number,
        bytes(operation_id),
        OperationType[kind],
        Status(status),
        None if details is None else Reason[details],
        suffix,
        batch,
        bytes(content),
        Place(block, bytes(block_hash or b""), object_index, operation_index, time),
    )


def _any_of(filters: Sequence[Filter]) -> Clause:
    clauses = [clause_of(each) for each in filters]
    params = tuple(value for each in clauses for value in each.params)
    return Clause(f"({' OR '.join(each.sql for each in clauses)})", params)


def clause_of(each: Filter) -> Clause:
    """The condition under which a processed row of `atala_operations AS o` matches (PR-40, PR-41)."""
    parts: list[str] = []
    params: list[object] = []
    if each.status is not None:
        parts.append("atala_operation_status = ?")
        params.append(each.status.value)
    if each.type in TYPES:
        parts.append(f"atala_operation_type IN ({', '.join('?' * len(TYPES[each.type]))})")
        params += [kind.name for kind in TYPES[each.type]]
    if each.type is FilterType.DID_OWNER_ANY_FILTER:
        parts.append("(atala_operation_did_suffix = ? OR created_did_suffix = ?)")
        params += [each.did_suffix, each.did_suffix]
    elif each.type in OWNERS:
        parts.append("atala_operation_did_suffix = ?")
        params.append(each.did_suffix)
    if each.type is FilterType.REVOKE_CREDENTIAL_FILTER:
        if each.credential_batch_id is not None:
            parts.append("credential_batch_id = ?")
            params.append(each.credential_batch_id)
        listed = "SELECT 1 FROM revoked_credentials AS r WHERE r.seq_no = o.atala_operation_seq_no"
        parts.append(f"(EXISTS ({listed} AND r.credential_hash = ?) OR NOT EXISTS ({listed}))")
        params.append(each.credential_hash)
    return Clause(f"({' AND '.join(parts) or '1 = 1'})", tuple(params))

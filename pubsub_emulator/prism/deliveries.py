"""PRISM's operations and filters in the form of the event log, so that one audit serves both (EV-40).

seq   seq_no                    kind  TYPE.STATUS, as CREATE_DID.APPLIED      id  the operation id
body  did, batch, reason, signed (sha256 of the content), whole (a batch's revocation), and of each listed
      credential hash `c<hex>`: true
"""

from collections.abc import Iterable
from typing import Final

from pubsub_emulator.eventplane.filters.algebra import ANY, All, Field, Kind, OneOf
from pubsub_emulator.eventplane.filters.algebra import Filter as LogFilter
from pubsub_emulator.eventplane.log.database import Database
from pubsub_emulator.eventplane.log.rows import Row
from pubsub_emulator.eventplane.log.rules import Head
from pubsub_emulator.eventplane.log.store import Page
from pubsub_emulator.eventplane.log.values import Value, encode_fields
from pubsub_emulator.eventplane.prism.core.filters import OWNERS, TYPES, Filter, FilterType
from pubsub_emulator.eventplane.prism.core.identifiers import sha256
from pubsub_emulator.eventplane.prism.core.messages import RevokeCredentials, SignedAtalaOperation, decode
from pubsub_emulator.eventplane.prism.core.process import OperationType, Status
from pubsub_emulator.eventplane.prism.tables.events import Event, read_all
from pubsub_emulator.eventplane.prism.tables.events import Subscription as PrismSubscription
from pubsub_emulator.eventplane.prism.tables.processor import position
from pubsub_emulator.eventplane.subscriptions.registry import Subscription

NETWORK: Final = "prism"
"""The network's name in the tables of deliveries."""


def row_of(event: Event) -> Row:
    """An operation as a row of a log."""
    body: dict[str, Value] = {
        "did": event.did_suffix,
        "batch": event.credential_batch_id,
        "reason": None if event.reason is None else event.reason.name,
        "signed": sha256(event.content).hex(),
    }
    if event.type is OperationType.REVOKE_CREDENTIALS:
        listed = _listed(event.content)
        body["whole"] = not listed
        body |= {f"c{each.hex()}": True for each in listed}
    place = event.place
    kind = f"{event.type.name}.{event.status.value}"
    index = place.object_index << 32 | place.operation_index
    block = place.number
    return Row(event.seq_no, block, None, block, index, kind, event.operation_id, place.time, encode_fields(body))


def log_filter(each: Filter) -> LogFilter:
    """A filter over such rows."""
    types = TYPES.get(each.type, tuple(OperationType))
    statuses = (Status.APPLIED, Status.REJECTED) if each.status is None else (each.status,)
    parts: list[LogFilter] = []
    if each.type in TYPES or each.status is not None:
        parts.append(OneOf(*(Kind(f"{kind.name}.{status.value}") for kind in types for status in statuses)))
    if each.type in OWNERS and each.did_suffix is not None:
        parts.append(Field("did", "=", each.did_suffix))
    if each.type is FilterType.REVOKE_CREDENTIAL_FILTER and each.credential_hash is not None:
        parts.append(OneOf(Field("whole", "=", value=True), Field(f"c{each.credential_hash.hex()}", "=", value=True)))
        if each.credential_batch_id is not None:
            parts.append(Field("batch", "=", each.credential_batch_id))
    return All(*parts) if parts else ANY


def log_subscription(subscription: PrismSubscription) -> Subscription:
    """A subscription to such rows."""
    filters = tuple(map(log_filter, subscription.filters))
    return Subscription(subscription.key.hex(), filters, subscription.after, subscription.batches)


class OperationLog:
    """The processed operations of a node's tables, to be exported beside its deliveries."""

    network = NETWORK

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, after: int, limit: int) -> Page:
        """Rows after `after`, at most `limit`."""
        with self._database.transaction() as session:
            at = position(session)
            rows = [row_of(each) for each in read_all(session, after, limit)]
        return Page(rows, rows[-1].seq if len(rows) == limit else at.seq_no, Head(at.epoch, at.seq_no))

    def epochs(self) -> list[tuple[int, int]]:
        """Every rewind as (epoch that it began, last row that it left)."""
        with self._database.transaction() as session:
            found = session.run("SELECT epoch, last_seq_no FROM epochs ORDER BY epoch")
        return [(epoch, last) for epoch, last in found]


def _listed(content: bytes) -> Iterable[bytes]:
    operation = decode(SignedAtalaOperation, content).operation
    member = None if operation is None else operation.operation
    return tuple(sorted({*member.credentials_to_revoke})) if isinstance(member, RevokeCredentials) else ()

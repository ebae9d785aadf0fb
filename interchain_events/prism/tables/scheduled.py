"""Operations that this node was asked to anchor (PR-63).

They are RECEIVED until they are processed from the chain or CANCELLED.
"""

import secrets
from collections.abc import Iterable, Sequence
from typing import Any, Final

from interchain_events.database.database import Database, Session
from interchain_events.pallets.prism.pallet import MOST_OBJECT
from interchain_events.prism.core.errors import (
    AlreadyThere,
    BadRequest,
    NotCancellable,
    Reason,
    Rejected,
    Undecodable,
    UnknownOperation,
)
from interchain_events.prism.core.identifiers import sha256
from interchain_events.prism.core.messages import AtalaObject, SignedAtalaOperation, decode
from interchain_events.prism.core.process import Status, check_shape, examine
from interchain_events.prism.core.status import OperationPlace, OperationState
from interchain_events.prism.make import atala_object
from interchain_events.prism.tables.position import position
from interchain_events.prism.tables.schema import insert_scheduled
from pubsub_emulator.primitives.hashing import token_hash

PENDING_BLOCKS: Final = 64
"""The number of best blocks after which an operation that is in no block is cancelled."""
_TOKEN_BYTES: Final = 24
"""The number of random bytes of a token."""
_OF_ID: Final = "atala_operations WHERE signed_atala_operation_id = ?"
"""The table of operations and the condition on their id."""
_IS_RECEIVED: Final = "atala_operation_status = 'RECEIVED'"


def check_operations(signed: Sequence[bytes]) -> tuple[list[bytes], bytes]:
    """Return the ids of operations, and the object with all of them (PR-63).

    Raises `BadRequest` if an operation is malformed or repeated, or if the object is too large.
    """
    if not signed:
        raise BadRequest("signed_operations: at least one operation is needed")
    size = sum(map(len, signed))
    if size > MOST_OBJECT:
        raise BadRequest(
            f"signed_operations: {size} bytes are too many for one object, which has at most"
            f" {MOST_OBJECT}"
        )
    ids = [sha256(raw) for raw in signed]
    for index, raw in enumerate(signed):
        if ids[index] in ids[:index]:
            raise BadRequest(f"signed_operations[{index}]: the request has this operation twice")
        try:
            check_shape(examine(decode(SignedAtalaOperation, raw)))
        except (Undecodable, Rejected) as error:
            raise BadRequest(f"signed_operations[{index}]: {error}") from None
    content = atala_object(signed)
    if len(content) > MOST_OBJECT:
        raise BadRequest(
            f"signed_operations: {len(content)} bytes are too many for one object, which has at"
            f" most {MOST_OBJECT}"
        )
    decode(AtalaObject, content)
    return ids, content


class Scheduled:
    """The rows of operations that are RECEIVED or CANCELLED."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, signed: Sequence[bytes], best: int) -> tuple[list[bytes], str]:
        """Store operations that are to be anchored in one object.

        Returns their ids and the token that is needed to cancel them. `best` is the number of the
        best block. Raises `BadRequest`, and `AlreadyThere` if one is RECEIVED or APPLIED.
        """
        ids, content = check_operations(signed)
        object_id = sha256(content)
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        with self._database.transaction(write=True) as session:
            # This locks the tables against the processor.
            position(session, lock=self._database.dialect)
            for index, (operation_id, raw) in enumerate(zip(ids, signed, strict=True)):
                statuses = session.run(
                    f"SELECT atala_operation_status FROM {_OF_ID}", (operation_id,)
                )
                for status in (Status.RECEIVED, Status.APPLIED):
                    if (status,) in statuses:
                        raise AlreadyThere(
                            f"signed_operations[{index}]: this node already has the operation,"
                            f" with the status {status.value}"
                        )
                session.run(
                    f"DELETE FROM {_OF_ID} AND atala_operation_status = 'CANCELLED'",
                    (operation_id,),
                )
                insert_scheduled(
                    session,
                    object_id,
                    raw,
                    status=Status.RECEIVED,
                    cancel_token=token_hash(token),
                    pending_since=best,
                )
            session.run(
                "INSERT INTO atala_objects VALUES (?, ?, 'PENDING', NULL) ON CONFLICT"
                " (atala_object_id) DO NOTHING",
                (object_id, content),
            )
            # An object whose operations are all in another object now is not needed any more.
            session.run(
                "DELETE FROM atala_objects WHERE atala_object_status = 'PENDING' AND NOT EXISTS"
                " (SELECT 1 FROM atala_operations AS o WHERE o.atala_object_id ="
                " atala_objects.atala_object_id)"
            )
        return ids, token

    def cancel(self, operation_id: bytes, token: str, *, in_block: bool) -> None:
        """Cancel an operation.

        `in_block` is true if the operation is in a block of the best branch. Raises
        `UnknownOperation` and `NotCancellable`.
        """
        with self._database.transaction(write=True) as session:
            position(session, lock=self._database.dialect)
            rows = session.run(
                f"SELECT atala_operation_status, cancel_token FROM {_OF_ID}", (operation_id,)
            )
            if not rows:
                raise UnknownOperation("no operation with this id was scheduled at this node")
            keys: dict[str, bytes | None] = dict(rows)
            if Status.RECEIVED not in keys:
                raise NotCancellable(
                    f"the operation cannot be cancelled, its status is {rows[0][0]}"
                )
            key = keys[Status.RECEIVED]
            if key is None or not secrets.compare_digest(bytes(key), token_hash(token)):
                raise NotCancellable("this is not the token that ScheduleOperations returned")
            if in_block:
                raise NotCancellable("the operation cannot be cancelled, it is in a block")
            _mark_cancelled(session, operation_id)

    def waiting(self) -> dict[bytes, bytes]:
        """Return the objects with an operation that is RECEIVED, by their ids."""
        with self._database.transaction() as session:
            rows = session.run(
                "SELECT atala_object_id, object_content FROM atala_objects WHERE atala_object_id"
                f" IN (SELECT atala_object_id FROM atala_operations WHERE {_IS_RECEIVED})"
            )
        return {bytes(object_id): bytes(content) for object_id, content in rows}

    def left_branch(self, operations: Iterable[bytes], best: int) -> None:
        """Restart the count of blocks after which operations are cancelled.

        Call it when their block leaves the best branch. `best` is the number of the best block.
        """
        with self._database.transaction(write=True) as session:
            session.run_many(
                "UPDATE atala_operations SET pending_since = ?"
                f" WHERE signed_atala_operation_id = ? AND {_IS_RECEIVED}",
                [(best, operation_id) for operation_id in operations],
            )

    def expire(
        self, best: int, in_blocks: Iterable[bytes], most: int = PENDING_BLOCKS
    ) -> list[bytes]:
        """Cancel operations that have been out of blocks for `most` blocks of the best branch.

        `best` is the number of the best block, and `in_blocks` are the operations in blocks of the
        best branch. Returns the ids of the cancelled operations.
        """
        inside = {*in_blocks}
        # Usually no operation waits. This check needs no write transaction.
        with self._database.transaction() as session:
            if not session.run(f"SELECT 1 FROM atala_operations WHERE {_IS_RECEIVED} LIMIT 1"):
                return []
        with self._database.transaction(write=True) as session:
            position(session, lock=self._database.dialect)
            session.run(
                "UPDATE atala_operations SET pending_since = ?"
                f" WHERE {_IS_RECEIVED} AND pending_since IS NULL",
                (best,),
            )
            rows = session.run(
                "SELECT signed_atala_operation_id FROM atala_operations"
                f" WHERE {_IS_RECEIVED} AND pending_since <= ?",
                (best - most,),
            )
            expired = [bytes(name) for (name,) in rows if bytes(name) not in inside]
            for operation_id in expired:
                _mark_cancelled(session, operation_id)
        return expired

    def known(self, operation_id: bytes) -> OperationState:
        """Return the state of an operation according to its rows."""
        with self._database.transaction() as session:
            rows = session.run(
                "SELECT atala_operation_status, status_details, block_number, block_hash,"
                f" object_index, operation_index, block_time FROM {_OF_ID}",
                (operation_id,),
            )
        by_status: dict[str, Sequence[Any]] = {row[0]: row for row in rows}
        applied = by_status.get(Status.APPLIED)
        rejected = by_status.get(Status.REJECTED)
        return OperationState(
            applied=None if applied is None else _place(applied),
            rejected=None if rejected is None else (_place(rejected), Reason[rejected[1]]),
            is_received=Status.RECEIVED in by_status,
            is_cancelled=Status.CANCELLED in by_status,
        )


def _place(row: Sequence[Any]) -> OperationPlace:
    """Return the operation's place in a row of `Scheduled.known`."""
    _, _, number, block_hash, object_index, operation_index, time = row
    return OperationPlace(
        number,
        bytes(block_hash or b""),
        object_index,
        operation_index=operation_index,
        time=time,
    )


def _mark_cancelled(session: Session, operation_id: bytes) -> None:
    """Change a RECEIVED row to CANCELLED, and delete an earlier CANCELLED one."""
    session.run(f"DELETE FROM {_OF_ID} AND atala_operation_status = 'CANCELLED'", (operation_id,))
    changes = "atala_operation_status = 'CANCELLED', cancel_token = NULL, pending_since = NULL"
    of_id = f"signed_atala_operation_id = ? AND {_IS_RECEIVED}"
    session.run(f"UPDATE atala_operations SET {changes} WHERE {of_id}", (operation_id,))

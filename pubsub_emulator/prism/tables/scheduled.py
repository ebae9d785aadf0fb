"""Operations that this node was given to anchor (PR-63): RECEIVED until they are processed, or CANCELLED."""

import secrets
from collections.abc import Iterable, Sequence
from typing import Any, Final

from pubsub_emulator.database.database import Database, Session
from pubsub_emulator.primitives.hashing import token_hash
from pubsub_emulator.prism.core.errors import (
    AlreadyThere,
    BadRequest,
    NotCancellable,
    Reason,
    Rejected,
    Undecodable,
    UnknownOperation,
)
from pubsub_emulator.prism.core.identifiers import sha256
from pubsub_emulator.prism.core.messages import AtalaObject, SignedAtalaOperation, decode
from pubsub_emulator.prism.core.process import Status, check_shape, examine
from pubsub_emulator.prism.core.status import Known, Place
from pubsub_emulator.prism.make import atala_object
from pubsub_emulator.prism.tables.processor import position
from pubsub_emulator.prism.tables.schema import insert_scheduled
from pubsub_emulator.runtime.pallet_prism.pallet import MOST_OBJECT

PENDING_BLOCKS: Final = 64  #: Best blocks that an operation may be out of blocks
_TOKEN_BYTES: Final = 24
_OF_ID: Final = "atala_operations WHERE signed_atala_operation_id = ?"
_IS_RECEIVED: Final = "atala_operation_status = 'RECEIVED'"


def check_operations(signed: Sequence[bytes]) -> tuple[list[bytes], bytes]:
    """The ids of operations, and the one object that carries them. Raises `BadRequest` (PR-63)."""
    if not signed:
        raise BadRequest("signed_operations: there is none")
    size = sum(map(len, signed))
    if size > MOST_OBJECT:
        raise BadRequest(f"signed_operations: an object of {size} bytes, {MOST_OBJECT} is the most")
    ids = [sha256(each) for each in signed]
    for index, raw in enumerate(signed):
        if ids[index] in ids[:index]:
            raise BadRequest(f"signed_operations[{index}]: the same operation again")
        try:
            check_shape(examine(decode(SignedAtalaOperation, raw)))
        except (Undecodable, Rejected) as error:
            raise BadRequest(f"signed_operations[{index}]: {error}") from None
    content = atala_object(signed)
    if len(content) > MOST_OBJECT:
        raise BadRequest(f"signed_operations: an object of {len(content)} bytes, {MOST_OBJECT} is the most")
    decode(AtalaObject, content)
    return ids, content


class Scheduled:
    """Rows RECEIVED and CANCELLED."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, signed: Sequence[bytes], best: int) -> tuple[list[bytes], str]:
        """Store operations to anchor in one object: ids, a token to cancel. Raises `BadRequest`, `AlreadyThere`."""
        ids, content = check_operations(signed)
        object_id, token = sha256(content), secrets.token_urlsafe(_TOKEN_BYTES)
        with self._database.transaction(write=True) as session:
            position(session, lock=self._database.dialect)
            for index, (operation_id, raw) in enumerate(zip(ids, signed, strict=True)):
                there = session.run(f"SELECT atala_operation_status FROM {_OF_ID}", (operation_id,))
                for each in (Status.RECEIVED, Status.APPLIED):
                    if (each,) in there:
                        raise AlreadyThere(f"signed_operations[{index}]: the operation is {each.value} here")
                session.run(f"DELETE FROM {_OF_ID} AND atala_operation_status = 'CANCELLED'", (operation_id,))
                insert_scheduled(session, object_id, raw, Status.RECEIVED, token_hash(token), best)
            session.run(
                "INSERT INTO atala_objects VALUES (?, ?, 'PENDING', NULL) ON CONFLICT (atala_object_id) DO NOTHING",
                (object_id, content),
            )
            # An object whose operations were all scheduled again in another one is no longer needed.
            session.run(
                "DELETE FROM atala_objects WHERE atala_object_status = 'PENDING' AND NOT EXISTS "
                "(SELECT 1 FROM atala_operations AS o WHERE o.atala_object_id = atala_objects.atala_object_id)"
            )
        return ids, token

    def cancel(self, operation_id: bytes, token: str, in_block: bool) -> None:
        """Cancel an operation. Raises `UnknownOperation`, `NotCancellable`."""
        with self._database.transaction(write=True) as session:
            position(session, lock=self._database.dialect)
            found = session.run(f"SELECT atala_operation_status, cancel_token FROM {_OF_ID}", (operation_id,))
            if not found:
                raise UnknownOperation("no operation of this id was scheduled here")
            received = next((each for each in found if each[0] == Status.RECEIVED), None)
            if received is None:
                raise NotCancellable(f"the operation is {found[0][0]}")
            key = received[1]
            if key is None or not secrets.compare_digest(bytes(key), token_hash(token)):
                raise NotCancellable("the token is not the one that ScheduleOperations gave")
            if in_block:
                raise NotCancellable("the operation is in a block")
            _mark_cancelled(session, operation_id)

    def waiting(self) -> dict[bytes, bytes]:
        """The objects, by their ids, that hold an operation that is RECEIVED."""
        with self._database.transaction() as session:
            found = session.run(
                "SELECT atala_object_id, object_content FROM atala_objects WHERE atala_object_id IN "
                f"(SELECT atala_object_id FROM atala_operations WHERE {_IS_RECEIVED})"
            )
        return {bytes(object_id): bytes(content) for object_id, content in found}

    def left_branch(self, operations: Iterable[bytes], best: int) -> None:
        """Blocks with these operations left the branch: their time starts again."""
        with self._database.transaction(write=True) as session:
            since = f"pending_since = ? WHERE signed_atala_operation_id = ? AND {_IS_RECEIVED}"
            session.run_many(f"UPDATE atala_operations SET {since}", [(best, each) for each in operations])

    def expire(self, best: int, in_blocks: Iterable[bytes], most: int = PENDING_BLOCKS) -> list[bytes]:
        """Cancel what has been out of blocks for `most` best blocks; returns which."""
        inside = {*in_blocks}
        with self._database.transaction() as session:
            if not session.run(f"SELECT 1 FROM atala_operations WHERE {_IS_RECEIVED} LIMIT 1"):
                return []
        with self._database.transaction(write=True) as session:
            position(session, lock=self._database.dialect)
            new = f"WHERE {_IS_RECEIVED} AND pending_since IS NULL"
            session.run(f"UPDATE atala_operations SET pending_since = ? {new}", (best,))
            old = f"WHERE {_IS_RECEIVED} AND pending_since <= ?"
            found = session.run(f"SELECT signed_atala_operation_id FROM atala_operations {old}", (best - most,))
            gone = [bytes(each) for (each,) in found if bytes(each) not in inside]
            for each in gone:
                _mark_cancelled(session, each)
        return gone

    def known(self, operation_id: bytes) -> Known:
        """The state of an operation by its rows."""
        with self._database.transaction() as session:
            rows = session.run(
                "SELECT atala_operation_status, status_details, block_number, block_hash, object_index, "
                f"operation_index, block_time FROM {_OF_ID}",
                (operation_id,),
            )
        by_status: dict[str, Sequence[Any]] = {row[0]: row for row in rows}
        applied, rejected = by_status.get(Status.APPLIED), by_status.get(Status.REJECTED)
        return Known(
            None if applied is None else _place(applied),
            None if rejected is None else (_place(rejected), Reason[rejected[1]]),
            Status.RECEIVED in by_status,
            Status.CANCELLED in by_status,
        )


def _place(row: Sequence[Any]) -> Place:
    number, block_hash, object_index, operation_index, time = row[2:]
    return Place(number, bytes(block_hash or b""), object_index, operation_index, time)


def _mark_cancelled(session: Session, operation_id: bytes) -> None:
    session.run(f"DELETE FROM {_OF_ID} AND atala_operation_status = 'CANCELLED'", (operation_id,))
    changes = "atala_operation_status = 'CANCELLED', cancel_token = NULL, pending_since = NULL"
    of_id = f"signed_atala_operation_id = ? AND {_IS_RECEIVED}"
    session.run(f"UPDATE atala_operations SET {changes} WHERE {of_id}", (operation_id,))

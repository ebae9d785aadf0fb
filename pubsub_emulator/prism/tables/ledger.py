"""DIDs and batches as the rows of applied operations make them: nothing else is stored of the state.

A DID is its CREATE_DID and what was applied to it since, a batch its ISSUE and the revocations. Both are found by
index, and kept in memory while they are in use. So whatever a rewind does to the rows, the state is that of the rows.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, TypeVar

from pubsub_emulator.database.database import Session
from pubsub_emulator.prism.core.identifiers import sha256
from pubsub_emulator.prism.core.messages import (
    AtalaOperation,
    IssueCredentialBatch,
    RevokeCredentials,
    SignedAtalaOperation,
    decode,
)
from pubsub_emulator.prism.core.process import Examined, effect
from pubsub_emulator.prism.core.state import Batch, Did, revoked

T = TypeVar("T")

KEPT: Final = 20_000
"""DIDs, and batches, that are kept in memory."""
_CHUNK: Final = 400


class Kept:
    """The cache that transactions share: decoded DIDs and batches of committed rows."""

    def __init__(self, size: int = KEPT) -> None:
        self._size = size
        self.dids: OrderedDict[str, Did] = OrderedDict()
        self.batches: OrderedDict[str, Batch] = OrderedDict()

    def clear(self) -> None:
        """Forget all: rows were taken back."""
        self.dids.clear()
        self.batches.clear()

    def update(self, dids: dict[str, Did], batches: dict[str, Batch]) -> None:
        """Take what a committed transaction changed."""
        _put(self.dids, dids, self._size)
        _put(self.batches, batches, self._size)


class SqlLedger:
    """A `Ledger` over the tables for the time of one transaction."""

    def __init__(self, session: Session, kept: Kept) -> None:
        self._session = session
        self._kept = kept
        self.dids: dict[str, Did] = {}
        """Changed in this transaction."""
        self.batches: dict[str, Batch] = {}
        self._applied: set[bytes] = set()
        self._rejected: set[bytes] = set()
        self._hashes: set[bytes] = set()
        self._no_batches: set[str] = set()
        """Batches that no row issues, so that each new one costs no query of its own."""

    def look_up(self, operations: Sequence[Examined]) -> None:
        """Learn which of these operations were applied; only they may be asked about."""
        hashes = [each.hash for each in operations if each.hash is not None]
        for at in range(0, len(hashes), _CHUNK):
            chunk = hashes[at : at + _CHUNK]
            for operation_id, operation_hash in self._session.run(
                "SELECT signed_atala_operation_id, operation_hash FROM atala_operations "
                f"WHERE atala_operation_status = 'APPLIED' AND operation_hash IN ({_marks(chunk)})",
                chunk,
            ):
                self._applied.add(bytes(operation_id))
                self._hashes.add(bytes(operation_hash))
        self._look_up_batches(operations)

    def _look_up_batches(self, operations: Sequence[Examined]) -> None:
        named = {each.batch_id for each in operations if each.batch_id is not None}
        unknown = [each for each in sorted(named) if each not in self._kept.batches]
        for at in range(0, len(unknown), _CHUNK):
            chunk = unknown[at : at + _CHUNK]
            found = self._session.run(
                "SELECT DISTINCT credential_batch_id FROM atala_operations "
                f"WHERE credential_batch_id IN ({_marks(chunk)}) AND atala_operation_status = 'APPLIED'",
                chunk,
            )
            self._no_batches.update({*chunk} - {each for (each,) in found})

    def did(self, suffix: str) -> Did | None:
        """A DID by its suffix."""
        if suffix in self.dids:
            return self.dids[suffix]
        if suffix not in self._kept.dids:
            did = load_did(self._session, suffix)
            if did is None:
                return None
            self._kept.update({suffix: did}, {})
        self._kept.dids.move_to_end(suffix)
        return self._kept.dids[suffix]

    def batch(self, batch_id: str) -> Batch | None:
        """A batch by its id."""
        if batch_id in self.batches:
            return self.batches[batch_id]
        if batch_id in self._no_batches:
            return None
        if batch_id not in self._kept.batches:
            batch = load_batch(self._session, batch_id)
            if batch is None:
                return None
            self._kept.update({}, {batch_id: batch})
        self._kept.batches.move_to_end(batch_id)
        return self._kept.batches[batch_id]

    def is_applied_hash(self, operation_hash: bytes) -> bool:
        """Whether an operation with this hash was applied."""
        return operation_hash in self._hashes

    def is_applied(self, operation_id: bytes) -> bool:
        """Whether this operation was applied."""
        return operation_id in self._applied

    def is_rejected(self, operation_id: bytes) -> bool:
        """Whether this operation was rejected. It asks the tables; this is rare, since most operations are applied."""
        return operation_id in self._rejected or bool(
            self._session.run(
                "SELECT 1 FROM atala_operations "
                "WHERE signed_atala_operation_id = ? AND atala_operation_status = 'REJECTED'",
                (operation_id,),
            )
        )

    def put_did(self, suffix: str, did: Did) -> None:
        """Set a DID."""
        self.dids[suffix] = did

    def put_batch(self, batch_id: str, batch: Batch) -> None:
        """Set a batch."""
        self.batches[batch_id] = batch

    def note(self, operation_id: bytes, operation_hash: bytes | None, *, applied: bool) -> None:
        """Record that an operation was applied or rejected."""
        (self._applied if applied else self._rejected).add(operation_id)
        if applied and operation_hash is not None:
            self._hashes.add(operation_hash)


def load_did(session: Session, suffix: str) -> Did | None:
    """The DID of a suffix, by its applied operations; `None` when it was never created."""
    rows = session.run(
        "SELECT atala_operation_content FROM atala_operations "
        "WHERE created_did_suffix = ? AND atala_operation_status = 'APPLIED'",
        (suffix,),
    )
    if not rows:
        return None
    rows += session.run(
        "SELECT atala_operation_content FROM atala_operations WHERE atala_operation_did_suffix = ? "
        "AND atala_operation_status = 'APPLIED' AND atala_operation_type IN ('UPDATE_DID', 'DEACTIVATE_DID') "
        "ORDER BY atala_operation_seq_no",
        (suffix,),
    )
    did: Did | None = None
    for (content,) in rows:
        signed = _operation(bytes(content))
        if signed.operation is not None:
            did = effect(did, signed.operation, sha256(signed.raw))
    return did


def load_batch(session: Session, batch_id: str) -> Batch | None:
    """The batch of an id, by its applied operations; `None` when it was never issued."""
    rows = session.run(
        "SELECT atala_operation_did_suffix, atala_operation_content FROM atala_operations "
        "WHERE credential_batch_id = ? AND atala_operation_status = 'APPLIED' ORDER BY atala_operation_seq_no",
        (batch_id,),
    )
    batch: Batch | None = None
    for issuer, content in rows:
        operation = _operation(bytes(content))
        if isinstance(operation.operation, IssueCredentialBatch):
            data = operation.operation.credential_batch_data
            root = b"" if data is None else data.merkle_root
            batch = Batch(issuer, root, sha256(operation.raw))
        elif isinstance(operation.operation, RevokeCredentials) and batch is not None:
            batch = revoked(batch, operation.operation)
    return batch


def _operation(content: bytes) -> AtalaOperation:
    return decode(SignedAtalaOperation, content).operation or AtalaOperation()


def _put(kept: OrderedDict[str, T], changed: dict[str, T], size: int) -> None:
    for name, value in changed.items():
        kept[name] = value
        kept.move_to_end(name)
    while len(kept) > size:
        kept.popitem(last=False)


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))

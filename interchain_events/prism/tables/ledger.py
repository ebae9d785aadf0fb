"""DIDs and batches, derived from the rows of applied operations.

The state is not stored in any other form. A DID is its CREATE_DID with the operations that were
applied to it since, and a batch is its ISSUE_CREDENTIAL_BATCH with its revocations. Both are found
by index and cached while they are in use. So after a rewind has removed rows, the state is right
again without further work.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from interchain_events.database.database import Session
from interchain_events.prism.core import messages as m
from interchain_events.prism.core.identifiers import sha256
from interchain_events.prism.core.ledger import MemoryLedger
from interchain_events.prism.core.process import Examined, effect
from interchain_events.prism.core.state import Batch, Did, StorageEntry, revoked

T = TypeVar("T")

KEPT: Final = 20_000
"""The greatest number of cached DIDs, and of cached batches."""
_CHUNK: Final = 400
"""The greatest number of parameters in one statement."""
_APPLIED: Final = "atala_operations WHERE atala_operation_status = 'APPLIED' AND"
"""The table and the condition of applied operations, for the beginning of a WHERE clause."""


class Kept:
    """The cache that transactions share: DIDs and batches of committed rows.

    Those that were not used for the longest time are dropped first.
    """

    def __init__(self, size: int = KEPT) -> None:
        self._size = size
        self.dids: OrderedDict[str, Did] = OrderedDict()
        self.batches: OrderedDict[str, Batch] = OrderedDict()

    def clear(self) -> None:
        """Forget everything, because rows were removed."""
        self.dids.clear()
        self.batches.clear()

    def put(self, kept: OrderedDict[str, T], changed: dict[str, T]) -> None:
        """Cache the values that a committed transaction has changed, in `dids` or `batches`."""
        for name, value in changed.items():
            kept[name] = value
            kept.move_to_end(name)
        while len(kept) > self._size:
            kept.popitem(last=False)


class SqlLedger(MemoryLedger):
    """The ledger of the tables for one transaction.

    `dids` and `batches` have the values that this transaction has changed. They go into the cache
    when it is committed.
    """

    def __init__(self, session: Session, kept: Kept) -> None:
        super().__init__()
        self._session = session
        self._kept = kept
        self._no_batches: set[str] = set()
        """Batches that no row issues, so that a new batch does not need a query of its own."""

    def look_up(self, operations: Sequence[Examined]) -> None:
        """Load which of these operations were applied before, in few queries.

        Only these operations may then be asked about.
        """
        applied = self._chosen(
            f"SELECT signed_atala_operation_id, operation_hash FROM {_APPLIED} operation_hash IN"
            " ({})",
            [each.hash for each in operations if each.hash is not None],
        )
        for operation_id, operation_hash in applied:
            self.note(bytes(operation_id), bytes(operation_hash), applied=True)
        named = {each.batch_id for each in operations if each.batch_id is not None}
        unknown = [each for each in sorted(named) if each not in self._kept.batches]
        batches = (
            f"SELECT DISTINCT credential_batch_id FROM {_APPLIED} credential_batch_id IN ({{}})"
        )
        issued = self._chosen(batches, unknown)
        self._no_batches |= {*unknown} - {each for (each,) in issued}

    def _chosen(self, statement: str, values: Sequence[object]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a statement with `IN ({})` for all these values."""
        for at in range(0, len(values), _CHUNK):
            chunk = values[at : at + _CHUNK]
            yield from self._session.run(statement.format(", ".join("?" * len(chunk))), chunk)

    def did(self, suffix: str) -> Did | None:
        return self.dids.get(suffix) or self._load(self._kept.dids, load_did, suffix)

    def batch(self, batch_id: str) -> Batch | None:
        found = self.batches.get(batch_id)
        return (
            found
            if found or batch_id in self._no_batches
            else self._load(self._kept.batches, load_batch, batch_id)
        )

    def entry_id(self, operation_hash: bytes) -> str | None:
        if operation_hash in self.entry_ids:
            return self.entry_ids[operation_hash]
        found = self._session.run(
            f"SELECT storage_entry_id FROM {_APPLIED} operation_hash = ?", (operation_hash,)
        )
        entry_id: str | None = found[0][0] if found else None
        return entry_id

    def entry(self, entry_id: str) -> StorageEntry | None:
        return self.entries.get(entry_id) or load_entry(self._session, entry_id)

    def _load(
        self, kept: OrderedDict[str, T], load: Callable[[Session, str], T | None], name: str
    ) -> T | None:
        """Return a value from the cache or from the rows, `None` if there is none."""
        if name not in kept:
            found = load(self._session, name)
            if found is None:
                return None
            self._kept.put(kept, {name: found})
        kept.move_to_end(name)
        return kept[name]

    def is_rejected(self, operation_id: bytes) -> bool:
        """Return whether an operation was rejected before.

        This asks the tables, which is rare: only an operation that is rejected now needs it.
        """
        row = (
            "atala_operations WHERE signed_atala_operation_id = ? AND atala_operation_status ="
            " 'REJECTED'"
        )
        return operation_id in self.rejected or bool(
            self._session.run(f"SELECT 1 FROM {row}", (operation_id,))
        )


def load_did(session: Session, suffix: str) -> Did | None:
    """Return a DID from its applied operations, `None` if it was never created."""
    rows = session.run(
        f"SELECT atala_operation_content FROM {_APPLIED} created_did_suffix = ?", (suffix,)
    )
    if not rows:
        return None
    rows += session.run(
        f"SELECT atala_operation_content FROM {_APPLIED} atala_operation_did_suffix = ? AND"
        " atala_operation_type IN ('UPDATE_DID', 'DEACTIVATE_DID') ORDER BY"
        " atala_operation_seq_no",
        (suffix,),
    )
    did: Did | None = None
    for (content,) in rows:
        signed = _operation(bytes(content))
        if signed.operation is not None:
            did = effect(did, signed.operation, sha256(signed.raw))
    return did


def load_batch(session: Session, batch_id: str) -> Batch | None:
    """Return a batch from its applied operations, `None` if it was never issued."""
    rows = session.run(
        "SELECT atala_operation_did_suffix, atala_operation_content "
        f"FROM {_APPLIED} credential_batch_id = ? ORDER BY atala_operation_seq_no",
        (batch_id,),
    )
    batch: Batch | None = None
    for issuer, content in rows:
        operation = _operation(bytes(content))
        if isinstance(operation.operation, m.IssueCredentialBatch):
            data = operation.operation.credential_batch_data
            root = b"" if data is None else data.merkle_root
            batch = Batch(issuer, root, sha256(operation.raw))
        elif isinstance(operation.operation, m.RevokeCredentials) and batch is not None:
            batch = revoked(batch, operation.operation)
    return batch


def load_entry(session: Session, entry_id: str) -> StorageEntry | None:
    """Return a storage entry from its last applied operations, `None` if it was never created.

    Each update replaces the data. So the last operation tells the state, and after an end the one
    before it tells the data.
    """
    rows = session.run(
        "SELECT atala_operation_did_suffix, atala_operation_content "
        f"FROM {_APPLIED} storage_entry_id = ? ORDER BY atala_operation_seq_no DESC LIMIT 2",
        (entry_id,),
    )
    entry: StorageEntry | None = None
    for owner, content in reversed(rows):
        operation = _operation(bytes(content))
        operation_hash = sha256(operation.raw)
        match operation.operation:
            case m.CreateStorageEntry(_, _, data) | m.UpdateStorageEntry(_, data):
                entry = StorageEntry(owner, operation_hash, b"" if data is None else data)
            case m.DeactivateStorageEntry() if entry is not None:
                entry = entry._replace(last_hash=operation_hash, active=False)
            case _:
                pass
    return entry


def _operation(content: bytes) -> m.AtalaOperation:
    """Return the AtalaOperation in the bytes of a SignedAtalaOperation."""
    return m.decode(m.SignedAtalaOperation, content).operation or m.AtalaOperation()

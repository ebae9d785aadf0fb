"""DIDs and batches, derived from the rows of applied operations.

The state is not stored in any other form. A DID is its CREATE_DID and the operations applied to it
since, and a batch is its ISSUE_CREDENTIAL_BATCH and its revocations. So when a rewind removes rows,
the state is right again without further work. The rows are found by index, and DIDs and batches in
use are cached.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from interchain_events.database.database import Session
from interchain_events.prism.core import messages as m
from interchain_events.prism.core.identifiers import sha256
from interchain_events.prism.core.ledger import MemoryLedger
from interchain_events.prism.core.process import ExaminedOperation, effect
from interchain_events.prism.core.state import Batch, Did, StorageEntry, revoked

T = TypeVar("T")

MOST_CACHED: Final = 20_000
"""The greatest number of cached DIDs, and of cached batches."""
_CHUNK: Final = 400
"""The greatest number of parameters in one statement."""
_APPLIED: Final = "atala_operations WHERE atala_operation_status = 'APPLIED' AND"
"""The table of operations and the beginning of a condition on applied ones."""


class LedgerCache:
    """The cache of DIDs and batches, made of committed rows and shared by transactions.

    Those that have not been used for the longest time are dropped first.
    """

    def __init__(self, size: int = MOST_CACHED) -> None:
        self._size = size
        self.dids: OrderedDict[str, Did] = OrderedDict()
        self.batches: OrderedDict[str, Batch] = OrderedDict()

    def clear(self) -> None:
        """Forget everything. This is necessary when rows are removed."""
        self.dids.clear()
        self.batches.clear()

    def put(self, cache: OrderedDict[str, T], changed: dict[str, T]) -> None:
        """Put the values that a committed transaction has changed into `dids` or `batches`."""
        for name, value in changed.items():
            cache[name] = value
            cache.move_to_end(name)
        while len(cache) > self._size:
            cache.popitem(last=False)


class SqlLedger(MemoryLedger):
    """The ledger of one transaction, over the tables.

    `dids` and `batches` have the values that this transaction has changed. After its commit they
    are cached.
    """

    def __init__(self, session: Session, cache: LedgerCache) -> None:
        super().__init__()
        self._session = session
        self._cache = cache
        self._no_batches: set[str] = set()
        """Batches known not to be in the tables, so that each new batch does not need a query."""

    def look_up(self, operations: Sequence[ExaminedOperation]) -> None:
        """Find out with few queries which of these operations have been applied before.

        The ledger may then be used only for these operations.
        """
        applied = self._chosen(
            f"SELECT signed_atala_operation_id, operation_hash FROM {_APPLIED} operation_hash IN"
            " ({})",
            [operation.hash for operation in operations if operation.hash is not None],
        )
        for operation_id, operation_hash in applied:
            self.note(bytes(operation_id), bytes(operation_hash), applied=True)
        named = {operation.batch_id for operation in operations if operation.batch_id is not None}
        unknown = [batch_id for batch_id in sorted(named) if batch_id not in self._cache.batches]
        batches = (
            f"SELECT DISTINCT credential_batch_id FROM {_APPLIED} credential_batch_id IN ({{}})"
        )
        issued = self._chosen(batches, unknown)
        self._no_batches |= {*unknown} - {batch_id for (batch_id,) in issued}

    def _chosen(self, statement: str, values: Sequence[object]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a statement with `IN ({})`, run for `_CHUNK` values at a time."""
        for start in range(0, len(values), _CHUNK):
            chunk = values[start : start + _CHUNK]
            yield from self._session.run(statement.format(", ".join("?" * len(chunk))), chunk)

    def did(self, suffix: str) -> Did | None:
        return self.dids.get(suffix) or self._load(self._cache.dids, load_did, suffix)

    def batch(self, batch_id: str) -> Batch | None:
        changed = self.batches.get(batch_id)
        if changed is not None or batch_id in self._no_batches:
            return changed
        return self._load(self._cache.batches, load_batch, batch_id)

    def entry_id(self, operation_hash: bytes) -> str | None:
        if operation_hash in self.entry_ids:
            return self.entry_ids[operation_hash]
        rows = self._session.run(
            f"SELECT storage_entry_id FROM {_APPLIED} operation_hash = ?", (operation_hash,)
        )
        entry_id: str | None = rows[0][0] if rows else None
        return entry_id

    def entry(self, entry_id: str) -> StorageEntry | None:
        return self.entries.get(entry_id) or load_entry(self._session, entry_id)

    def _load(
        self, cache: OrderedDict[str, T], load: Callable[[Session, str], T | None], name: str
    ) -> T | None:
        """Return a value from the cache or from the rows, `None` if there is none."""
        if name not in cache:
            value = load(self._session, name)
            if value is None:
                return None
            self._cache.put(cache, {name: value})
        cache.move_to_end(name)
        return cache[name]

    def is_rejected(self, operation_id: bytes) -> bool:
        """Return whether an operation was rejected before.

        This reads the tables. It is rare, because only operations that are rejected need it.
        """
        if operation_id in self.rejected:
            return True
        rows = self._session.run(
            "SELECT 1 FROM atala_operations WHERE signed_atala_operation_id = ? AND"
            " atala_operation_status = 'REJECTED'",
            (operation_id,),
        )
        return bool(rows)


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

    Each update replaces the data, so the last operation has the state. If it has ended the entry,
    the operation before it has the data.
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

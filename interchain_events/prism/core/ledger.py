"""The state that the processing of operations reads and writes, without a database.

`tables.ledger` has the same over the tables of a database.
"""

from dataclasses import dataclass, field

from interchain_events.prism.core.state import Batch, Did, StorageEntry


@dataclass(slots=True)
class MemoryLedger:
    """A ledger in memory."""

    dids: dict[str, Did] = field(default_factory=dict)
    """The DIDs by suffix."""
    batches: dict[str, Batch] = field(default_factory=dict)
    """The credential batches by id."""
    entries: dict[str, StorageEntry] = field(default_factory=dict)
    """The storage entries by id."""
    entry_ids: dict[bytes, str] = field(default_factory=dict)
    """The entry of each applied storage operation, by the operation's hash."""
    applied_hashes: set[bytes] = field(default_factory=set)
    """The hashes of the applied AtalaOperations."""
    applied: set[bytes] = field(default_factory=set)
    """The ids of the applied operations."""
    rejected: set[bytes] = field(default_factory=set)
    """The ids of the rejected operations."""

    def did(self, suffix: str) -> Did | None:
        """Return a DID by its suffix, `None` if there is none."""
        return self.dids.get(suffix)

    def batch(self, batch_id: str) -> Batch | None:
        """Return a batch by its id, `None` if there is none."""
        return self.batches.get(batch_id)

    def entry_id(self, operation_hash: bytes) -> str | None:
        """Return the id of the storage entry that an applied operation created or changed.

        Returns `None` if there is no such operation.
        """
        return self.entry_ids.get(operation_hash)

    def entry(self, entry_id: str) -> StorageEntry | None:
        """Return a storage entry by its id, `None` if there is none."""
        return self.entries.get(entry_id)

    def is_rejected(self, operation_id: bytes) -> bool:
        """Return whether an operation was rejected before."""
        return operation_id in self.rejected

    def note(self, operation_id: bytes, operation_hash: bytes | None, *, applied: bool) -> None:
        """Record that an operation was applied or rejected."""
        if not applied:
            self.rejected.add(operation_id)
            return
        self.applied.add(operation_id)
        if operation_hash is not None:
            self.applied_hashes.add(operation_hash)

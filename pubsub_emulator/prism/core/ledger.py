"""The state that processing reads and writes: without a database here, over the tables in `tables.ledger`."""

from dataclasses import dataclass, field

from pubsub_emulator.prism.core.state import Batch, Did


@dataclass(slots=True)
class MemoryLedger:
    """A ledger without a database."""

    dids: dict[str, Did] = field(default_factory=dict)
    batches: dict[str, Batch] = field(default_factory=dict)
    applied_hashes: set[bytes] = field(default_factory=set)
    applied: set[bytes] = field(default_factory=set)
    rejected: set[bytes] = field(default_factory=set)

    def did(self, suffix: str) -> Did | None:
        """A DID by its suffix."""
        return self.dids.get(suffix)

    def batch(self, batch_id: str) -> Batch | None:
        """A batch by its id."""
        return self.batches.get(batch_id)

    def is_rejected(self, operation_id: bytes) -> bool:
        """Whether this operation was rejected."""
        return operation_id in self.rejected

    def note(self, operation_id: bytes, operation_hash: bytes | None, *, applied: bool) -> None:
        """Record that an operation was applied or rejected."""
        (self.applied if applied else self.rejected).add(operation_id)
        if applied and operation_hash is not None:
            self.applied_hashes.add(operation_hash)

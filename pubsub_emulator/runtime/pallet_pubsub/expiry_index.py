"""The `expiry_index` policy: rows are also stored by expiry block, so a sweep reads due rows only (PS-19).

The first 8 bytes of a row's key are its expiry block, big endian: the order of storage keys is the order of time. The
lag of a sweep then depends on how many rows are due and not on how many there are. It costs up to two more writes a
publish.
"""

from pubsub_emulator.primitives.types import ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_pubsub import weights
from pubsub_emulator.runtime.pallet_pubsub.config import Config, TtlPolicy
from pubsub_emulator.runtime.pallet_pubsub.storage import ExpiryIndex, TtlData, TtlLapMark, TtlRow, TtlScanCursor

_SKIP = len(ExpiryIndex.prefix)


class Due:
    """The rows that are due at block `now`, in order of their expiry; within one block by publisher and key."""

    def __init__(self, storage: Storage, now: RelayBlockNumber) -> None:
        """Start at the row with the oldest expiry."""
        self._rows = storage.next_keys(ExpiryIndex.prefix)
        self._now = now
        self._read = 0

    def next(self) -> TtlRow | None:
        """The next row, or `None` if no further row is due. The caller removes it, so no cursor is needed."""
        full = next(self._rows, None)
        self._read += 1
        if full is None:
            return None
        expiry = int.from_bytes(full[_SKIP : _SKIP + 8], "big")
        if expiry > self._now:
            return None
        return TtlRow(ParaId(int.from_bytes(full[-36:-32], "little")), PubsubKey(full[-32:]), expiry)

    def cost(self) -> Weight:
        """The weight of finding the rows so far."""
        return weights.examine_row() * self._read

    def save(self) -> None:
        """Does nothing: due rows come first."""


def migrate(config: Config, storage: Storage) -> Weight:
    """Make the index match the policy. A runtime upgrade that changes the policy calls this once.

    Without it, entries published under `scan` would have no index row and never expire. Returns its weight, which
    grows with the number of finite entries and may need a block of its own.
    """
    if config.ttl_policy is not TtlPolicy.EXPIRY_INDEX:
        removed = storage.clear_prefix(ExpiryIndex.prefix)
        return weights.READ * removed + weights.WRITE * removed
    TtlScanCursor.kill(storage)
    marks = TtlLapMark.clear(storage)
    rows = 0
    for para, key, (ttl, when_inserted) in TtlData.rows(storage):
        ExpiryIndex.insert(storage, when_inserted + ttl, (para, key), None)
        rows += 1
    return (weights.READ + weights.WRITE) * (rows + marks + 1)


def worst_step() -> Weight:
    """The most weight of finding one more row."""
    return weights.examine_row()

"""The sweep, in which `on_idle` removes expired entries (PS-19).

It has limits of rows and weight, and the order of a policy. The policy `scan` has a module of its
own.

With the policy `expiry_index`, rows are also stored by expiry block, so a sweep reads due rows
only. The first 8 bytes of a row's key are its expiry block, big endian, so storage-key order is the
order of time. The lag of a sweep then depends on the number of due rows and not on the number of
all rows. This costs up to two more writes per publish.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol

from pubsub_emulator.primitives.types import ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight
from pubsub_emulator.runtime.framework.events import deposit
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_pubsub import scan, weights
from pubsub_emulator.runtime.pallet_pubsub import storage as items
from pubsub_emulator.runtime.pallet_pubsub.config import Config, TtlPolicy
from pubsub_emulator.runtime.pallet_pubsub.events import KeyExpired
from pubsub_emulator.runtime.pallet_pubsub.publish import remove_key
from pubsub_emulator.runtime.pallet_pubsub.storage import ExpiryIndex, TtlData, TtlRow, rows_of
from pubsub_emulator.runtime.rules import Row

_SKIP = len(ExpiryIndex.prefix)


class Due:
    """The rows that are due at block `now`, in the order of their expiry.

    Within one block they are ordered by publisher and key.
    """

    def __init__(self, storage: Storage, now: RelayBlockNumber) -> None:
        """Start at the row with the oldest expiry."""
        self._rows = storage.next_keys(ExpiryIndex.prefix)
        self._now = now
        self._read = 0

    def next(self) -> TtlRow | None:
        """Return the next row, or `None` if no further row is due.

        The caller removes the row, so no cursor is needed.
        """
        full = next(self._rows, None)
        self._read += 1
        if full is None:
            return None
        expiry = int.from_bytes(full[_SKIP : _SKIP + 8], "big")
        if expiry > self._now:
            return None
        return TtlRow(
            ParaId(int.from_bytes(full[-36:-32], "little")), PubsubKey(full[-32:]), expiry
        )

    def cost(self) -> Weight:
        """Return the weight of finding the rows so far."""
        return weights.examine_row() * self._read

    def save(self) -> None:
        """Do nothing, because each sweep begins with the oldest due row."""


def migrate(config: Config, storage: Storage) -> Weight:
    """Make the index match the policy.

    A runtime upgrade that changes the policy calls this once. Without it, entries published under
    `scan` would have no index row and never expire. Returns the weight, which grows with the number
    of finite entries. The migration may thus need a block of its own.
    """
    if config.ttl_policy is not TtlPolicy.EXPIRY_INDEX:
        removed = storage.clear_prefix(ExpiryIndex.prefix)
        return weights.READ * removed + weights.WRITE * removed
    items.TtlScanCursor.kill(storage)
    marks = items.TtlLapMark.clear(storage)
    rows = 0
    for para, key, (ttl, when_inserted) in TtlData.rows(storage):
        ExpiryIndex.insert(storage, when_inserted + ttl, (para, key), None)
        rows += 1
    return (weights.READ + weights.WRITE) * (rows + marks + 1)


@dataclass(frozen=True, slots=True)
class Sweep:
    """The result of one sweep."""

    examined: int = 0
    expired: int = 0
    lag: int = 0
    """The maximum number of blocks for which a removed entry had outlived its ttl."""
    weight: Weight = WEIGHT_ZERO


NOTHING: Final = Sweep()


class SweepRows(Protocol):
    """The rows of one sweep, in the order of a policy."""

    def next(self) -> TtlRow | None:
        """Return the next row to examine, or `None` at the end."""

    def cost(self) -> Weight:
        """Return the weight of finding the rows so far."""

    def save(self) -> None:
        """Store the position for the next sweep."""


def sweep(config: Config, storage: Storage, now: RelayBlockNumber, remaining: Weight) -> Sweep:
    """Remove expired entries within `remaining` weight (PS-15).

    At most `MaxTtlScansPerIdle` rows are examined. A row is examined only if reading and expiring
    it would fit. If not even one fits, nothing is read or written.

    Emits `KeyExpired` for each removed entry (PS-16).
    """
    base, expire, step = _costs(config)
    if (base + step).any_gt(remaining):
        return NOTHING
    rules = config.rules
    rows: SweepRows
    if rules.order is not None:
        rows = _Ordered(rules.order, storage, now)
    elif config.ttl_policy is TtlPolicy.EXPIRY_INDEX:
        rows = Due(storage, now)
    else:
        rows = scan.Lap(storage, config.max_stored_keys)
    due = rules.expired
    examined = expired = lag = 0
    spent = base
    while certain := min(config.max_ttl_scans_per_idle - examined, _times(remaining - spent, step)):
        row = None
        # `certain` rows fit at their maximum cost, so the weight is computed only after them.
        for _ in range(certain):
            row = rows.next()
            if row is None:
                break
            examined += 1
            if row.expiry <= now if due is None else due(row.expiry, now):
                remove_key(config, storage, rows_of(row.para), row.key)
                deposit(storage, KeyExpired(row.para, row.key))
                expired += 1
                lag = max(lag, now - row.expiry)
        spent = base + rows.cost() + expire * expired
        if row is None:
            break
    rows.save()
    return Sweep(examined, expired, lag, spent)


class _Ordered:
    """Rows in the order of a rule, which each sweep follows from its beginning.

    A row that is not stored is skipped.
    """

    def __init__(
        self,
        order: Callable[[Iterable[Row], int], Iterable[Row]],
        storage: Storage,
        now: RelayBlockNumber,
    ) -> None:
        rows = (Row(para, key, sum(lifetime)) for para, key, lifetime in TtlData.rows(storage))
        self._rows = iter(order(rows, now))
        self._storage = storage
        self._read = 0

    def next(self) -> TtlRow | None:
        """Return the next row, or `None` at the end."""
        for para, key, _ in self._rows:
            self._read += 1
            lifetime = TtlData.get(self._storage, ParaId(para), PubsubKey(key))
            if lifetime is not None:
                return TtlRow(ParaId(para), PubsubKey(key), sum(lifetime))
        return None

    def cost(self) -> Weight:
        """Return the weight of reading the rows; ordering them costs nothing."""
        return weights.examine_row() * self._read

    def save(self) -> None:
        """Do nothing, because the rule orders all rows each time."""


def least_weight(config: Config) -> Weight:
    """Return the minimum weight with which a sweep does anything.

    It suffices to expire one row.
    """
    base, _, step = _costs(config)
    return base + step


# Every block needs the costs.
@lru_cache(maxsize=64)
def _costs(config: Config) -> tuple[Weight, Weight, Weight]:
    """Return the weights of the parts of a sweep.

    They are the weight of a sweep that examines nothing, that of expiring a key, and the maximum
    that one more row can cost.
    """
    find = (
        weights.examine_row() if config.ttl_policy is TtlPolicy.EXPIRY_INDEX else scan.worst_step()
    )
    expire = weights.expire_key(config)
    return weights.on_idle_base(), expire, find + expire


def _times(room: Weight, step: Weight) -> int:
    """Return the number of times that `step` fits into `room`."""
    return min(room.ref_time // step.ref_time, room.proof_size // step.proof_size)

"""The sweep: `on_idle` removes expired entries, within limits of rows and weight."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol

from pubsub_emulator.primitives.types import ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight
from pubsub_emulator.runtime.framework.events import deposit
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_pubsub import expiry_index, scan, weights
from pubsub_emulator.runtime.pallet_pubsub.config import Config, TtlPolicy
from pubsub_emulator.runtime.pallet_pubsub.events import KeyExpired
from pubsub_emulator.runtime.pallet_pubsub.publish import remove_key
from pubsub_emulator.runtime.pallet_pubsub.storage import TtlData, TtlRow, rows_of
from pubsub_emulator.runtime.rules import Row


@dataclass(frozen=True, slots=True)
class Sweep:
    """The result of one sweep; `lag` is the most blocks by which a removed entry had outlived its ttl."""

    examined: int = 0
    expired: int = 0
    lag: int = 0
    weight: Weight = WEIGHT_ZERO


NOTHING: Final = Sweep()


class Rows(Protocol):
    """The rows of one sweep, in the order of a policy."""

    def next(self) -> TtlRow | None:
        """The next row to examine, or `None` at the end."""

    def cost(self) -> Weight:
        """The weight of finding the rows so far."""

    def save(self) -> None:
        """Store the position for the next sweep."""


def sweep(config: Config, storage: Storage, now: RelayBlockNumber, remaining: Weight) -> Sweep:
    """Remove expired entries, examining at most `MaxTtlScansPerIdle` rows within `remaining` weight (PS-15).

    A row is examined only if reading and expiring it would fit. If not even one fits, nothing is read or written.

    Emits `KeyExpired` for each entry removed (PS-16).
    """
    base, expire, step = _costs(config)
    if (base + step).any_gt(remaining):
        return NOTHING
    rules = config.rules
    rows: Rows
    if rules.order is not None:
        rows = _Ordered(rules.order, storage, now)
    elif config.ttl_policy is TtlPolicy.EXPIRY_INDEX:
        rows = expiry_index.Due(storage, now)
    else:
        rows = scan.Lap(storage, config.max_stored_keys)
    due = rules.expired
    examined = expired = lag = 0
    spent = base
    while sure := min(config.max_ttl_scans_per_idle - examined, _times(remaining - spent, step)):
        row = None
        for _ in range(sure):  # that many fit at their highest cost, so weight is counted once for all of them
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
    """Rows in the order of a rule, which begins anew with each sweep; a row that is not stored is left out."""

    def __init__(
        self, order: Callable[[Iterable[Row], int], Iterable[Row]], storage: Storage, now: RelayBlockNumber
    ) -> None:
        rows = (Row(para, key, sum(lifetime)) for para, key, lifetime in TtlData.rows(storage))
        self._rows = iter(order(rows, now))
        self._storage = storage
        self._read = 0

    def next(self) -> TtlRow | None:
        """The next row, or `None` at the end."""
        for para, key, _ in self._rows:
            self._read += 1
            lifetime = TtlData.get(self._storage, ParaId(para), PubsubKey(key))
            if lifetime is not None:
                return TtlRow(ParaId(para), PubsubKey(key), sum(lifetime))
        return None

    def cost(self) -> Weight:
        """The weight of reading the rows; ordering them costs nothing."""
        return weights.examine_row() * self._read

    def save(self) -> None:
        """Does nothing: the rule orders all rows each time."""


def least_weight(config: Config) -> Weight:
    """The least weight with which a sweep does anything: enough to expire one row."""
    base, _, step = _costs(config)
    return base + step


@lru_cache(maxsize=64)  # asked for in every block
def _costs(config: Config) -> tuple[Weight, Weight, Weight]:
    """The weights of a sweep that examines nothing, of expiring a key, and the most that one more row can cost."""
    found = expiry_index.worst_step() if config.ttl_policy is TtlPolicy.EXPIRY_INDEX else scan.worst_step()
    expire = weights.expire_key(config)
    return weights.on_idle_base(), expire, found + expire


def _times(room: Weight, step: Weight) -> int:
    """The number of times that `step` fits into `room`."""
    return min(room.ref_time // step.ref_time, room.proof_size // step.proof_size)

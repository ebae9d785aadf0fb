"""The sweep: what `on_idle` does about entries whose time has come, under a limit of rows and of weight."""

from dataclasses import dataclass
from typing import Final, Protocol

from primitives.types import RelayBlockNumber
from primitives.weights import WEIGHT_ZERO, Weight
from runtime.events import deposit
from runtime.pallet_pubsub import expiry_index, scan, weights
from runtime.pallet_pubsub.config import Config, TtlPolicy
from runtime.pallet_pubsub.events import KeyExpired
from runtime.pallet_pubsub.publish import remove_key
from runtime.pallet_pubsub.storage import TtlRow, rows_of
from runtime.storage import Storage


@dataclass(frozen=True, slots=True)
class Sweep:
    """What one sweep did; `lag` is the most blocks that an entry removed here had outlived its time."""

    examined: int = 0
    expired: int = 0
    lag: int = 0
    weight: Weight = WEIGHT_ZERO


NOTHING: Final = Sweep()


class Rows(Protocol):
    """The rows of one sweep in the order of a policy."""

    cost: Weight

    def next(self) -> TtlRow | None:
        """The next row to examine, none when there is no more."""

    def save(self) -> None:
        """Keep what the next sweep needs to go on."""


def sweep(config: Config, storage: Storage, now: RelayBlockNumber, remaining: Weight) -> Sweep:
    """Remove expired entries, examining at most `MaxTtlScansPerIdle` rows within `remaining` weight (PS-15).

    A row is begun only if reading it and expiring it would fit; where not even one does, nothing is touched.

    Emits `KeyExpired` for each entry removed (PS-16).
    """
    if least_weight(config).any_gt(remaining):
        return NOTHING
    spent = weights.on_idle_base()
    expire = weights.expire_key(config)
    step = _worst_step(config)
    by_index = config.ttl_policy is TtlPolicy.EXPIRY_INDEX
    rows: Rows = expiry_index.Due(storage, now) if by_index else scan.Lap(storage, config.max_stored_keys)
    examined = expired = lag = 0
    while examined < config.max_ttl_scans_per_idle and (spent + rows.cost + step).all_lte(remaining):
        row = rows.next()
        if row is None:
            break
        examined += 1
        if row.expiry <= now:
            remove_key(config, storage, rows_of(row.para), row.key)
            deposit(storage, KeyExpired(row.para, row.key))
            spent += expire
            expired += 1
            lag = max(lag, now - row.expiry)
    rows.save()
    return Sweep(examined, expired, lag, spent + rows.cost)


def least_weight(config: Config) -> Weight:
    """Below this a sweep does nothing: it could not be sure of expiring one row."""
    return weights.on_idle_base() + _worst_step(config)


def _worst_step(config: Config) -> Weight:
    found = expiry_index.worst_step() if config.ttl_policy is TtlPolicy.EXPIRY_INDEX else scan.worst_step()
    return found + weights.expire_key(config)

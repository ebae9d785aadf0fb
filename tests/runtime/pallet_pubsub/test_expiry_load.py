"""Expiry under load, with thousands of rows: lag bounds of both policies, and a change of policy (PS-15, PS-19)."""

from support.pallet_pubsub.world import World, both_policies, numbered

from pubsub_emulator.primitives.pubsub import PublishedEntry
from pubsub_emulator.primitives.types import ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.primitives.weights import WEIGHT_MAX
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_pubsub import Config, GenesisPublisher, TtlPolicy, genesis_rows
from pubsub_emulator.runtime.pallet_pubsub.events import KeyExpired
from pubsub_emulator.runtime.pallet_pubsub.expiry import sweep
from pubsub_emulator.runtime.pallet_pubsub.storage import TtlLapMark, TtlScanCursor

ROWS, PER_PUBLISHER = 4000, 500
KEYS = numbered(PER_PUBLISHER)


def loaded(policy: TtlPolicy, lifetime_of: list[int], scans: int = 500) -> tuple[World, dict[tuple[int, bytes], int]]:
    """A world at block 0 with these lifetimes published, and when each entry is due."""
    config = Config(ttl_policy=policy, max_ttl_scans_per_idle=scans)
    due: dict[tuple[int, bytes], int] = {}
    publishers: dict[ParaId, list[tuple[PubsubKey, PublishedEntry]]] = {}
    for i, ttl in enumerate(lifetime_of):
        para, key = ParaId(i // PER_PUBLISHER), KEYS[i % PER_PUBLISHER]
        publishers.setdefault(para, []).append((key, PublishedEntry(b"v", ttl, RelayBlockNumber(0))))
        due[para, key] = ttl
    world = World(config)
    genesis = {para: GenesisPublisher(entries) for para, entries in publishers.items()}
    world.storage = Storage(State.from_entries(*genesis_rows(config, genesis)))
    return world, due


def lags(world: World, due: dict[tuple[int, bytes], int], blocks: int, first: int = 1) -> list[int]:
    """How late each entry went, over this many blocks."""
    out = []
    for number in range(first, first + blocks):
        world.at(number).idle()
        for event in world.events():
            assert isinstance(event, KeyExpired)
            out.append(number - due.pop((event.publisher, event.key)))
        world.root()
    return out


def test_a_scan_is_late_by_at_most_one_lap_of_the_table_ps19() -> None:
    world, due = loaded(TtlPolicy.SCAN, [1 + i * 7919 % 40 for i in range(ROWS)])
    late = lags(world, due, 40 + 8)
    assert due == {}
    assert 0 <= min(late) < max(late) <= ROWS // 500
    world.try_state()


def test_the_lag_of_a_scan_follows_the_table_and_not_what_is_due_ps19() -> None:
    world, due = loaded(TtlPolicy.SCAN, [5 if i % 100 == 0 else 10**6 for i in range(ROWS)], scans=100)
    late = lags(world, due, 5 + 41)
    assert len(late) == 40
    assert max(late) <= ROWS // 100
    assert max(late) > ROWS // 200


@both_policies
def test_a_change_of_policy_loses_no_expiry_ps19(policy: TtlPolicy) -> None:
    world, _ = loaded(policy, [1 + i % 3 for i in range(600)], scans=50)
    world.at(1).idle()
    other = next(each for each in TtlPolicy if each is not policy)
    changed = World(Config(ttl_policy=other))
    changed.storage = world.storage
    if policy is TtlPolicy.SCAN:
        TtlLapMark.insert(world.storage, ParaId(0), KEYS[0])
        assert TtlScanCursor.exists(world.storage)
    assert changed.pallet.on_runtime_upgrade(changed.storage).all_lte(WEIGHT_MAX)
    changed.try_state()
    if policy is TtlPolicy.SCAN:
        assert not TtlScanCursor.exists(world.storage)
        assert not TtlLapMark.contains(world.storage, ParaId(0))
    before = changed.root()
    changed.pallet.on_runtime_upgrade(changed.storage)
    assert changed.root() == before
    changed.at(3)
    while sweep(changed.config, changed.storage, RelayBlockNumber(3), WEIGHT_MAX).expired:
        pass
    assert changed.ttl_rows() == 0
    changed.try_state()

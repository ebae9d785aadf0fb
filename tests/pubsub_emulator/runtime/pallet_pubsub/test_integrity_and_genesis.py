"""Configurations that cannot work and states that disagree are refused; a genesis in bulk is as one
by one.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.runtime.pallet_pubsub.world import (
    ALICE,
    BOB,
    MOCK,
    World,
    both_policies,
    name,
    numbered,
)

from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key
from pubsub_emulator.primitives.types import U32_MAX, ParaId, RelayBlockNumber
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.hooks import IntegrityError, StateError
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_pubsub import (
    Config,
    GenesisPublisher,
    TtlPolicy,
    genesis_rows,
    weights,
)
from pubsub_emulator.runtime.pallet_pubsub.pallet import integrity_test
from pubsub_emulator.runtime.pallet_pubsub.registry import PUBLISHER_DEPOSIT
from pubsub_emulator.runtime.pallet_pubsub.storage import (
    CounterForRegisteredPublishers,
    ExpiryIndex,
    PublishedKeys,
    TotalStorageSize,
    TtlData,
    TtlLapMark,
)

P, A = ParaId(2000), name("a")


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(
            Config(),
            id="default",
        ),
        pytest.param(
            MOCK,
            id="mock",
        ),
        pytest.param(
            Config(ttl_policy=TtlPolicy.EXPIRY_INDEX),
            id="expiry index",
        ),
    ],
)
def test_what_can_work_is_accepted(config: Config) -> None:
    integrity_test(config)
    integrity_test(replace(config, publisher_deposit=0, max_value_length=0))
    integrity_test(
        replace(config, max_total_storage_size=32 + config.max_value_length, max_stored_keys=1)
    )
    integrity_test(replace(config, max_publishers=0))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"max_stored_keys": 0}, "MaxStoredKeys of 0"),
        ({"max_total_storage_size": 0}, "MaxTotalStorageSize of 0"),
        ({"max_ttl_scans_per_idle": 0}, "nothing would ever expire"),
        ({"max_value_length": -1}, "MaxValueLength is a u32"),
        ({"max_publishers": U32_MAX + 1}, "MaxPublishers is a u32"),
        ({"max_total_storage_size": U32_MAX + 1}, "MaxTotalStorageSize is a u32"),
        ({"publisher_deposit": 2**128}, "PublisherDeposit is a u128"),
        ({"publisher_deposit": -1}, "PublisherDeposit is a u128"),
        ({"system_para_threshold": U32_MAX + 1}, "system threshold"),
        (
            {"max_publishers": 0, "system_para_threshold": 0},
            "neither a registered nor a system para",
        ),
        ({"max_value_length": 2017}, "does not hold one key"),
        ({"max_stored_keys": 65}, "does not hold MaxStoredKeys"),
        ({"max_block_weight": Weight(10**8, 2**63)}, "could never be executed"),
        ({"max_block_weight": Weight(2**63, 1500)}, "could never be executed"),
        ({"max_block_weight": Weight(5 * 10**9, 2**63)}, "could never be deregistered"),
    ],
)
def test_what_cannot_work_is_refused_with_the_reason(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(IntegrityError, match=reason):
        integrity_test(replace(MOCK, **changes))


def test_a_block_too_light_for_one_expiry_is_refused() -> None:
    config = replace(MOCK, max_stored_keys=1, max_value_length=0)
    enough = weights.deregister_publisher(config)
    with pytest.raises(IntegrityError, match="nothing would ever expire"):
        integrity_test(replace(config, max_block_weight=enough))


def test_a_publish_weighs_its_accesses_and_every_value_byte() -> None:
    for config in (MOCK, replace(MOCK, ttl_policy=TtlPolicy.EXPIRY_INDEX)):
        empty, byte, full = (weights.publish(config, size) for size in (0, 1, 1024))
        assert byte.ref_time - empty.ref_time == 2_000
        assert full.ref_time - empty.ref_time == 1024 * 2_000
        assert empty.proof_size >= 1024
    scan = weights.publish(MOCK, 0)
    index = weights.publish(replace(MOCK, ttl_policy=TtlPolicy.EXPIRY_INDEX), 0)
    assert index.ref_time - scan.ref_time == 200_000_000
    assert scan == Weight(15_000_000 + 4 * 25_000_000 + 5 * 100_000_000, 4 * 700 + 2 + 1024 + 8)


def sound(policy: TtlPolicy) -> World:
    world = World(MOCK, now=3, ttl_policy=policy)
    world.register(2000)
    world.register(2001)
    world.publish(2000, A, b"abc", 9)
    world.publish(2000, name("b"), b"abc")
    world.publish(1000, A, b"", 1)
    world.root()
    world.try_state()
    return world


def _write_entry(world: World, raw: bytes) -> None:
    world.storage.child_put(derive_child_key(P), A, raw)


BROKEN: dict[str, Callable[[World], object]] = {
    "keys and 3 are counted": lambda w: PublishedKeys.insert(w.storage, P, 3),
    "a size and no keys": lambda w: PublishedKeys.remove(w.storage, P),
    "bytes and 5 are counted": lambda w: TotalStorageSize.insert(w.storage, P, 5),
    "its TTL row says None": lambda w: TtlData.remove(w.storage, P, A),
    "lives None": lambda w: TtlData.insert(w.storage, P, name("b"), (1, 3)),
    "its TTL row says (9, 4)": lambda w: TtlData.insert(w.storage, P, A, (9, 4)),
    "0 keys and 1": lambda w: w.storage.child_clear(derive_child_key(ParaId(1000))),
    "stores no entry under": lambda w: _write_entry(w, b"\x04"),
    "a key of 31 bytes": lambda w: w.storage.child_put(
        derive_child_key(P), bytes(31), b"\x00" + bytes(8)
    ),
    "no registration": (
        lambda w: World(MOCK, system_para_threshold=9999).pallet.publish(
            w.storage, ParaId(3000), A, b"", 0
        )
    ),
    "are counted as 5": lambda w: CounterForRegisteredPublishers.put(w.storage, 5),
    "199 is held": lambda w: w.balances.slash_held(w.storage, PUBLISHER_DEPOSIT, ALICE, 1),
    "7 is held": lambda w: w.balances.hold(w.storage, PUBLISHER_DEPOSIT, BOB, 7),
    "has a lap mark and no keys": lambda w: TtlLapMark.insert(w.storage, ParaId(5), A),
    "expiry index": lambda w: ExpiryIndex.insert(w.storage, 99, (P, A), None),
}


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("policy", list(TtlPolicy))
def test_try_state_names_what_disagrees(broken: str, policy: TtlPolicy) -> None:
    world = sound(policy)
    BROKEN[broken](world)
    with pytest.raises(StateError, match=r".") as caught:
        world.pallet.try_state(world.storage)
    assert broken in str(caught.value)
    assert str(caught.value).startswith("Broadcaster: ")


def test_try_state_finds_a_missing_index_row_and_an_uncounted_trie() -> None:
    world = sound(TtlPolicy.EXPIRY_INDEX)
    ExpiryIndex.remove(world.storage, 12, (P, A))
    with pytest.raises(StateError, match="expiry index has 1 rows for 2"):
        world.pallet.try_state(world.storage)
    world = sound(TtlPolicy.SCAN)
    world.storage.child_put(derive_child_key(ParaId(77)), A, b"\x00" + bytes(8))
    world.root()
    with pytest.raises(StateError, match="publisher 77 has a child trie"):
        world.pallet.try_state(world.storage)


def an_entry(size: int = 3, ttl: int = 0, when: int = 1) -> PublishedEntry:
    return PublishedEntry(bytes(size), ttl, RelayBlockNumber(when))


@both_policies
def test_bulk_and_one_by_one_make_the_same_root(policy: TtlPolicy) -> None:
    world = World(Config(), ttl_policy=policy)
    world.storage = Storage(State())
    publishers = {
        ParaId(1000): GenesisPublisher(
            [(key, an_entry(i, i % 3, 1 + i)) for i, key in enumerate(numbered(90))]
        ),
        ParaId(2000): GenesisPublisher([(name("a"), an_entry())], ALICE),
        ParaId(2001): GenesisPublisher(manager=ALICE),
        ParaId(7): GenesisPublisher(),
    }
    for para, publisher in publishers.items():
        if publisher.manager is not None:
            world.force_register(para)
        for key, what in publisher.entries:
            world.at(what.when_inserted).publish(para, key, what.value, what.ttl)
    world.at(1)
    bulk = Storage(State.from_entries(*genesis_rows(world.config, publishers)))
    world.pallet.try_state(bulk)
    one_by_one = world.root()
    world.storage = bulk
    world.at(1)
    assert world.root() == one_by_one


@pytest.mark.parametrize(
    ("para", "publisher", "reason"),
    [
        (2000, GenesisPublisher([(name("a"), an_entry())]), "2000 has data and is not registered"),
        (5, GenesisPublisher([(key, an_entry(0)) for key in numbered(51)]), "5 stores 51 keys"),
        (
            5,
            GenesisPublisher([(key, an_entry(1000)) for key in numbered(2)]),
            "5 stores 2064 bytes",
        ),
        (5, GenesisPublisher([(name("a"), an_entry(1025))]), "5 stores a value of 1025 bytes"),
        (5, GenesisPublisher([(name("a"), an_entry())] * 2), "5 stores a key twice"),
    ],
)
def test_what_no_call_could_have_made_is_refused(
    para: int, publisher: GenesisPublisher, reason: str
) -> None:
    with pytest.raises(IntegrityError, match=reason):
        genesis_rows(MOCK, {ParaId(para): publisher})


@pytest.mark.parametrize(
    "publisher",
    [
        GenesisPublisher([(key, an_entry(0)) for key in numbered(50)]),
        GenesisPublisher([(key, an_entry(992)) for key in numbered(2)]),
        GenesisPublisher([(name("a"), an_entry(1024))]),
    ],
    ids=["keys", "bytes in all", "bytes of a value"],
)
def test_a_genesis_may_use_each_limit_up(publisher: GenesisPublisher) -> None:
    storage = Storage(State.from_entries(*genesis_rows(MOCK, {ParaId(5): publisher})))
    World().pallet.try_state(storage)
    assert (
        len(genesis_rows(Config(max_publishers=1), {ParaId(1): GenesisPublisher(manager=ALICE)})[0])
        == 2
    )


def test_more_registrations_than_there_are_places_are_refused() -> None:
    config = Config(max_publishers=1)
    with pytest.raises(IntegrityError, match="2 publishers are registered"):
        genesis_rows(config, {ParaId(para): GenesisPublisher(manager=ALICE) for para in (1, 2)})

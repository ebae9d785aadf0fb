"""A genesis made in bulk is the state that the same publishes make one by one."""

import pytest
from support.pallet_pubsub.world import ALICE, MOCK, World, both_policies, name, numbered

from pubsub_emulator.primitives.pubsub import PublishedEntry
from pubsub_emulator.primitives.types import ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.hooks import IntegrityError
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_pubsub import Config, GenesisPublisher, TtlPolicy, genesis_rows


def entry(size: int = 3, ttl: int = 0, when: int = 1) -> PublishedEntry:
    return PublishedEntry(bytes(size), ttl, RelayBlockNumber(when))


@both_policies
def test_bulk_and_one_by_one_make_the_same_root(policy: TtlPolicy) -> None:
    world = World(Config(), ttl_policy=policy)
    world.storage = Storage(State())
    publishers = {
        ParaId(1000): GenesisPublisher([(key, entry(i, i % 3, 1 + i)) for i, key in enumerate(numbered(90))]),
        ParaId(2000): GenesisPublisher([(name("a"), entry())], ALICE),
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
        (2000, GenesisPublisher([(name("a"), entry())]), "2000 has data and is not registered"),
        (5, GenesisPublisher([(key, entry(0)) for key in numbered(51)]), "5 stores 51 keys"),
        (5, GenesisPublisher([(key, entry(1000)) for key in numbered(2)]), "5 stores 2064 bytes"),
        (5, GenesisPublisher([(name("a"), entry(1025))]), "5 stores a value of 1025 bytes"),
        (5, GenesisPublisher([(name("a"), entry())] * 2), "5 stores a key twice"),
    ],
)
def test_what_no_call_could_have_made_is_refused(para: int, publisher: GenesisPublisher, reason: str) -> None:
    with pytest.raises(IntegrityError, match=reason):
        genesis_rows(MOCK, {ParaId(para): publisher})


def test_more_registrations_than_there_are_places_are_refused() -> None:
    config = Config(max_publishers=1)
    with pytest.raises(IntegrityError, match="2 publishers are registered"):
        genesis_rows(config, {ParaId(para): GenesisPublisher(manager=ALICE) for para in (1, 2)})

"""Upstream scenarios of the broadcaster pallet about deletion and offboarding; each test names its row (A…)."""

from support.pallet_pubsub.world import ALICE, BOB, NOTHING_LEFT, World, name, numbered, parachain

from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.origin import Signed
from pubsub_emulator.runtime.pallet_pubsub import Error
from pubsub_emulator.runtime.pallet_pubsub.events import KeysDeleted, KeysForcedDeleted, PublisherDeregistered
from pubsub_emulator.runtime.pallet_pubsub.storage import RegisteredPublishers

A, B, C = name("a"), name("b"), name("c")
"""Upstream's `cleanup_published_data` is `delete_keys` over all keys with us: there is no call of that name."""


def published(para: int = 2000) -> World:
    world = World()
    world.register(para)
    for key in (A, B, C):
        world.publish(para, key, b"v", 10)
    return world.at(2)


def test_a17_a28_deleting_all_keys_leaves_the_registration() -> None:
    world = published()
    more = numbered(47)
    for key in more:
        world.publish(2000, key, b"")
    world.delete(2000, [A, B, C, *more])
    assert world.everything(2000) == NOTHING_LEFT
    assert RegisteredPublishers.contains(world.storage, ParaId(2000))
    assert world.held(ALICE) == 100


def test_a18_a51_only_the_manager_or_the_para_deletes() -> None:
    world = published()
    for origin in (Signed(BOB), parachain(2001)):
        world.refuses(Error.NotAuthorized, world.delete, 2000, [A], origin)
    world.delete(2000, [A], parachain(2000))
    assert world.keys(2000) == sorted([B, C])


def test_a30_offboarding_wipes_the_outgoing_paras_and_no_other_ps11() -> None:
    world = published(2000)
    world.register(2001)
    world.register(2002)
    world.publish(2002, A, b"stays")
    root_of_c = world.child_root(2002)
    world.at(3).pallet.on_offboard(world.storage, [ParaId(2000), ParaId(2001)])
    assert world.everything(2000) == NOTHING_LEFT
    assert not RegisteredPublishers.contains(world.storage, ParaId(2000))
    assert not RegisteredPublishers.contains(world.storage, ParaId(2001))
    assert world.child_root(2002) == root_of_c
    assert world.held(ALICE) == 100
    assert world.events() == [PublisherDeregistered(ParaId(2000)), PublisherDeregistered(ParaId(2001))]
    world.try_state()


def test_offboarding_who_never_published_reports_nothing() -> None:
    world = World()
    before = world.root()
    world.pallet.on_offboard(world.storage, [ParaId(3000)])
    assert world.events() == []
    assert world.root() == before


def test_a50_the_manager_deletes_two_of_three() -> None:
    world = published()
    world.delete(2000, [A, C])
    assert world.keys(2000) == [B]
    assert (world.count(2000), world.size(2000)) == (1, 33)
    assert world.events() == [KeysDeleted(ParaId(2000), 2)]


def test_duplicates_merge_and_absent_keys_are_ignored() -> None:
    world = published()
    world.delete(2000, [A, A, name("absent"), C, A])
    assert world.events() == [KeysDeleted(ParaId(2000), 2)]
    assert world.count(2000) == 1


def test_a53_a_deleted_key_loses_its_ttl_row() -> None:
    world = published()
    world.delete(2000, [A])
    assert world.ttl(2000, A) is None
    assert world.value(2000, A) is None
    world.at(11).idle()
    assert world.everything(2000) == NOTHING_LEFT


def test_a54_root_deletes_two() -> None:
    world = published()
    world.force_delete(2000, [A, B])
    assert world.keys(2000) == [C]
    assert world.events() == [KeysForcedDeleted(ParaId(2000), 2)]


def test_a56_removing_a_publisher_removes_its_ttl_rows_finite_and_infinite_mixed() -> None:
    world = published()
    world.publish(2000, name("for ever"))
    world.publish(1000, A, ttl=3)
    world.deregister(2000)
    assert world.ttl_rows() == 1
    assert world.everything(2000) == NOTHING_LEFT
    world.try_state()

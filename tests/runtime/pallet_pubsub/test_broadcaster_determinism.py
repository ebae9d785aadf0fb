"""The same calls make the same bytes in any process, whatever Python's hash seed (PS-90)."""

from pathlib import Path

from support.pallet_pubsub.world import ALICE, MOCK, World, numbered, parachain
from support.processes import printed

from pubsub_emulator.runtime.framework.events import encode_records, records
from pubsub_emulator.runtime.pallet_pubsub import TtlPolicy

ROOT = Path(__file__).parents[3]
PROGRAM = "from tests.runtime.pallet_pubsub.test_broadcaster_determinism import story; print(story())"


def story() -> str:
    """Root and events after a little of everything, under both policies."""
    out = []
    for policy in TtlPolicy:
        world = World(MOCK, ttl_policy=policy, max_ttl_scans_per_idle=3)
        for para in (2000, 2001):
            world.register(para)
        for i, key in enumerate(numbered(12)):
            for para in (7, 2000, 2001):
                world.publish(para, key, b"v" * i, i % 4)
        world.delete(2000, reversed(numbered(4)))
        world.delete(7, numbered(2), parachain(7))
        world.deregister(2001)
        log = encode_records(records(world.storage))
        for number in range(2, 9):
            world.at(number).idle()
            log += encode_records(records(world.storage))
        assert world.held(ALICE) == 100
        out += [world.root().hex(), log.hex()]
    return " ".join(out)


def test_the_same_calls_make_the_same_root_and_events_under_any_hash_seed_ps90() -> None:
    assert {told.strip() for told in printed(PROGRAM, "1", "4242")} == {story()}

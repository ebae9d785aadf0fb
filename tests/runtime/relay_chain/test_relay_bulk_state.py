"""A state loaded in bulk is the one that the same publishes make, message by message (PS-1, PS-6, PS-8)."""

from dataclasses import replace

import pytest
from support.relay_chain import world
from support.relay_chain.world import ALICE, ROOT

from pubsub_emulator.emulator.relay.chain import Genesis, RelayChain
from pubsub_emulator.emulator.relay.runtime import RelayConfig
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key
from pubsub_emulator.primitives.types import ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.pallet_pubsub import GenesisPublisher, TtlPolicy, genesis_rows
from pubsub_emulator.runtime.pallet_pubsub.events import DataPublished
from pubsub_emulator.runtime.pallet_pubsub.storage import TtlScanCursor
from pubsub_emulator.xcm import Publish

PARAS = [ParaId(number) for number in (*range(1000, 1025), *range(2000, 2025))]
KEYS = 100
A_MESSAGE = 50

Wanted = dict[ParaId, dict[PubsubKey, tuple[bytes, int]]]


def wanted() -> Wanted:
    """100 keys for each of 50 publishers; values inline and detached, every third entry with an end."""
    out: Wanted = {}
    for para in PARAS:
        keys = [PubsubKey(blake2_256(b"%d %d" % (para, i))) for i in range(KEYS)]
        out[para] = {key: (key[: 3 * (i % 12)], 0 if i % 3 else 10_000 + i) for i, key in enumerate(keys)}
    return out


def stepped(config: RelayConfig, everything: Wanted) -> tuple[RelayChain, dict[tuple[ParaId, PubsubKey], int]]:
    """Publish it all through upward messages; also says in which block each key was published."""
    chain = RelayChain.start(config, Genesis(dict.fromkeys(PARAS, b"head"), dict.fromkeys(PARAS, ALICE)))
    calls = [world.call(ROOT, "force_register_publisher", ALICE, 0, para) for para in PARAS if para >= 2000]
    candidates = []
    for para, entries in everything.items():
        rows = [Publish(key, value, ttl) for key, (value, ttl) in entries.items()]
        messages = [world.message(*rows[i : i + A_MESSAGE]) for i in range(0, len(rows), A_MESSAGE)]
        candidates.append(world.candidate(chain, para, *messages))
    block = chain.build(candidates, calls)
    at: dict[tuple[ParaId, PubsubKey], int] = {}
    while len(at) < len(PARAS) * KEYS:
        block = chain.build((), ())
        for event in world.events(block, "Broadcaster"):
            assert isinstance(event, DataPublished)
            at[event.publisher, event.key] = chain.number
        assert chain.number < 50
    return chain, at


@pytest.mark.parametrize("policy", list(TtlPolicy), ids=lambda policy: policy.value)
def test_bulk_loaded_state_equals_the_stepped_one(policy: TtlPolicy) -> None:
    config = RelayConfig()
    config = replace(config, pubsub=replace(config.pubsub, ttl_policy=policy))
    everything = wanted()
    chain, at = stepped(config, everything)
    assert len(set(at.values())) > 5, "spread over several blocks"
    publishers = {
        para: GenesisPublisher(
            [
                (key, PublishedEntry(value, ttl, RelayBlockNumber(at[para, key])))
                for key, (value, ttl) in entries.items()
            ],
            manager=ALICE if para >= 2000 else None,
        )
        for para, entries in everything.items()
    }
    bulk = State.from_entries(*genesis_rows(config.pubsub, publishers))
    for para in PARAS:
        child = derive_child_key(para)
        assert bulk.child_root(child) == chain.state.child_root(child) is not None
    prefix = TtlScanCursor.prefix[:16]
    mine = {key: raw for key, raw in chain.state.top_entries() if key.startswith((prefix, b":child_storage:"))}
    mine.pop(TtlScanCursor.key, None)  # how far a sweep has come is no part of what was published
    assert mine == dict(bulk.top_entries())
    world.check(chain)

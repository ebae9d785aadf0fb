"""Entries with an end, published by message, on a chain that sweeps: expired is not gone (PS-16, PS-17)."""

import pytest
from support.relay_chain import world
from support.relay_chain.world import SYSTEM

from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key, publisher_root_key
from pubsub_emulator.primitives.types import ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.dispatch import ModuleError
from pubsub_emulator.runtime.pallet_pubsub import Error, TtlPolicy
from pubsub_emulator.runtime.pallet_pubsub.events import DataPublished, KeyExpired
from pubsub_emulator.trie import read_child_proof

CHILD = derive_child_key(ParaId(SYSTEM))
policies = pytest.mark.parametrize("policy", list(TtlPolicy), ids=lambda policy: policy.value)


@policies
def test_ps17_an_expired_entry_is_provable_counted_and_updated_until_it_is_swept(policy: TtlPolicy) -> None:
    """Five entries expire at once and a sweep takes four: the fifth is expired and there."""
    chain = world.start(world.small(ttl_policy=policy))
    for names in ((0, 1, 2), (3, 4)):
        world.send(chain, SYSTEM, world.message(*(world.publish(name, b"v", 4 - names[0] // 3 * 2) for name in names)))
    world.step(chain, blocks=2)
    (left,) = [name for name in range(5) if world.value(chain, SYSTEM, name) is not None]
    found = world.entry(chain, SYSTEM, left)
    assert found is not None
    assert found.when_inserted + found.ttl <= chain.number
    nodes: dict[bytes, bytes] = {}
    chain.state.prove([publisher_root_key(ParaId(SYSTEM))], {CHILD: [world.key(left)]}, nodes)
    proven = read_child_proof(chain.header.state_root, nodes.values(), CHILD, [world.key(left)])
    assert proven == {world.key(left): found.encode()}
    assert world.counted(chain, SYSTEM) == (1, 33, 1)


@policies
def test_ps17_in_the_block_of_their_expiry_entries_still_count_and_can_be_renewed(policy: TtlPolicy) -> None:
    """Messages are served before the sweep: all five keys are expired, a sixth is one too many, an update saves one."""
    chain = world.start(world.small(ttl_policy=policy))
    world.send(chain, SYSTEM, world.message(*(world.publish(name, b"v", 10) for name in range(3))))
    expiry = chain.number + 10
    world.send(chain, SYSTEM, world.message(*(world.publish(name, b"v", expiry - chain.number - 2) for name in (3, 4))))
    world.step(chain, blocks=expiry - 2 - chain.number)
    world.step(chain, [world.candidate(chain, SYSTEM, world.message(world.publish(0, b"renewed"), world.publish(6)))])
    assert world.counted(chain, SYSTEM)[0] == 5
    block = world.step(chain)
    assert chain.number == expiry
    told = world.events(block, "Broadcaster")
    assert told[0] == DataPublished(ParaId(SYSTEM), world.key(0), 7)
    gone = [event.key for event in told[1:] if isinstance(event, KeyExpired)]
    assert sorted(gone) == sorted(map(world.key, range(1, 5)))
    (ran,) = chain.executions
    assert [failure.cause for failure in ran.execution.failures] == [ModuleError(Error.TooManyStoredKeys)]
    assert world.entry(chain, SYSTEM, 0) == PublishedEntry(b"renewed", 0, RelayBlockNumber(expiry))
    assert world.counted(chain, SYSTEM) == (1, 39, 0)

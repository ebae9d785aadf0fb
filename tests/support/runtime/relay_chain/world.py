"""A relay chain that is driven from outside only: upward messages as bytes, calls with their
origins, blocks.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pubsub_emulator.emulator.relay.chain import Genesis, RelayChain
from pubsub_emulator.emulator.relay.runtime import RelayConfig
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key
from pubsub_emulator.primitives.types import U64_MAX, AccountId, ParaId, PubsubKey
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.framework.dispatch import Call, DispatchError
from pubsub_emulator.runtime.framework.executive import Block, Extrinsic
from pubsub_emulator.runtime.framework.origin import Origin, Parachain, Root
from pubsub_emulator.runtime.framework.pallet import Event
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.pallet_pubsub import Config as PubsubConfig
from pubsub_emulator.runtime.pallet_pubsub.registry import PUBLISHER_DEPOSIT, sovereign_account
from pubsub_emulator.runtime.pallet_pubsub.storage import PublishedKeys, TotalStorageSize, TtlData
from pubsub_emulator.runtime.relay.host_configuration import HostConfiguration
from pubsub_emulator.runtime.relay.inclusion import BackedCandidate, CandidateCommitments
from pubsub_emulator.runtime.relay.message_queue import Config as QueueConfig
from pubsub_emulator.xcm import Instruction, Publish, encode

ALICE = AccountId(b"\xaa" * 32)
BOB = AccountId(b"\xbb" * 32)
STRANGER = AccountId(b"\xcc" * 32)
ROOT = Root()
UNIT = 1_000_000_000_000

SYSTEM, BOUNDARY = 1000, 1999
PUBLIC, SECOND, THIRD = 2000, 2001, 2002
MANAGERS = {
    SYSTEM: ALICE,
    BOUNDARY: ALICE,
    PUBLIC: ALICE,
    SECOND: BOB,
    THIRD: sovereign_account(ParaId(SECOND)),
}

SMALL = RelayConfig(
    session_length=5,
    session_delay=1,
    pubsub=PubsubConfig(
        max_value_length=64,
        max_stored_keys=5,
        max_total_storage_size=300,
        max_publishers=3,
        publisher_deposit=UNIT,
        max_ttl_scans_per_idle=4,
    ),
    host=HostConfiguration(
        max_upward_queue_count=6,
        max_upward_queue_size=2_000,
        max_upward_message_size=600,
        max_upward_message_num_per_candidate=4,
    ),
    queue=QueueConfig(service_weight=Weight(2_500_000_000, U64_MAX), heap_size=700),
)
"""Limits that a few messages reach; a block serves three publishes and no fourth."""


def small(config: RelayConfig = SMALL, **pubsub: Any) -> RelayConfig:
    return replace(config, pubsub=replace(config.pubsub, **pubsub))


def start(
    config: RelayConfig = SMALL, publishers: Iterable[int] = (), paras: Iterable[int] = MANAGERS
) -> RelayChain:
    """Return a relay chain at block 0 with these parachains."""
    managers = {ParaId(para): MANAGERS[para] for para in paras}
    heads = dict.fromkeys(managers, b"head")
    return RelayChain.start(
        config, Genesis(heads, managers, tuple(ParaId(para) for para in publishers))
    )


def key(name: str | int) -> PubsubKey:
    return PubsubKey(blake2_256(f"key {name}".encode()))


def publish(name: str | int = 1, value: bytes = b"value", ttl: int = 0) -> Publish:
    return Publish(key(name), value, ttl)


def message(*instructions: Instruction) -> bytes:
    return encode(instructions)


def candidate(
    chain: RelayChain, para: int, *messages: bytes, head: bytes = b"head"
) -> BackedCandidate:
    """Return a parachain block on the newest relay block that sends these messages upward."""
    commitments = CandidateCommitments(tuple(messages), (), head, 0, chain.number)
    return BackedCandidate(ParaId(para), chain.number, commitments)


def call(origin: Origin, name: str, *args: object, pallet: str = "Broadcaster") -> Extrinsic:
    return Extrinsic(origin, Call(pallet, name, args))


def para_origin(para: int) -> Parachain:
    return Parachain(ParaId(para))


def step(
    chain: RelayChain,
    candidates: Sequence[BackedCandidate] = (),
    calls: Iterable[Extrinsic] = (),
    blocks: int = 1,
) -> Block:
    """Build a block with these, and empty ones after it; every pallet's state is checked after
    each.
    """
    block = chain.build(candidates, calls)
    check(chain)
    for _ in range(blocks - 1):
        block = chain.build((), ())
        check(chain)
    return block


def check(chain: RelayChain) -> None:
    chain.runtime.executive.try_state(chain.storage())


def send(chain: RelayChain, para: int, *messages: bytes) -> Block:
    """Include a block with these messages; returns the next one, in which they are served."""
    step(chain, [candidate(chain, para, *messages)])
    return step(chain)


def events(block: Block, *pallets: str) -> list[Event]:
    return [record.event for record in block.events if record.event.PALLET.name in pallets]


def errors(block: Block) -> list[DispatchError | None]:
    """Return the error of each call of a block, without the inherent, which is always the first."""
    return [outcome.error for outcome in block.outcomes[1:]]


# Looking


def entry(chain: RelayChain, para: int, name: str | int) -> PublishedEntry | None:
    raw = chain.storage().child_get(derive_child_key(ParaId(para)), key(name))
    return None if raw is None else PublishedEntry.decode(raw)


def value(chain: RelayChain, para: int, name: str | int) -> bytes | None:
    found = entry(chain, para, name)
    return None if found is None else found.value


def entries(chain: RelayChain, para: int) -> dict[bytes, bytes]:
    return dict(chain.storage().child_iter(derive_child_key(ParaId(para))))


def counted(chain: RelayChain, para: int) -> tuple[int, int, int]:
    """Return a publisher's numbers of keys, bytes and TTL rows."""
    storage = chain.storage()
    rows = sum(1 for _ in TtlData.items(storage, ParaId(para)))
    return (
        PublishedKeys.get(storage, ParaId(para)),
        TotalStorageSize.get(storage, ParaId(para)),
        rows,
    )


def held(chain: RelayChain, who: AccountId) -> int:
    return chain.runtime.balances.balance_on_hold(chain.storage(), PUBLISHER_DEPOSIT, who)


def free(chain: RelayChain, who: AccountId) -> int:
    return system.account(chain.storage(), who).data.free


def waiting(chain: RelayChain, para: int) -> list[bytes]:
    return chain.runtime.message_queue.messages(chain.storage(), ParaId(para))


def dump(state: State) -> dict[bytes, bytes]:
    """Return every top entry of a state, including child roots."""
    return dict(state.top_entries())

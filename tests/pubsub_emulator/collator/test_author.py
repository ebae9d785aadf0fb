"""The honest author: its blocks are accepted in every world, and there is nothing in them that it
could choose.
"""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.plumbing.examples import scaled
from support.plumbing.processes import printed

from pubsub_emulator.collator.author import Authored, CannotAuthor, author
from pubsub_emulator.collator.cheats import Situation
from pubsub_emulator.laboratory.worlds import World
from pubsub_emulator.primitives.header import turn_of
from pubsub_emulator.primitives.pubsub import node_cost
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.message_chains import InboundDownwardMessage, InboundMessages
from pubsub_emulator.runtime.parachain.block import Candidate
from pubsub_emulator.runtime.parachain.validate import RelayContext, validate_block


def authored(now: Situation) -> Authored:
    seed = turn_of(now.slot, now.seeds)
    return author(now.parent, now.relay, now.messages, now.slot, seed)


@settings(max_examples=scaled(12))
@given(seed=st.binary(min_size=8, max_size=8))
def test_ps_52_every_honest_block_is_accepted_with_its_authors_result(
    seed: bytes,
) -> None:
    world = World(seed, proofs_only=False)
    for _ in range(4):
        now = world.situation()
        block = authored(now)
        context = RelayContext(now.relay.number, now.relay.storage_root, now.slot_now)
        root = now.parent.state.root()
        outcome = validate_block(now.parent, block.candidate, context)
        assert outcome.state_root == block.outcome.state_root == block.candidate.header.state_root
        assert outcome.deliveries == block.outcome.deliveries
        # A verifier reads the heads of the message queues as well.
        seen = replace(
            block.outcome.ledger,
            own_state_bytes=outcome.ledger.own_state_bytes,
            ref_time=outcome.ledger.ref_time,
        )
        assert outcome.ledger == seen
        assert now.parent.state.root() == root
        assert Candidate.decode(block.candidate.encode()) == block.candidate
        assert block.candidate == now.honest
        world.advance()


@settings(max_examples=scaled(10))
@given(seed=st.binary(min_size=8, max_size=8))
def test_ps_70_the_parts_of_the_full_proof_add_up_to_everything_taken(seed: bytes) -> None:
    now = World(seed, proofs_only=False).situation()
    block, full = authored(now), now.proof
    total = sum(node_cost(len(node)) for node in full.nodes.values())
    assert (
        full.static_bytes + full.requested_bytes + sum(cost for _, cost in block.unpruned) == total
    )
    assert [para for para, _ in block.unpruned] == list(now.spec.subscriptions)
    assert full.nodes.items() >= now.walked.taken.items()
    assert now.walked.static_bytes == full.static_bytes
    assert [*now.walked.taken][: len(full.static_nodes)] == [*full.static_nodes]


def test_ps_50_an_author_declines_when_the_messages_alone_exceed_the_block() -> None:
    now = World(b"too many messages", proofs_only=False).situation()
    flood = (InboundDownwardMessage(now.relay.number, bytes(now.spec.allowed_pov)),)
    with pytest.raises(CannotAuthor, match="exceed"):
        authored(replace(now, messages=InboundMessages(flood)))


def test_senders_without_messages_are_left_out_and_the_others_sorted() -> None:
    now = next(now for now in situations() if len(now.messages.horizontal) == 2)
    first, second = now.messages.horizontal
    untidy = replace(
        now, messages=InboundMessages(now.messages.downward, (second, (ParaId(2500), ()), first))
    )
    assert authored(untidy).candidate == authored(now).candidate


def situations() -> list[Situation]:
    out = []
    for number in range(8):
        world = World(b"senders %d" % number, proofs_only=False)
        for _ in range(3):
            out.append(world.situation())
            world.advance()
    return out


SCRIPT = """
from pubsub_emulator.laboratory.campaign import campaign
from pubsub_emulator.laboratory.worlds import World
world = World(b"hash seeds", proofs_only=False)
for _ in range(3):
    print(world.situation().honest.hash().hex())
    world.advance()
result = campaign(8, 5)
print(result.cases, result.rejected, sorted(result.by_strategy.items()))
"""


def test_ps_90_worlds_blocks_and_campaigns_are_the_same_under_any_hash_seed() -> None:
    assert len(printed(SCRIPT, "0", "77")) == 1

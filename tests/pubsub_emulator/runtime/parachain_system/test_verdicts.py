"""PS-52 to PS-54: every verdict, their order, all the evidence, and that an invalid block leaves
nothing behind.
"""

from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.runtime.world import (
    ME,
    SEEDS,
    Chain,
    Relay,
    each_policy,
    entry,
    filled,
    make_spec,
    numbered,
    seal,
    with_proof,
)

from pubsub_emulator.primitives import ed25519, storage_keys
from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import encode_bytes
from pubsub_emulator.primitives.types import Hash, ParaId, RelayBlockNumber, Slot
from pubsub_emulator.runtime.framework.message_chains import (
    ZERO_HEAD,
    HashedMessage,
    InboundDownwardMessage,
    InboundMessages,
)
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.plan import Plan
from pubsub_emulator.runtime.parachain.block import Candidate, InvalidBlock, Verdict
from pubsub_emulator.runtime.parachain.validate import RelayContext, validate_block

KEYS = numbered(12)
PUBLISHERS = {
    1000: filled(KEYS),
    1001: filled(KEYS[:4], b"w" * 50),
    1002: filled(KEYS[:2], b"x" * 10),
}
SUBS = dict.fromkeys(PUBLISHERS, KEYS)


def started(policy: str = "slots") -> Chain:
    """A chain with one block behind it, on relay block 5."""
    chain = Chain(make_spec(SUBS, cache=policy))
    chain.step(Relay(5, PUBLISHERS))
    return chain


RELAY = Relay(6, PUBLISHERS | {1000: filled(KEYS, b"new" * 20, 6)})


def verdict(
    chain: Chain, candidate: Candidate, relay: Relay = RELAY, slot_now: int = 1 << 32
) -> InvalidBlock:
    """What an invalid block is found to be; the chain's state stays what it was."""
    before, entries = chain.state.root(), dict(chain.state.top_entries())
    with pytest.raises(InvalidBlock) as refused:
        chain.judge(candidate, relay, slot_now)
    assert chain.state.root() == before
    assert dict(chain.state.top_entries()) == entries
    return refused.value


def verdicts(found: InvalidBlock) -> list[Verdict]:
    return list(dict.fromkeys(offence.verdict for offence in found.evidence))


@each_policy
def test_the_honest_block_is_accepted_and_lists_its_nodes_strictly_ascending(policy: str) -> None:
    """PS-52, B63, D all_proof_nodes_accessed."""
    chain = started(policy)
    candidate = chain.author(RELAY)
    proof = candidate.inherent.proof
    assert all(a < b for a, b in pairwise(proof))
    outcome = chain.judge(candidate, RELAY)
    assert len(outcome.deliveries) == 12
    assert outcome.state_root == candidate.header.state_root
    assert {*map(blake2_256, proof)} == {*outcome.plan.taken}
    assert Candidate.decode(candidate.encode()) == candidate


def test_evidence_names_whose_seal_it_is_and_which_nodes_and_roots() -> None:
    """PS-52, PS-53: the table of guards has every check; this is what a refusal says of each."""
    chain = started()
    honest = chain.author(RELAY)
    proof, other = honest.inherent.proof, SEEDS[((honest.header.aura_slot() or 0) + 1) % 2]
    left_out = next(node for node in proof if blake2_256(node) != RELAY.root)
    claimed, root = Hash(b"\x05" * 32), Hash(b"\x07" * 32)
    extrinsic = encode_bytes(b"\x84")
    for candidate, what, subject in (
        (seal(honest, other), Verdict.BAD_SEAL, (ed25519.public_key(other),)),
        (
            replace(honest, inherent=replace(honest.inherent, collator_peer_id=b"peer")),
            Verdict.BAD_SEAL,
            (honest.header.extrinsics_root,),
        ),
        (
            seal(replace(honest, header=replace(honest.header, parent_hash=claimed))),
            Verdict.BAD_PARENT,
            (claimed, chain.header.hash()),
        ),
        (
            with_proof(honest, [*proof[:2], proof[3], proof[2], *proof[4:]]),
            Verdict.UNSORTED_PROOF,
            (proof[2],),
        ),
        (
            seal(replace(honest, extrinsics=(extrinsic, b"another"))),
            Verdict.BAD_EXTRINSIC,
            (extrinsic,),
        ),
        (with_proof(honest, sorted([*proof, proof[0]])), Verdict.DUPLICATE_NODE, (proof[0],)),
        (
            chain.author(RELAY, relay_parent_storage_root=claimed),
            Verdict.ROOT_MISMATCH,
            (claimed, RELAY.root),
        ),
        (with_proof(honest, []), Verdict.ROOT_MISMATCH, (RELAY.root,)),
        (
            with_proof(honest, sorted([*proof, b"junk"])),
            Verdict.UNUSED_NODES,
            (blake2_256(b"junk"),),
        ),
        (
            chain.author(RELAY, state_root=root),
            Verdict.STATE_ROOT_MISMATCH,
            (root, honest.header.state_root),
        ),
    ):
        found = verdict(chain, candidate)
        assert (verdicts(found), found.evidence[0].subject) == ([what], subject)
        assert str(found) == f"{what.value}: {found.evidence[0].detail}"
    found = verdict(chain, with_proof(honest, [node for node in proof if node != left_out]))
    assert (found.verdict, found.evidence[0].subject[0]) == (
        Verdict.OMITTED_BELOW_BUDGET,
        blake2_256(left_out),
    )


def test_root_mismatch_a_relay_block_that_does_not_exist() -> None:
    """PS-52 RootMismatch."""
    chain = started()
    candidate = chain.author(RELAY)
    with pytest.raises(InvalidBlock) as refused:
        validate_block(chain.head, candidate, RelayContext(RELAY.number, None, Slot(99)))
    assert refused.value.verdict is Verdict.ROOT_MISMATCH
    with pytest.raises(DefensiveFailure):
        validate_block(
            chain.head, candidate, RelayContext(RelayBlockNumber(7), RELAY.root, Slot(99))
        )


def test_a_cached_node_in_the_proof_is_unused_whatever_the_counts() -> None:
    """PS-52 UnusedNodes, defect 5: sets are compared, never counts; cached reads excuse no junk."""
    chain = started("nodes")
    relay = Relay(6, PUBLISHERS | {1000: PUBLISHERS[1000] | {KEYS[0]: entry(b"new" * 20)}})
    honest = chain.author(relay)
    plan = chain.judge(honest, relay).plan
    cached = [n for h, n in plan.publishers[ParaId(1000)].visited.items() if h not in plan.taken]
    assert cached
    with_cached = with_proof(honest, sorted([*honest.inherent.proof, cached[0]]))
    assert verdicts(verdict(chain, with_cached, relay)) == [Verdict.UNUSED_NODES]
    without = [n for n in honest.inherent.proof if n != honest.inherent.proof[3]]
    swapped = with_proof(honest, sorted([*without, b"junk"]))
    assert verdict(chain, swapped, relay).verdict is Verdict.OMITTED_BELOW_BUDGET


def test_the_first_verdict_in_rule_order_wins_and_all_are_evidence_ps52() -> None:
    chain = started()
    old = Relay(4, PUBLISHERS)
    honest = chain.author(old)
    proof = honest.inherent.proof
    wrong = replace(
        honest,
        header=replace(
            honest.header, parent_hash=Hash(b"\x01" * 32), state_root=Hash(b"\x02" * 32)
        ),
        inherent=replace(
            honest.inherent,
            proof=(*proof[::-1], b"junk", b"junk"),
            max_pov_size=77,
            messages=InboundMessages(
                (InboundDownwardMessage(RelayBlockNumber(4), b"never sent"),),
                hashed_horizontal=((ParaId(1), (HashedMessage(RelayBlockNumber(4), ZERO_HEAD),)),),
            ),
        ),
    )
    found = verdict(chain, seal(wrong, b"\x09" * 32), old)
    assert verdicts(found) == [
        Verdict.BAD_SEAL,
        Verdict.BAD_PARENT,
        Verdict.RELAY_PARENT_DECREASED,
        Verdict.BAD_VALIDATION_DATA,
        Verdict.MESSAGES_MISREPORTED,
        Verdict.ADVANCEMENT_RULE,
        Verdict.DUPLICATE_NODE,
        Verdict.UNSORTED_PROOF,
        Verdict.UNUSED_NODES,
        Verdict.STATE_ROOT_MISMATCH,
    ]
    assert found.verdict is Verdict.BAD_SEAL
    assert str(found).startswith("BadSeal: ")


def test_messages_are_judged_before_the_proof_although_judging_needs_it() -> None:
    """PS-52: the order of the rules, not that in which offences come to light."""
    chain = started()
    honest = chain.author(RELAY, [InboundDownwardMessage(RelayBlockNumber(6), b"never sent")])
    proof = honest.inherent.proof
    found = verdict(chain, with_proof(honest, [*proof, proof[-1]]))
    assert verdicts(found) == [Verdict.MESSAGES_MISREPORTED, Verdict.DUPLICATE_NODE]


def test_unused_nodes_are_not_judged_after_the_walk_was_cut_short() -> None:
    """PS-52: after RootMismatch or OmittedBelowBudget nobody can say what would have been used."""
    chain = started()
    honest = chain.author(RELAY)
    root = RELAY.nodes[RELAY.root]
    junk = sorted([*(n for n in honest.inherent.proof if n != root), b"junk"])
    assert verdicts(verdict(chain, with_proof(honest, junk))) == [Verdict.ROOT_MISMATCH]
    other = next(n for n in honest.inherent.proof if n != root)
    junk = sorted([*(n for n in honest.inherent.proof if n != other), b"junk"])
    assert verdicts(verdict(chain, with_proof(honest, junk))) == [Verdict.OMITTED_BELOW_BUDGET]


def test_verdicts_bear_the_names_of_the_rules_in_their_order_ps52() -> None:
    proof = "DuplicateNode UnsortedProof RootMismatch OmittedBelowBudget UnusedNodes"
    names = (
        "BadSeal BadParent RelayParentDecreased BadValidationData BadDescendants"
        f" MessagesMisreported AdvancementRule {proof} BadExtrinsic StateRootMismatch"
    )
    assert [v.value for v in Verdict] == names.split()


def tight(policy: str) -> tuple[Chain, Relay]:
    """A chain whose walk stops in the middle: 40 values of 32 KiB against a mebibyte."""
    keys = numbered(40)
    spec = make_spec(
        {1000: keys[:20], 1001: keys},
        cache=policy,
        max_pov_size=1_400_000,
        reserve_minimum=True,
        max_value_length=2048,
    )
    chain = Chain(spec)
    return chain, Relay(1, {1000: filled(keys, b"v" * 40_000), 1001: filled(keys, b"w" * 30_000)})


@each_policy
def test_a_collator_may_omit_only_the_rest_beyond_the_budget(
    policy: str,
) -> None:
    """PS-51, PS-52, D missing_node_at_limit_valid, D missing_node_below_limit_invalid."""
    chain, relay = tight(policy)
    honest = chain.author(relay)
    plan = chain.judge(honest, relay).plan
    assert plan.cursor is not None
    whole = sorted(relay.nodes.values())
    assert verdict(chain, with_proof(honest, whole), relay).verdict is Verdict.UNUSED_NODES
    largest = max(honest.inherent.proof, key=len)
    early = [n for n in honest.inherent.proof if n != largest]
    assert verdict(chain, with_proof(honest, early), relay).verdict is Verdict.OMITTED_BELOW_BUDGET
    delivered = []
    for _ in range(5):
        delivered += chain.step(relay).deliveries
    assert len(delivered) == 60


def test_a_proof_for_another_cursor_is_refused() -> None:
    """PS-52, D collator_wrong_cursor: started elsewhere, a stopped walk takes other nodes."""
    chain, relay = tight("none")
    honest = chain.author(relay)
    other = Chain(chain.spec)
    other.head = chain.head.fork()
    storage = Storage(other.state)
    items.PROCESSING_CURSOR.put(storage, (ParaId(1001), numbered(40)[20]))
    storage.commit()
    wrong = other.author(relay)
    assert wrong.inherent.proof != honest.inherent.proof
    mixed = with_proof(honest, wrong.inherent.proof)
    assert verdict(chain, mixed, relay).verdict in {
        Verdict.OMITTED_BELOW_BUDGET,
        Verdict.UNUSED_NODES,
    }


@cache
def canonical(policy: str) -> tuple[Chain, Candidate, Plan]:
    chain = started(policy)
    honest = chain.author(RELAY)
    return chain, honest, chain.judge(honest, RELAY).plan


@each_policy
@given(data=st.data())
def test_of_all_subsets_and_supersets_only_the_canonical_proof_is_accepted(
    policy: str, data: st.DataObject
) -> None:
    """PS-52: any mixture of genuine nodes, junk, bit flips, orders."""
    chain, honest, plan = canonical(policy)
    pool = sorted(RELAY.nodes.values())
    proof = list(honest.inherent.proof)
    for _ in range(data.draw(st.integers(1, 4))):
        what = data.draw(st.sampled_from(("drop", "add", "flip", "swap", "junk", "restore")))
        at = data.draw(st.integers(0, max(len(proof) - 1, 0)))
        if what == "drop" and proof:
            del proof[at]
        elif what == "add":
            proof.insert(at, data.draw(st.sampled_from(pool)))
        elif what == "flip" and proof and proof[at]:
            where = data.draw(st.integers(0, len(proof[at]) - 1))
            proof[at] = proof[at][:where] + bytes((proof[at][where] ^ 1,)) + proof[at][where + 1 :]
        elif what == "swap" and proof:
            proof[at], proof[0] = proof[0], proof[at]
        elif what == "junk":
            proof.insert(at, data.draw(st.binary(max_size=40)))
        elif data.draw(st.booleans()):
            proof = sorted(proof)
        else:
            proof = list(honest.inherent.proof)
    candidate = with_proof(honest, proof)
    if tuple(proof) == honest.inherent.proof:
        assert chain.judge(candidate, RELAY).plan.used == plan.used
    else:
        found = verdict(chain, candidate)
        assert set(verdicts(found)) <= set(Verdict) - {
            Verdict.BAD_SEAL,
            Verdict.BAD_PARENT,
            Verdict.RELAY_PARENT_DECREASED,
        }


def test_genuine_nonsense_of_the_relay_chain_never_invalidates_a_block() -> None:
    """PS-52, PS-54: the root commits to it, so no collator is at fault."""
    chain = started()
    nonsense = {
        storage_keys.dmq_mqc_head(ME): b"no hash",
        storage_keys.hrmp_ingress_channel_index(ME): b"\xff\xff\xff\xff",
        storage_keys.hrmp_egress_channel_index(ME): b"\x08\x01\x00\x00\x00",
        storage_keys.ACTIVE_CONFIG: b"",
    }
    relay = Relay(
        6, PUBLISHERS | {1001: {KEYS[0]: b"?"}}, top=nonsense, raw_roots={1002: b"r" * 64}
    )
    outcome = chain.step(relay)
    assert {p for p, share in outcome.plan.publishers.items() if share.disabled} == {1001, 1002}

"""PS-52 to PS-54: every verdict, their order, all the evidence, and that an invalid block leaves nothing behind."""

from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.world import ME, SEEDS, Chain, Relay, each_policy, entry, filled, make_spec, numbered, seal, with_proof

from pubsub_emulator.primitives import ed25519, storage_keys
from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import DigestItem, DigestKind, aura_seal
from pubsub_emulator.primitives.types import Hash, ParaId, RelayBlockNumber, Slot
from pubsub_emulator.runtime.framework.message_chains import InboundDownwardMessage
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.plan import Plan
from pubsub_emulator.runtime.parachain.block import Candidate, InvalidBlock, Verdict
from pubsub_emulator.runtime.parachain.validate import RelayContext, validate_block

KEYS = numbered(12)
PUBLISHERS = {1000: filled(KEYS), 1001: filled(KEYS[:4], b"w" * 50), 1002: filled(KEYS[:2], b"x" * 10)}
SUBS = dict.fromkeys(PUBLISHERS, KEYS)


def started(policy: str = "slots") -> Chain:
    """A chain with one block behind it, on relay block 5."""
    chain = Chain(make_spec(SUBS, cache=policy))
    chain.step(Relay(5, PUBLISHERS))
    return chain


RELAY = Relay(6, PUBLISHERS | {1000: filled(KEYS, b"new" * 20, 6)})


def verdict(chain: Chain, candidate: Candidate, relay: Relay = RELAY, slot_now: int = 1 << 32) -> InvalidBlock:
    """What an invalid block is found to be; the chain's state stays what it was."""
    before, entries = chain.state.root(), dict(chain.state.top_entries())
    with pytest.raises(InvalidBlock) as refused:
        chain.judge(candidate, relay, slot_now)
    assert chain.state.root() == before
    assert dict(chain.state.top_entries()) == entries
    return refused.value


def verdicts(found: InvalidBlock) -> list[Verdict]:
    return list(dict.fromkeys(offence.verdict for offence in found.evidence))


# The honest block


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


def test_judging_a_block_changes_nothing_until_it_is_taken() -> None:
    """PS-53."""
    chain = started()
    before = chain.state.root()
    candidate = chain.author(RELAY)
    assert chain.judge(candidate, RELAY).state_root == chain.judge(candidate, RELAY).state_root != before
    assert chain.state.root() == before


# One offence each


def test_bad_seal_names_the_collator_whose_turn_it_was_not() -> None:
    """PS-52 BadSeal, PS-80."""
    chain = started()
    candidate = chain.author(RELAY)
    slot = candidate.header.aura_slot() or 0
    other = SEEDS[(slot + 1) % 2]
    found = verdict(chain, seal(candidate, other))
    assert verdicts(found) == [Verdict.BAD_SEAL]
    assert found.evidence[0].subject == (ed25519.public_key(other),)


def test_bad_seal_a_digest_of_any_other_form() -> None:
    """PS-52 BadSeal: one slot and one seal, nothing beside them."""
    chain = started()
    header = chain.author(RELAY).header
    slot, sealed = header.digest
    other = DigestItem(DigestKind.OTHER, b"", b"junk")
    for digest in (
        (),
        (slot,),
        (sealed,),
        (sealed, slot),
        (slot, sealed, sealed),
        (slot, other, sealed),
        (slot, slot, sealed),
    ):
        bad = replace(chain.author(RELAY), header=replace(header, digest=digest))
        assert verdict(chain, bad).verdict is Verdict.BAD_SEAL


def test_bad_seal_a_well_signed_digest_with_something_beside() -> None:
    """PS-52 BadSeal, PS-79: nothing else is claimed, so there is one header for one block."""
    chain = started()
    candidate = chain.author(RELAY)
    slot = candidate.header.digest[0]
    for beside in (DigestItem(DigestKind.OTHER, b"", b"junk"), DigestItem(DigestKind.CONSENSUS, b"aura", b"junk")):
        bare = replace(candidate.header, digest=(slot, beside))
        signature = ed25519.sign(SEEDS[(bare.aura_slot() or 0) % 2], bare.pre_hash())
        bad = replace(candidate, header=replace(bare, digest=(slot, beside, aura_seal(signature))))
        assert verdict(chain, bad).verdict is Verdict.BAD_SEAL


@pytest.mark.parametrize(
    ("ahead", "now", "fine"), [(1, 2, True), (0, 9, False), (-1, 9, False), (3, 3, False), (3, 4, True)]
)
def test_bad_seal_a_slot_that_is_not_after_the_parents_or_not_begun(ahead: int, now: int, fine: bool) -> None:
    """PS-52 BadSeal, PS-80: the parent stands in slot 1."""
    chain = started()
    candidate = chain.author(RELAY, slot=1 + ahead)
    if fine:
        chain.judge(candidate, RELAY, now)
    else:
        assert verdicts(verdict(chain, candidate, RELAY, now)) == [Verdict.BAD_SEAL]


def test_relay_parent_decreased() -> None:
    """PS-32, PS-52 RelayParentDecreased: one less is too old, the same again is not."""
    chain = started()
    old, same = Relay(4, PUBLISHERS), Relay(5, PUBLISHERS)
    found = verdict(chain, chain.author(old), old)
    assert verdicts(found) == [Verdict.RELAY_PARENT_DECREASED]
    assert chain.step(same).deliveries == ()
    assert chain.step(same).deliveries == ()


@each_policy
def test_duplicate_node_adjacent_or_not(policy: str) -> None:
    """PS-52 DuplicateNode, D collator_inflated_proof: two equal nodes, wherever they stand."""
    chain = started(policy)
    honest = chain.author(RELAY)
    proof = list(honest.inherent.proof)
    for at in (0, 1, len(proof) - 1):
        adjacent = with_proof(honest, [*proof[: at + 1], *proof[at:]])
        assert verdicts(verdict(chain, adjacent)) == [Verdict.DUPLICATE_NODE]
    apart = with_proof(honest, [*proof, proof[0]])
    found = verdict(chain, apart)
    assert verdicts(found) == [Verdict.DUPLICATE_NODE, Verdict.UNSORTED_PROOF]
    assert found.evidence[0].subject == (proof[0],)


def test_root_mismatch_a_proof_of_another_relay_block() -> None:
    """PS-52 RootMismatch, D stale relay parent: the whole proof is good, of a root that was not asked for."""
    chain = started()
    stale = Relay(6, PUBLISHERS)
    candidate = chain.author(stale, relay_parent_storage_root=RELAY.root)
    found = verdict(chain, candidate)
    assert verdicts(found) == [Verdict.ROOT_MISMATCH]
    assert found.evidence[0].subject == (RELAY.root,)


def test_root_mismatch_a_root_that_is_claimed_falsely_under_a_good_proof() -> None:
    """PS-52 RootMismatch, PS-79: the relay chain's word counts, and the claim is an offence of its own."""
    chain = started()
    candidate = chain.author(RELAY, relay_parent_storage_root=Hash(b"\x05" * 32))
    found = verdict(chain, candidate)
    assert verdicts(found) == [Verdict.ROOT_MISMATCH]
    assert found.evidence[0].subject == (b"\x05" * 32, RELAY.root)


def test_root_mismatch_a_relay_block_that_does_not_exist() -> None:
    """PS-52 RootMismatch."""
    chain = started()
    candidate = chain.author(RELAY)
    with pytest.raises(InvalidBlock) as refused:
        validate_block(chain.head, candidate, RelayContext(RELAY.number, None, Slot(99)))
    assert refused.value.verdict is Verdict.ROOT_MISMATCH
    with pytest.raises(DefensiveFailure):
        validate_block(chain.head, candidate, RelayContext(RelayBlockNumber(7), RELAY.root, Slot(99)))


@each_policy
def test_omitted_below_budget_whichever_node_is_left_out(policy: str) -> None:
    """PS-52, D collator_omits_data_below_limit, D incomplete_below_limit_invalid, defect 4: `OmittedBelowBudget`."""
    chain = started(policy)
    honest = chain.author(RELAY)
    for node in honest.inherent.proof:
        found = verdict(chain, with_proof(honest, [n for n in honest.inherent.proof if n != node]))
        if blake2_256(node) == RELAY.root:
            assert verdicts(found) == [Verdict.ROOT_MISMATCH]
        else:
            assert verdicts(found) == [Verdict.OMITTED_BELOW_BUDGET]
            assert found.evidence[0].subject[0] == blake2_256(node)


def test_omitting_a_publisher_cannot_pass_for_its_absence() -> None:
    """PS-52, defect 3, defect 2: neither its root path nor its leaf can be dropped, and nothing is stored for it."""
    chain = started()
    honest = chain.author(RELAY)
    foreign = chain.author(Relay(6, {para: e for para, e in PUBLISHERS.items() if para != 1000}))
    pretend = with_proof(honest, foreign.inherent.proof)
    assert verdict(chain, pretend).verdict is Verdict.ROOT_MISMATCH
    union = {*honest.inherent.proof} - {
        n for h, n in chain.judge(honest, RELAY).plan.publishers[ParaId(1000)].visited.items()
    }
    assert verdict(chain, with_proof(honest, sorted(union))).verdict is Verdict.OMITTED_BELOW_BUDGET


def test_unused_nodes_whatever_is_added() -> None:
    """PS-52 UnusedNodes, defect 1, D extraneous_nodes_invalid, D collator_includes_extraneous_data."""
    chain = started("nodes")
    honest = chain.author(RELAY)
    junk = [b"junk %d" % i for i in range(200)]
    found = verdict(chain, with_proof(honest, sorted([*honest.inherent.proof, *junk])))
    assert verdicts(found) == [Verdict.UNUSED_NODES]
    assert set(found.evidence[0].subject) == {*map(blake2_256, junk)}
    genuine = [node for h, node in RELAY.nodes.items() if node not in honest.inherent.proof]
    for node in genuine:
        assert verdicts(verdict(chain, with_proof(honest, sorted([*honest.inherent.proof, node])))) == [
            Verdict.UNUSED_NODES
        ]


def test_a_cached_node_in_the_proof_is_unused_and_counts_make_up_for_nothing() -> None:
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


def test_state_root_mismatch() -> None:
    """PS-52 StateRootMismatch: claimed, and executed."""
    chain = started()
    honest = chain.author(RELAY)
    found = verdict(chain, chain.author(RELAY, state_root=Hash(b"\x07" * 32)))
    assert verdicts(found) == [Verdict.STATE_ROOT_MISMATCH]
    assert found.evidence[0].subject == (b"\x07" * 32, honest.header.state_root)


# Several at once


def test_the_first_verdict_in_the_rules_order_wins_and_all_that_hold_are_evidence() -> None:
    """PS-52."""
    chain = started()
    old = Relay(4, PUBLISHERS)
    honest = chain.author(old)
    proof = honest.inherent.proof
    wrong = replace(
        honest,
        header=replace(honest.header, parent_hash=Hash(b"\x01" * 32), state_root=Hash(b"\x02" * 32)),
        inherent=replace(honest.inherent, proof=(*proof[::-1], b"junk", b"junk"), messages_used=77),
    )
    found = verdict(chain, seal(wrong, b"\x09" * 32), old)
    assert verdicts(found) == [
        Verdict.BAD_SEAL,
        Verdict.BAD_PARENT,
        Verdict.RELAY_PARENT_DECREASED,
        Verdict.MESSAGES_MISREPORTED,
        Verdict.DUPLICATE_NODE,
        Verdict.UNSORTED_PROOF,
        Verdict.UNUSED_NODES,
        Verdict.STATE_ROOT_MISMATCH,
    ]
    assert found.verdict is Verdict.BAD_SEAL
    assert str(found).startswith("BadSeal: ")


def test_messages_are_judged_ahead_of_the_proof_though_it_takes_the_proof_to_judge_them() -> None:
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


def test_verdicts_bear_the_names_of_the_rules_in_their_order() -> None:
    """PS-52."""
    assert [v.value for v in Verdict] == [
        "BadSeal",
        "BadParent",
        "RelayParentDecreased",
        "MessagesMisreported",
        "DuplicateNode",
        "UnsortedProof",
        "RootMismatch",
        "OmittedBelowBudget",
        "UnusedNodes",
        "BadExtrinsic",
        "StateRootMismatch",
    ]


# The canonical proof


def tight(policy: str) -> tuple[Chain, Relay]:
    """A chain whose walk stops in the middle: 40 values of 32 KiB against a mebibyte."""
    keys = numbered(40)
    spec = make_spec(
        {1000: keys[:20], 1001: keys}, cache=policy, max_pov_size=1_400_000, reserve_minimum=True, max_value_length=2048
    )
    chain = Chain(spec)
    return chain, Relay(1, {1000: filled(keys, b"v" * 40_000), 1001: filled(keys, b"w" * 30_000)})


@each_policy
def test_a_collator_that_reaches_the_budget_may_leave_out_the_rest_and_only_the_rest(policy: str) -> None:
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
    assert verdict(chain, mixed, relay).verdict in {Verdict.OMITTED_BELOW_BUDGET, Verdict.UNUSED_NODES}


@cache
def canonical(policy: str) -> tuple[Chain, Candidate, Plan]:
    chain = started(policy)
    honest = chain.author(RELAY)
    return chain, honest, chain.judge(honest, RELAY).plan


@each_policy
@given(data=st.data())
def test_of_all_subsets_and_supersets_only_the_canonical_proof_is_accepted(policy: str, data: st.DataObject) -> None:
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
    relay = Relay(6, PUBLISHERS | {1001: {KEYS[0]: b"?"}}, top=nonsense, raw_roots={1002: b"r" * 64})
    outcome = chain.step(relay)
    assert {p for p, share in outcome.plan.publishers.items() if share.disabled} == {1001, 1002}

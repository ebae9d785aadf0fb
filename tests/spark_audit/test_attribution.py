"""A proof's bytes are attributed once each, with what was asked known or told from the proof."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.node_data import PRICES, STATIC, priced, proven

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import derive_child_key, node_cost
from pubsub_emulator.primitives.storage_keys import ACTIVE_CONFIG
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.spark_audit.real_proofs.attribution import TOP, Attribution, attribute, attribute_reads
from pubsub_emulator.spark_audit.real_proofs.open_proof import ProofError
from pubsub_emulator.testing.strategies import keys, values

NETWORK = priced()
STATE = NETWORK.relay.state
ROOT = NETWORK.relay.header.state_root
CHILD = derive_child_key(ParaId(1000))


def ensure_whole(found: Attribution, proof: list[bytes]) -> None:
    """The parts add up to the proof."""
    assert (found.nodes, found.weight) == (len(proof), sum(node_cost(len(node)) for node in proof))
    assert sum(part.weight for part in found.parts) == found.weight


def by_name(found: Attribution) -> dict[str, tuple[str, str | None]]:
    return {part.name: (part.kind, part.state) for part in found.parts if part.key is not None}


def test_a_child_trie_s_keys_are_told_apart_from_the_way_to_its_root() -> None:
    proof = proven(STATE, (), {CHILD: PRICES})
    found = attribute_reads(ROOT, proof, {CHILD: PRICES})
    ensure_whole(found, proof)
    assert by_name(found) == {
        "child trie 1000": ("child trie", "value"),
        **{
            f"child trie 1000: 0x{key.hex()}": ("key", state)
            for key, state in zip(PRICES, ("value", "value", "absent"), strict=True)
        },
    }
    assert found.unread == ()
    root = next(part for part in found.parts if part.kind == "child trie")
    assert root.value == STATE.children[CHILD].root()


def test_what_was_asked_is_told_from_the_proof_alone() -> None:
    proof = proven(STATE, STATIC[:3], {CHILD: PRICES[:2]})
    found = attribute(ROOT, proof, absences=True)
    ensure_whole(found, proof)
    told = by_name(found)
    for name in ("Configuration.ActiveConfig", "Babe.CurrentSlot", "Paras.Heads(3000)", "child trie 1000"):
        assert told[name][1] == "value"
        assert told[name][0] != "neighbour", name
    assert found.unread == ()


def test_nodes_that_prove_an_absence_are_not_unread() -> None:
    proof = proven(STATE, STATIC[3:], {})
    assert [part.kind for part in attribute(ROOT, proof, absences=True).parts if part.weight] == ["absence"]
    assert len(attribute(ROOT, proof).unread) == len(proof)
    [part] = [part for part in attribute_reads(ROOT, proof, {TOP: STATIC[3:]}).parts if part.key is not None]
    assert (part.name, part.state, part.nodes) == ("Paras.Heads(4000)", "absent", len(proof))


def test_nodes_that_nothing_needs_are_unread_and_repeated_ones_are_paid_for() -> None:
    proof = proven(STATE, (ACTIVE_CONFIG,), {})
    junk = b"\x00junk"
    for found in (
        attribute(ROOT, [*proof, junk, proof[0]], absences=True),
        attribute_reads(ROOT, [*proof, junk, proof[0]], {TOP: (ACTIVE_CONFIG,)}),
    ):
        ensure_whole(found, [*proof, junk, proof[0]])
        assert found.unread == (blake2_256(junk),)
        [unread] = [part for part in found.parts if part.kind == "unread"]
        assert unread.weight == node_cost(len(junk)) + node_cost(len(proof[0]))
    asked_less = attribute_reads(ROOT, proven(STATE, (), {CHILD: PRICES}), {CHILD: PRICES[:1]})
    assert len(asked_less.unread) == 3


def test_nodes_below_what_a_chain_may_have_stored_are_unplaced_and_not_unread() -> None:
    proof = proven(STATE, (ACTIVE_CONFIG,), {CHILD: PRICES})
    stored = STATE.children[CHILD].root()
    kept = [node for node in proof if blake2_256(node) != stored]
    junk = b"\x00junk"
    found = attribute(ROOT, [*kept, junk], absences=True, cached=True)
    ensure_whole(found, [*kept, junk])
    assert found.unread == (blake2_256(junk),), "too small to be referred to by its hash"
    assert found.unplaced
    assert {*found.unplaced} <= {blake2_256(node) for node in proven(STATE, (), {CHILD: PRICES})}
    assert attribute(ROOT, kept, absences=True).unread == found.unplaced
    assert attribute(ROOT, proof, absences=True, cached=True).unplaced == ()


def test_without_a_publisher_no_node_can_be_below_a_stored_one() -> None:
    proof = [*proven(STATE, (ACTIVE_CONFIG,), {}), bytes(40)]
    found = attribute(ROOT, proof, absences=True, cached=True)
    ensure_whole(found, proof)
    assert (found.unread, found.unplaced) == ((blake2_256(bytes(40)),), ())


def test_a_child_trie_that_is_not_there_has_only_absent_keys() -> None:
    child = derive_child_key(ParaId(1001))
    proof = proven(STATE, (), {child: PRICES})
    found = attribute_reads(ROOT, proof, {child: PRICES})
    ensure_whole(found, proof)
    assert {state for _, state in by_name(found).values()} == {"absent"}


def test_every_missing_node_is_named_with_the_key_that_needs_it() -> None:
    proof = proven(STATE, (), {CHILD: PRICES[:2]})
    for lost in proof:
        kept = [node for node in proof if node != lost]
        with pytest.raises(ProofError, match=blake2_256(lost).hex()):
            attribute_reads(ROOT, kept, {CHILD: PRICES[:2]})


def test_a_proof_of_another_state_is_refused() -> None:
    proof = proven(STATE, (ACTIVE_CONFIG,), {})
    with pytest.raises(ProofError, match="the root node of the storage root, 0000"):
        attribute_reads(Hash(bytes(32)), proof, {TOP: (ACTIVE_CONFIG,)})
    with pytest.raises(ProofError, match="the node of the storage root 0000"):
        attribute(Hash(bytes(32)), proof)


@given(st.data())
def test_any_read_of_any_state_is_attributed_whole_and_read_right(data: st.DataObject) -> None:
    entries = st.dictionaries(keys(), values(200), max_size=12)
    top = data.draw(entries)
    children = {derive_child_key(ParaId(para)): data.draw(entries) for para in (1, 2)}
    state = State.from_entries(top.items(), {child: rows.items() for child, rows in children.items() if rows})
    asked = {TOP: data.draw(st.lists(keys(), max_size=4, unique=True))}
    asked.update({child: data.draw(st.lists(keys(), max_size=4, unique=True)) for child in children})
    proof = proven(state, asked[TOP], {child: wanted for child, wanted in asked.items() if child != TOP})
    found = attribute_reads(state.root(), proof, asked)
    ensure_whole(found, proof)
    assert found.unread == ()
    read = {(part.trie, part.key): part.value for part in found.parts if part.key is not None}
    for child, wanted in asked.items():
        for key in wanted:
            assert read[child, key] == (top if child == TOP else children[child]).get(key)
    guessed = attribute(state.root(), proof, absences=True)
    ensure_whole(guessed, proof)
    assert guessed.unread == ()

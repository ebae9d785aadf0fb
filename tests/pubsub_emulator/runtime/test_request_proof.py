"""The proof of a request equals sp-trie's for the same keys, and its costs add up."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.storage_keys import child_root_key
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.runtime.framework.relay_request import ChildKey, RelayProofRequest, TopKey
from pubsub_emulator.runtime.framework.request_proof import (
    absent_bytes,
    joined,
    new_bytes,
    open_request,
    path_changes,
    prove,
    read_entry,
    static_request,
)
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.trie.compact import decode_compact, encode_compact
from pubsub_emulator.trie.errors import MissingNode

VECTORS = Path(__file__).parents[2] / "vectors" / "tries"
CHILD = b"crowdloan-7"
TOP = {bytes([n]) * 32: bytes([n]) * (20 + n) for n in range(60)}
ENTRIES = {blake2_256(bytes([n])): bytes([n]) * 50 for n in range(20)}


def un(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def state(**changes: bytes) -> State:
    top = TOP | {un(key): value for key, value in changes.items()}
    return State.from_entries(top.items(), {CHILD: ENTRIES.items()})


def cases() -> list[dict[str, Any]]:
    """Proofs by sp-trie of states of version 1."""
    vectors = json.loads((VECTORS / "proofs.json").read_text())["vectors"]
    return [case for case in vectors if case["version"] == 1]


def test_top_keys_cost_what_sp_trie_says() -> None:
    """The figures of one request: number of nodes, and bytes."""
    checked = 0
    for case in cases():
        entries = [(un(key), un(value)) for key, value in case["entries"]]
        request = RelayProofRequest(tuple(TopKey(un(key)) for key in case["keys"]))
        proof = prove(State.from_entries(entries), request)
        nodes = {un(node) for node in case["proof_nodes"]}
        assert proof.root == un(case["root"])
        if request.keys and entries:
            assert set(proof.nodes.values()) == nodes
            assert proof.size == sum(map(len, nodes))
            nodes = proof.nodes.values()
            # The vectors are older than sp-trie 47, which writes shared nodes once.
            older = encode_compact(proof.root, nodes, repeat_shared=True)
            assert [un(item) for item in case["compact_proof"]] == older
            checked += 1
    assert checked > 10


def test_costs_add_up_to_the_proof() -> None:
    request = RelayProofRequest(
        (
            TopKey(bytes([3]) * 32),
            TopKey(b"absent"),
            ChildKey(CHILD, blake2_256(b"\3")),
            ChildKey(CHILD, b"absent"),
            ChildKey(b"no such trie", b"absent"),
            TopKey(bytes([3]) * 32),
        )
    )
    proof = prove(state(), request)
    assert len(proof.keys) == 5
    total = sum(cost.own_bytes + cost.shared_bytes for cost in proof.keys)
    assert total == pytest.approx(proof.size)
    assert [cost.value is None for cost in proof.keys] == [False, True, False, True, True]
    for cost in proof.keys:
        alone = prove(state(), RelayProofRequest((cost.asked,)))
        assert alone.size == cost.path_bytes
        assert read_entry(proof.root, proof.listed(), cost.asked) == cost.value
    others = prove(state(), RelayProofRequest(request.keys[1:5]))
    assert proof.size - others.size == proof.keys[0].own_bytes
    assert set(decode_compact(proof.root, proof.compact())) == set(proof.nodes.values())


@given(st.lists(st.integers(0, 70), max_size=12), st.lists(st.integers(0, 30), max_size=8))
def test_a_request_costs_at_most_its_keys_alone(top: list[int], child: list[int]) -> None:
    whole = state()
    request = RelayProofRequest(
        (
            *(TopKey(bytes([n]) * 32) for n in top),
            *(ChildKey(CHILD, blake2_256(bytes([n]))) for n in child),
        )
    )
    proof = prove(whole, request)
    assert proof.size <= sum(cost.path_bytes for cost in proof.keys)
    together: dict[Hash, bytes] = {}
    whole.prove(request.top(), request.children(), together)
    assert together == proof.nodes
    for cost in proof.keys:
        assert read_entry(proof.root, proof.nodes.values(), cost.asked) == cost.value


def test_a_key_outside_of_the_proof_is_not_absent() -> None:
    proof = prove(state(), RelayProofRequest((TopKey(bytes([3]) * 32),)))
    with pytest.raises(MissingNode):
        read_entry(proof.root, proof.listed(), TopKey(bytes([9]) * 32))
    with pytest.raises(MissingNode):
        read_entry(proof.root, proof.listed(), ChildKey(CHILD, b"x"))


@given(st.lists(st.integers(0, 70), max_size=12), st.lists(st.integers(0, 30), max_size=8))
def test_nodes_of_a_proof_open_to_the_same_costs(top: list[int], child: list[int]) -> None:
    """Whoever has the nodes of a proof, and others, comes to the costs of the whole state."""
    request = RelayProofRequest(
        (
            *(TopKey(bytes([n]) * 32) for n in top),
            *(ChildKey(CHILD, blake2_256(bytes([n]))) for n in child),
            ChildKey(b"no such trie", b"absent"),
        )
    )
    proof = prove(state(), request)
    others = prove(state(), RelayProofRequest((TopKey(bytes([5]) * 32),)))
    opened = open_request(proof.root, {**others.nodes, **proof.nodes}, request)
    assert opened.nodes == proof.nodes
    # The order of nodes on a way is another: a state may prove from the leaf upwards.
    assert [(each.asked, each.value, each.own_bytes) for each in opened.keys] == [
        (each.asked, each.value, each.own_bytes) for each in proof.keys
    ]


def test_absent_keys_cost_the_nodes_that_only_they_need() -> None:
    there = TopKey(bytes([3]) * 32)
    absent = tuple(ChildKey(b"no such trie", bytes([n])) for n in range(3))
    both = prove(state(), RelayProofRequest((there, *absent)))
    alone = prove(state(), RelayProofRequest((there,)))
    assert absent_bytes(both) == both.size - alone.size > 0
    assert [cost.own_bytes for cost in both.keys[1:]] == [0, 0, 0]
    assert absent_bytes(alone) == 0


def test_an_empty_state_proves_absence() -> None:
    request = RelayProofRequest((TopKey(b"x"), ChildKey(CHILD, b"y")))
    proof = prove(State(), request)
    opened = open_request(proof.root, {}, request)
    assert opened.nodes == proof.nodes
    assert [cost.value for cost in opened.keys] == [None, None]
    assert proof.compact() == [b"\0"]


def test_changes_of_paths_are_counted_between_blocks() -> None:
    near = TopKey(bytes([3]) * 32)
    far = TopKey(bytes([200]) * 32)
    request = RelayProofRequest((near, far, ChildKey(CHILD, blake2_256(b"\3"))))
    proofs = [
        prove(state(), request),
        prove(state(), request),
        prove(state(**{("03" * 32): b"new"}), request),
    ]
    assert path_changes(proofs) == {near: 1, far: 0, request.keys[2]: 0}
    first, second = new_bytes(proofs)
    assert first == 0
    assert 0 < second < proofs[2].size


def test_static_keys_travel_with_a_request() -> None:
    static = static_request(ParaId(2000), state().top.get)
    assert len(static.keys) == 13
    request = RelayProofRequest((static.keys[0], TopKey(child_root_key(CHILD))))
    assert joined(static, request).keys == (*static.keys, request.keys[1])

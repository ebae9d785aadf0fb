"""Every vector of `tests/vectors/tries`: roots, op sequences, proofs, child tries, tampered and third-party ones."""

from typing import Any

import pytest
from support.tries import expected, unhex, unhex_all, unhex_pairs, vectors

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key, publisher_root_key
from pubsub_emulator.primitives.storage_keys import child_root_key
from pubsub_emulator.primitives.types import ParaId, RelayBlockNumber
from pubsub_emulator.trie import (
    BadNode,
    IncompleteProof,
    RootMismatch,
    Trie,
    UnusedNodes,
    decode_compact,
    encode_compact,
    read_child_proof,
    read_proof,
    state_root,
)
from pubsub_emulator.trie.vectors import outcome

ROOT_FILES = [
    "roots",
    "thirdparty/smoldot_calculate_root",
    "thirdparty/sp_trie_lib_rs",
    "thirdparty/w3f_state_trie",
]
ROOTS = [vector for name in ROOT_FILES for vector in vectors(name)]
CHILD_SHAPES = vectors("child_tries") + vectors("pubsub")
NEGATIVE = vectors("negative_proofs")
READ_ORACLES = [
    vector
    for name in ("gossamer_proofs", "smoldot_proof_decode", "sp_trie_test_res")
    for vector in vectors(f"thirdparty/{name}")
    if "oracle" in vector
]


def name_of(vector: dict[str, Any]) -> str:
    return str(vector["name"])


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("vector", ROOTS, ids=name_of)
def test_roots_are_those_of_two_other_implementations(vector: dict[str, Any], version: int) -> None:
    entries = unhex_pairs(vector["entries"])
    want = unhex(vector[f"root_v{version}"])
    grown = Trie(version)
    for key, value in entries:
        grown.insert(key, value)
    assert state_root(entries, version) == want
    assert state_root(reversed(entries), version) == want
    assert Trie.from_entries(entries, version).root() == want
    assert grown.root() == want
    assert list(grown.items()) == sorted(dict(entries).items())


def test_the_root_node_of_one_leaf_is_the_one_in_sp_tries_tests() -> None:
    vector = next(vector for vector in vectors("thirdparty/sp_trie_lib_rs") if "root_node_encoding" in vector)
    into: dict[Any, bytes] = {}
    Trie.from_entries(unhex_pairs(vector["entries"])).prove([b""], into)
    assert list(into.values()) == [unhex(vector["root_node_encoding"])]


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("vector", vectors("op_sequences"), ids=name_of)
def test_roots_after_each_batch_of_writes(vector: dict[str, Any], version: int) -> None:
    trie = Trie(version)
    for batch, want in zip(vector["batches"], vector[f"roots_after_batch_v{version}"], strict=True):
        before, old_root = trie.fork(), trie.root()
        for key, value in batch:
            if value is None:
                trie.remove(unhex(key))
            else:
                trie.insert(unhex(key), unhex(value))
        assert trie.root() == unhex(want)
        assert before.root() == old_root
    final = sorted(unhex_pairs(vector["final_entries"]))
    assert list(trie.items()) == final
    assert len(trie) == len(final)


@pytest.mark.parametrize("vector", vectors("proofs"), ids=name_of)
def test_read_proofs_are_made_and_read(vector: dict[str, Any]) -> None:
    trie = Trie.from_entries(unhex_pairs(vector["entries"]), vector["version"])
    root, nodes = unhex(vector["root"]), unhex_all(vector["proof_nodes"])
    reads = expected(vector["results"])
    into: dict[Any, bytes] = {}
    trie.prove(unhex_all(vector["keys"]), into)
    assert trie.root() == root
    assert sorted(into.values()) == nodes
    assert all(name == blake2_256(node) for name, node in into.items())
    assert read_proof(root, nodes, reads, exact=True) == reads


@pytest.mark.parametrize("vector", vectors("proofs") + CHILD_SHAPES, ids=name_of)
def test_compact_proofs_convert_both_ways(vector: dict[str, Any]) -> None:
    root, nodes, items = unhex(vector["root"]), unhex_all(vector["proof_nodes"]), unhex_all(vector["compact_proof"])
    assert encode_compact(root, nodes) == items
    assert decode_compact(root, items) == sorted(set(nodes))


@pytest.mark.parametrize("vector", CHILD_SHAPES, ids=name_of)
def test_child_tries_are_proven_and_read_with_their_top_trie(vector: dict[str, Any]) -> None:
    """PS-1, PS-2: roots of child tries stand in the top trie under their prefixed keys."""
    version = vector["version"]
    top = Trie.from_entries(
        unhex_pairs(vector["top_entries" if "top_entries" in vector else "relay_top_entries"]), version
    )
    children: dict[bytes, Trie] = {}
    for child in vector.get("children", []):
        children[unhex(child["storage_key"])] = Trie.from_entries(unhex_pairs(child["entries"]), version)
    for child in vector.get("child_roots", []):
        assert children[unhex(child["storage_key"])].root() == unhex(child["root"])
    for publisher in vector.get("publishers", []):
        storage_key = derive_child_key(ParaId(publisher["para_id"]))
        assert storage_key == unhex(publisher["child_storage_key"])
        assert publisher_root_key(ParaId(publisher["para_id"])) == unhex(publisher["top_key"])
        child_trie = children[storage_key] = Trie(version)
        for item in publisher["items"]:
            entry = PublishedEntry(unhex(item["value"]), item["ttl"], RelayBlockNumber(item["when_inserted"])).encode()
            assert entry == unhex(item["encoded"])
            child_trie.insert(unhex(item["key"]), entry)
        assert child_trie.root() == unhex(publisher["child_root"])
    for storage_key, child_trie in children.items():
        if child_trie:
            top.insert(child_root_key(storage_key), child_trie.root())
    root = unhex(vector["root"])
    assert top.root() == root

    into: dict[Any, bytes] = {}
    top.prove(unhex_all(vector["read_top_keys"]), into)
    nodes = unhex_all(vector["proof_nodes"])
    for read in vector["read_child_keys"]:
        storage_key = unhex(read["storage_key"])
        top.prove([child_root_key(storage_key)], into)
        if children.get(storage_key):
            children[storage_key].prove(unhex_all(read["keys"]), into)
        results = expected([one for one in vector["child_results"] if one["storage_key"] == read["storage_key"]])
        assert read_child_proof(root, nodes, storage_key, results) == results
    assert sorted(into.values()) == nodes
    tops = expected(vector["top_results"])
    assert read_proof(root, nodes, tops) == tops


@pytest.mark.parametrize("vector", [vector for vector in NEGATIVE if "reads" in vector], ids=name_of)
def test_tampered_proofs_read_as_sp_trie_reads_them(vector: dict[str, Any]) -> None:
    root, nodes = unhex(vector["root"]), unhex_all(vector["nodes"])
    assert vector["root_present"] == (root in {blake2_256(node) for node in nodes})
    for read in vector["reads"]:
        assert outcome(root, nodes, unhex(read["key"])) == read["result"]


@pytest.mark.parametrize("vector", [vector for vector in NEGATIVE if "reads" not in vector], ids=name_of)
def test_tampered_compact_proofs_are_refused(vector: dict[str, Any]) -> None:
    wanted: Any = {
        "TrieError": (BadNode, IncompleteProof),
        "ExtraneousChildNode": UnusedNodes,
        "RootMismatch": RootMismatch,
    }[vector["expect"]["error"]]
    with pytest.raises(wanted):
        decode_compact(unhex(vector["root"]), unhex_all(vector["compact_proof"]))


@pytest.mark.parametrize("vector", READ_ORACLES, ids=name_of)
def test_third_party_proofs_read_as_sp_trie_reads_them(vector: dict[str, Any]) -> None:
    root, nodes = unhex(vector["root"]), unhex_all(vector["nodes"])
    reads = vector["oracle"]["sp_trie_reads"]
    for read in reads:
        assert outcome(root, nodes, unhex(read["key"])) == read["result"]
    entries = vector["oracle"]["smoldot_entries"]
    if entries is not None:
        assert read_proof(root, nodes, [unhex(key) for key, _ in entries]) == {
            unhex(key): unhex(value) for key, value in entries
        }


def test_assertions_of_smoldots_own_test_hold() -> None:
    vector = next(vector for vector in vectors("thirdparty/smoldot_proof_decode") if "assertions_in_source" in vector)
    for key, wanted in vector["assertions_in_source"].items():
        got = outcome(unhex(vector["root"]), unhex_all(vector["nodes"]), unhex(key))
        words = {"absent": {"absent": True}, "incomplete": {"error": "IncompleteDatabase"}}
        assert got == words.get(wanted, {"value": wanted})


def test_keys_under_a_prefix_of_a_real_proof_are_present() -> None:
    for vector in vectors("thirdparty/smoldot_prefix_proof"):
        nodes = {node: None for proof in vector["proofs"] for node in unhex_all(proof)}
        names = {blake2_256(node) for node in nodes}
        assert unhex(vector["root"]) in names
        listed = unhex_all(vector["expected_keys_under_prefix"])
        seen = 0
        for key in listed[::16]:
            # Values of such a proof may be left out; a missing one is named at the end of the key, never "absent".
            got = outcome(unhex(vector["root"]), list(nodes), key)
            assert "absent" not in got
            seen += "value" in got
        assert seen

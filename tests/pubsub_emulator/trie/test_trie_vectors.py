"""Every vector of tries, and real relay proofs of `examples/mainnet`: every read equals that of
sp-trie.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.plumbing.vectors import each_case
from support.trie.mainnet import MAINNET

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.hexadecimal import unhex
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.trie import Trie, decode_compact, encode_compact, read_proof
from pubsub_emulator.trie.vectors import FORMATS, outcome


@each_case("trie*/**/*.json", FORMATS)
def test_a_vector_holds_ps1_ps2(check: Callable[[], None]) -> None:
    check()


def test_the_root_node_of_one_leaf_is_that_of_sp_tries_tests() -> None:
    kept = json.loads(
        (Path(__file__).parents[2] / "vectors/tries/thirdparty/sp_trie_lib_rs.json").read_text()
    )
    vector = next(vector for vector in kept["vectors"] if "root_node_encoding" in vector)
    into: dict[Hash, bytes] = {}
    Trie.from_entries([(unhex(key), unhex(value)) for key, value in vector["entries"]]).prove(
        [b""], into
    )
    assert list(into.values()) == [unhex(vector["root_node_encoding"])]


each_proof = pytest.mark.parametrize(
    "proof",
    [pytest.param(json.loads(path.read_text(encoding="utf-8")), id=path.stem) for path in MAINNET],
)


@each_proof
def test_every_key_reads_as_sp_trie_read_it(proof: dict[str, Any]) -> None:
    root, nodes = unhex(proof["relayParentStorageRoot"]), [*map(unhex, proof["trieNodes"])]
    assert root in {blake2_256(node) for node in nodes}
    for name, read in proof.get("reads_sp_trie", {}).items():
        wanted = {kind: read[kind] for kind in ("value", "absent", "error") if kind in read}
        assert outcome(root, nodes, unhex(read["key"])) == wanted, name


@each_proof
def test_every_entry_that_another_implementation_found_is_read(proof: dict[str, Any]) -> None:
    root, nodes = unhex(proof["relayParentStorageRoot"]), [*map(unhex, proof["trieNodes"])]
    entries = {unhex(key): unhex(value) for key, value in proof.get("known_entries_smoldot", [])}
    assert read_proof(root, nodes, entries) == entries


@each_proof
def test_compact_forms_convert_both_ways(proof: dict[str, Any]) -> None:
    root, nodes = unhex(proof["relayParentStorageRoot"]), [*map(unhex, proof["trieNodes"])]
    repeated = encode_compact(root, nodes, repeat_shared=True)
    if "compact_proof_sp_trie" in proof:  # from a version before 47
        assert repeated == [*map(unhex, proof["compact_proof_sp_trie"])]
    items = encode_compact(root, nodes)
    assert len(items) <= len(repeated)
    for form in (items, repeated):
        assert decode_compact(root, form) == sorted(set(nodes))


@each_proof
def test_parent_heads_are_headers_that_hash_to_the_parent_hash(proof: dict[str, Any]) -> None:
    if "parentHead" in proof:
        head = unhex(proof["parentHead"])
        assert blake2_256(head) == unhex(proof["parentHash"])
        assert Header.decode(head).encode() == head
        assert Header.decode(head).hash() == unhex(proof["parentHash"])

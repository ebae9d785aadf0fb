"""Real relay proofs of `examples/mainnet`: every read equals sp-trie's, and compact forms convert both ways."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.tries import MAINNET, unhex, unhex_all

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.trie import decode_compact, encode_compact, read_proof
from pubsub_emulator.trie.vectors import outcome


def load(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


@pytest.mark.parametrize("path", MAINNET, ids=lambda path: path.stem)
def test_every_key_reads_as_sp_trie_read_it(path: Path) -> None:
    proof = load(path)
    root, nodes = unhex(proof["relayParentStorageRoot"]), unhex_all(proof["trieNodes"])
    assert root in {blake2_256(node) for node in nodes}
    for name, read in proof.get("reads_sp_trie", {}).items():
        wanted = {kind: read[kind] for kind in ("value", "absent", "error") if kind in read}
        assert outcome(root, nodes, unhex(read["key"])) == wanted, name


@pytest.mark.parametrize("path", MAINNET, ids=lambda path: path.stem)
def test_every_entry_that_another_implementation_found_is_read(path: Path) -> None:
    proof = load(path)
    root, nodes = unhex(proof["relayParentStorageRoot"]), unhex_all(proof["trieNodes"])
    entries = {unhex(key): unhex(value) for key, value in proof.get("known_entries_smoldot", [])}
    assert read_proof(root, nodes, entries) == entries


@pytest.mark.parametrize("path", MAINNET, ids=lambda path: path.stem)
def test_compact_forms_convert_both_ways(path: Path) -> None:
    proof = load(path)
    root, nodes = unhex(proof["relayParentStorageRoot"]), unhex_all(proof["trieNodes"])
    items = encode_compact(root, nodes)
    if "compact_proof_sp_trie" in proof:
        assert items == unhex_all(proof["compact_proof_sp_trie"])
    assert decode_compact(root, items) == sorted(set(nodes))


@pytest.mark.parametrize("path", MAINNET, ids=lambda path: path.stem)
def test_parent_heads_are_headers_that_hash_to_the_parent_hash(path: Path) -> None:
    proof = load(path)
    if "parentHead" in proof:
        head = unhex(proof["parentHead"])
        assert blake2_256(head) == unhex(proof["parentHash"])
        assert Header.decode(head).encode() == head
        assert Header.decode(head).hash() == unhex(proof["parentHash"])

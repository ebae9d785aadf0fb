"""The formats of vectors of tries and their proofs, as `pubsub vectors check` reads them."""

from collections.abc import Callable, Mapping
from itertools import chain as chained
from typing import Final

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.hexadecimal import hexed, unhex
from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key, publisher_root_key
from pubsub_emulator.primitives.storage_keys import child_root_key
from pubsub_emulator.primitives.types import Hash, ParaId, RelayBlockNumber
from pubsub_emulator.primitives.vectors import Document, Format, Mismatch, each_vector, has, same
from pubsub_emulator.trie.bulk import state_root
from pubsub_emulator.trie.compact import decode_compact, encode_compact
from pubsub_emulator.trie.errors import (
    BadNode,
    IncompleteProof,
    MissingNode,
    RootMismatch,
    TrieError,
    UnusedNodes,
)
from pubsub_emulator.trie.mutable import Trie
from pubsub_emulator.trie.omitted import check_omitted
from pubsub_emulator.trie.proof import read_child_proof, read_proof

_ERRORS: Final[dict[str, tuple[type[TrieError], ...]]] = {
    "TrieError": (BadNode, IncompleteProof),
    "ExtraneousChildNode": (UnusedNodes,),
    "RootMismatch": (RootMismatch,),
}


def _all(texts: list[str]) -> list[bytes]:
    return [unhex(text) for text in texts]


def _pairs(pairs: list[list[str]]) -> list[tuple[bytes, bytes]]:
    return [(unhex(key), unhex(value)) for key, value in pairs]


def _reads(reads: list[Document]) -> dict[bytes, bytes | None]:
    return {
        unhex(read["key"]): unhex(read["result"]["value"]) if "value" in read["result"] else None
        for read in reads
    }


def check_roots(vector: Document) -> None:
    """Check the roots of the listed entries in both layouts, in bulk and by insertion."""
    entries = _pairs(vector["entries"])
    for version in (0, 1):
        stated = unhex(vector[f"root_v{version}"])
        same(f"the root in layout V{version}", bytes(state_root(entries, version)), stated)
        grown = Trie(version)
        for key, value in entries:
            grown.insert(key, value)
        same(f"the grown root in layout V{version}", bytes(grown.root()), stated)


def check_writes(vector: Document) -> None:
    """Check the root after each batch of writes, and the entries that are left."""
    for version in (0, 1):
        trie = Trie(version)
        roots = vector[f"roots_after_batch_v{version}"]
        for at, (batch, stated) in enumerate(zip(vector["batches"], roots, strict=True)):
            for key, value in batch:
                if value is None:
                    trie.remove(unhex(key))
                else:
                    trie.insert(unhex(key), unhex(value))
            same(
                f"the root after batch {at} in layout V{version}", bytes(trie.root()), unhex(stated)
            )
        same("what is left", list(trie.items()), sorted(_pairs(vector["final_entries"])))


def check_proof(vector: Document) -> None:
    """Check that a read proof is made and read, and converted to and from its compact form."""
    trie = Trie.from_entries(_pairs(vector["entries"]), vector["version"])
    root = Hash(unhex(vector["root"]))
    same("the root", bytes(trie.root()), bytes(root))
    into: dict[Hash, bytes] = {}
    trie.prove(_all(vector["keys"]), into)
    nodes = _all(vector["proof_nodes"])
    same("the proof", sorted(into.values()), sorted(nodes))
    reads = _reads(vector["results"])
    same("the keys", sorted(reads), sorted(_all(vector["keys"])))
    same("what is read", read_proof(root, nodes, reads, exact=True), reads)
    _check_compact(root, nodes, vector["compact_proof"])


def _check_compact(root: Hash, nodes: list[bytes], compact: list[str]) -> None:
    """Check a compact proof in either form, with shared nodes written once or repeated."""
    items = _all(compact)
    once = encode_compact(root, nodes)
    if items != encode_compact(root, nodes, repeat_shared=True):
        same("the compact proof", once, items)
    for form in (items, once):
        same("the proof of the compact one", decode_compact(root, form), sorted(set(nodes)))


def check_omitted_proof(vector: Document) -> None:
    """Check that a proof without the read values holds for them and not for other values."""
    nodes = _all(vector["proof"])
    root = unhex(vector["root"])
    if vector.get("entries") is not None:
        same(
            "the root",
            bytes(Trie.from_entries(_pairs(vector["entries"]), vector["version"]).root()),
            root,
        )
    for items, expected in (("items", "expect"), ("tampered_items", "tampered_expect")):
        reads = {
            unhex(key): None if value is None else unhex(value) for key, value in vector[items]
        }
        try:
            check_omitted(root, nodes, reads, vector["version"])
        except TrieError as error:
            result = {"error": type(error).__name__, "ok": False}
        else:
            result = {"ok": True}
        same(f"what is found of {items}", result, vector[expected])


def check_children(vector: Document) -> None:
    """Check child tries, their roots in the top trie, and one proof over all of them."""
    version = vector["version"]
    listed = vector["top_entries"] if "top_entries" in vector else vector["relay_top_entries"]
    top = Trie.from_entries(_pairs(listed), version)
    children = _children(vector, version)
    for storage_key, child in children.items():
        if child:
            top.insert(child_root_key(storage_key), child.root())
    root = Hash(unhex(vector["root"]))
    same("the root", bytes(top.root()), bytes(root))
    into: dict[Hash, bytes] = {}
    nodes = _all(vector["proof_nodes"])
    tops = _reads(vector["top_results"])
    same("the keys of the top trie", sorted(tops), sorted({*_all(vector["read_top_keys"])}))
    top.prove(_all(vector["read_top_keys"]), into)
    for read in vector["read_child_keys"]:
        storage_key = unhex(read["storage_key"])
        keys = _all(read["keys"])
        top.prove([child_root_key(storage_key)], into)
        if children.get(storage_key):
            children[storage_key].prove(keys, into)
        results = _reads(
            [one for one in vector["child_results"] if unhex(one["storage_key"]) == storage_key]
        )
        same("the keys of a child", sorted(results), sorted({*keys}))
        same(
            "what is read of a child", read_child_proof(root, nodes, storage_key, results), results
        )
    same("the proof", sorted(into.values()), sorted(nodes))
    same("what is read of the top trie", read_proof(root, nodes, tops), tops)
    _check_compact(root, nodes, vector["compact_proof"])


def _children(vector: Document, version: int) -> dict[bytes, Trie]:
    """Return the child tries of a vector by storage key.

    Checks the roots, keys and entries that the vector states for them.
    """
    children = {
        unhex(child["storage_key"]): Trie.from_entries(_pairs(child["entries"]), version)
        for child in vector.get("children", [])
    }
    for child in vector.get("child_roots", []):
        same(
            "a child's root",
            bytes(children[unhex(child["storage_key"])].root()),
            unhex(child["root"]),
        )
    for publisher in vector.get("publishers", []):
        para = ParaId(publisher["para_id"])
        storage_key = derive_child_key(para)
        same("a publisher's storage key", storage_key, unhex(publisher["child_storage_key"]))
        same(
            "a publisher's place in the top trie",
            publisher_root_key(para),
            unhex(publisher["top_key"]),
        )
        trie = children[storage_key] = Trie(version)
        for item in publisher["items"]:
            entry = PublishedEntry(
                unhex(item["value"]), item["ttl"], RelayBlockNumber(item["when_inserted"])
            ).encode()
            same("an entry", entry, unhex(item["encoded"]))
            trie.insert(unhex(item["key"]), entry)
        same("a publisher's root", bytes(trie.root()), unhex(publisher["child_root"]))
    return children


def check_tampered(vector: Document) -> None:
    """Check the result of reading a tampered proof: the value, absence, or the error."""
    root = Hash(unhex(vector["root"]))
    if "compact_proof" in vector:
        wanted = _ERRORS[vector["expect"]["error"]]
        try:
            decode_compact(root, _all(vector["compact_proof"]))
        except wanted:
            return
        except TrieError as error:
            raise Mismatch(
                f"it is refused as {type(error).__name__}, the vector states {vector['expect']}"
            ) from None
        raise Mismatch(f"the proof is taken, the vector states {vector['expect']}")
    nodes = _all(vector["nodes"])
    same(
        "whether the root is there",
        root in {blake2_256(node) for node in nodes},
        vector["root_present"],
    )
    for read in vector["reads"]:
        same(f"key {read['key']}", outcome(root, nodes, unhex(read["key"])), read["result"])


def check_foreign(vector: Document) -> None:
    """Compare reading a proof with the results of other implementations.

    A vector without a root lists only nodes.
    """
    if "oracle" not in vector:
        return
    root = Hash(unhex(vector["root"]))
    nodes = _all(vector["nodes"])
    oracle = vector["oracle"]
    same(
        "whether the root is there",
        root in {blake2_256(node) for node in nodes},
        oracle["root_present"],
    )
    for read in oracle["sp_trie_reads"]:
        same(f"key {read['key']}", outcome(root, nodes, unhex(read["key"])), read["result"])
    entries = dict(_pairs(oracle["smoldot_entries"] or []))
    same("what is there", read_proof(root, nodes, entries), entries)
    for key, wanted in vector.get("assertions_in_source", {}).items():
        stated = {"absent": {"absent": True}, "incomplete": {"error": "IncompleteDatabase"}}.get(
            wanted
        )
        same(f"key {key}", outcome(root, nodes, unhex(key)), stated or {"value": wanted})


def check_prefix(vector: Document) -> None:
    """Check that a proof in several parts holds the keys under a prefix.

    The proof may omit their values.
    """
    nodes = list(dict.fromkeys(chained.from_iterable(map(_all, vector["proofs"]))))
    root = Hash(unhex(vector["root"]))
    for key in vector["expected_keys_under_prefix"]:
        if "absent" in outcome(root, nodes, unhex(key)):
            raise Mismatch(f"key {key} is absent, the vector states that it is there")


def outcome(root: Hash, nodes: list[bytes], key: bytes) -> Mapping[str, object]:
    """Return the result of reading one key, in the words of the vectors."""
    try:
        value = read_proof(root, nodes, [key])[key]
    except MissingNode as error:
        return {"error": "InvalidStateRoot" if error.hash == error.root else "IncompleteDatabase"}
    except BadNode:
        return {"error": "DecoderError"}
    return {"absent": True} if value is None else {"value": hexed(value)}


def _format(
    name: str, fields: tuple[str, ...], check: Callable[[Document], None], *unchecked: str
) -> Format:
    return Format(name, has(*fields), each_vector(check), unchecked)


FORMATS: Final = (
    _format("state roots", ("entries", "root_v0", "root_v1"), check_roots),
    _format("writes", ("batches", "roots_after_batch_v0", "final_entries"), check_writes),
    _format(
        "read proofs",
        ("entries", "keys", "root", "proof_nodes", "results", "compact_proof"),
        check_proof,
        "trie_proof_values_omitted",
        "full_trie_node_count",
    ),
    _format(
        "proofs without values", ("root", "proof", "items", "tampered_items"), check_omitted_proof
    ),
    _format(
        "child tries", ("top_entries", "children", "child_roots", "proof_nodes"), check_children
    ),
    _format("publishers", ("relay_top_entries", "publishers", "proof_nodes"), check_children),
    Format(
        "proofs of others",
        lambda document: "source" in document and has("name", "nodes")(document),
        each_vector(check_foreign),
        ("delta_valid_order", "delta_other_order", "new_root", "next_key", "oracle.smoldot_error"),
    ),
    _format("keys under a prefix", ("root", "expected_keys_under_prefix", "proofs"), check_prefix),
    _format(
        "tampered proofs",
        ("kind", "root", "nodes", "reads"),
        check_tampered,
        "smoldot_known_entries",
        "smoldot_error",
    ),
)

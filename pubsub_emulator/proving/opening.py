"""Open a node's read proof: show its values, and attribute its bytes to keys."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pubsub_emulator.explorer.svg import arrange, render
from pubsub_emulator.explorer.tree import Below, Drawn, Fate, Sources, TreeQuery, draw
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX, child_root_key
from pubsub_emulator.primitives.types import U32_MAX, Hash, ParaId
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.proving.names import OwnNames, fixed_names, names_from
from pubsub_emulator.proving.requests import request_of
from pubsub_emulator.proving.sources import SECONDS
from pubsub_emulator.runtime.framework.words import words
from pubsub_emulator.spark_audit.real_proofs import attribution as shares
from pubsub_emulator.spark_audit.real_proofs.node_data import (
    NodeDataError,
    NodeProof,
    read_node_data,
    root_of,
)
from pubsub_emulator.spark_audit.real_proofs.open_proof import ProofError

FORMAT: Final = 1
_NAME: Final = 46
"""The maximum number of characters of a part's name in a table."""
_PREVIEW: Final = 16
"""The maximum number of bytes of a value that are shown."""
_PUBLISHER: Final = derive_child_key(ParaId(0))[:-4]
"""The beginning of the child keys of all publishers, before the para id."""


@dataclass(frozen=True, slots=True)
class AttributedProof:
    """A proof with the attribution of its bytes."""

    proof: NodeProof
    root: Hash
    attribution: shares.Attribution
    names: OwnNames

    def name(self, part: shares.ProofShare) -> str:
        """Return a part in words. A key of the top trie has the name that the metadata gives it."""
        if part.key is not None and part.trie == shares.TOP:
            return self.names.top_name(part.key)
        return part.name

    @property
    def has_unread(self) -> bool:
        """Whether the proof has bytes that no key needs."""
        return any(part.kind == "unread" for part in self.attribution.parts)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The keys for which proofs were made, as a user names them."""

    child: str | None = None
    """The proven child trie: a publisher's id, or a storage key as 0x…"""
    keys: Sequence[str] = ()
    """Keys of `child`, or of the top trie, as 0x…"""
    top: Sequence[str] = ()
    """Keys of the top trie: 0x… or names."""
    request: str | None = None
    """A whole request: SCALE as 0x…, a file or a URL."""


INFERRED: Final = Wanted()
"""The keys of the request in a file, or without a request those that the proof itself shows."""


def open_proofs(
    files: Sequence[Path],
    wanted: Wanted = INFERRED,
    *,
    root: str | None = None,
    metadata: str | None = None,
) -> list[AttributedProof]:
    """Return the proofs in files of a node's answers, with their bytes attributed to keys.

    `root` is the state root. By default it is taken from the block's header, which must be among
    the files. `metadata` is a node or a file by which keys have names.

    Raises `NodeDataError`, `ProofError`, and `InputError`, `ClientError` for a request or names
    that cannot be used.
    """
    names = fixed_names() if metadata is None else names_from(metadata, SECONDS)
    asked = _requested(wanted.child, wanted.keys, wanted.top, wanted.request, names)
    data = read_node_data(files)
    if not data.proofs:
        headers = counted(len(data.headers), "header")
        raise NodeDataError(f"{', '.join(map(str, files))}: no read proof, only {headers}")
    root_hash = None if root is None else Hash(_hex("--root", root))
    if root_hash is not None and len(root_hash) != 32:
        raise NodeDataError(f"--root has {counted(len(root_hash), 'byte')}, not 32")
    opened = []
    for proof in data.proofs:
        state_root = root_of(proof, data.headers) if root_hash is None else root_hash
        try:
            attribution = _attribute(proof, state_root, wanted.child, asked)
        except ProofError as error:
            raise ProofError(f"{proof.place}: {error}") from None
        opened.append(AttributedProof(proof, state_root, attribution, names))
    return opened


def document(opened: Sequence[AttributedProof]) -> dict[str, object]:
    """Return opened proofs as a JSON object."""
    return {"format": FORMAT, "proofs": [_as_json(proof) for proof in opened]}


def drawing(opened: Sequence[AttributedProof]) -> str:
    """Return the tries of opened proofs as SVG."""
    trees = itertools.chain.from_iterable(map(_tree, opened))
    return render(arrange(trees))


HEADER: Final = ("", "what", "nodes", "own bytes", "whole path", "value")
"""The header of `rows`."""


def head(opened: AttributedProof) -> list[str]:
    """Return two lines of text with the sizes and the state root of a proof."""
    attribution = opened.attribution
    proof = opened.proof
    of_block = "" if proof.at is None else f" of block 0x{proof.at.hex()}"
    nodes = counted(attribution.nodes, "node")
    sizes = (
        f"{proof.place}: {counted(attribution.weight, 'byte')} in {nodes}{of_block},"
        f" state root 0x{opened.root.hex()}"
    )
    without = (
        "Each node counts with its length before it, as in a block. Without the lengths, the"
        f" nodes have {counted(attribution.node_bytes, 'byte')}."
    )
    return [sizes, without]


def rows(opened: AttributedProof) -> list[tuple[object, ...]]:
    """Return a row for each part of a proof."""
    table_rows: list[tuple[object, ...]] = []
    for part in opened.attribution.parts:
        path = "" if part.path_bytes is None else part.path_bytes
        table_rows.append(
            (
                part.kind,
                _part_words(opened, part),
                part.nodes,
                part.weight,
                path,
                _value_words(part),
            )
        )
    return table_rows


def unneeded(opened: AttributedProof) -> list[str]:
    """Return a line for each node that is not needed."""
    unread = [f"unread node {hexed(node_hash)}" for node_hash in opened.attribution.unread]
    unplaced = [
        f"unplaced node {hexed(node_hash)}: no node of the proof leads to it"
        for node_hash in opened.attribution.unplaced
    ]
    return unread + unplaced


def _requested(
    child: str | None,
    keys: Sequence[str],
    top: Sequence[str],
    request: str | None,
    names: OwnNames,
) -> dict[bytes, list[bytes]]:
    """Return the keys that the caller names, by trie. Without keys, the result is empty."""
    keys_by_trie: dict[bytes, list[bytes]] = {}
    if request is not None:
        proof_request = request_of(request, names, SECONDS)
        keys_by_trie[shares.TOP] = list(proof_request.top())
        for trie, trie_keys in proof_request.children().items():
            keys_by_trie[trie] = list(trie_keys)
    if top:
        keys_by_trie.setdefault(shares.TOP, []).extend(names.key(text) for text in top)
    if keys:
        trie = shares.TOP if child is None else _child_key(child)
        keys_by_trie.setdefault(trie, []).extend(_hex("--key", key) for key in keys)
    return keys_by_trie


def _attribute(
    proof: NodeProof, root: Hash, child: str | None, asked: Mapping[bytes, Sequence[bytes]]
) -> shares.Attribution:
    """Attribute the bytes to the requested keys, or to the keys that the proof itself shows.

    The caller's keys have precedence over the request in a file.
    """
    trie = shares.TOP if child is None else _child_key(child)
    name = shares.child_trie_name(trie)
    if asked:
        return shares.attribute_reads(root, proof.nodes, asked)
    if proof.requested is not None:
        if child is not None and trie not in proof.requested:
            raise ProofError(f"the request did not ask for {name}")
        return shares.attribute_reads(root, proof.nodes, proof.requested)
    if trie != shares.TOP:
        # This raises if the proof does not show the trie's root.
        shares.attribute_reads(root, proof.nodes, {trie: ()})
    # Without a request, this may be the proof in a subscriber's block. Such a proof omits the nodes
    # that the subscriber has in its cache.
    attribution = shares.attribute(root, proof.nodes, absences=True, cached=True)
    if trie != shares.TOP and not any(part.trie == trie for part in attribution.parts):
        for part in attribution.parts:
            if (
                part.trie == shares.TOP
                and part.key == child_root_key(trie)
                and part.value is not None
            ):
                raise ProofError(
                    f"the root node of {name}, {part.value.hex()}, is not in the proof"
                )
    return attribution


def _child_key(text: str) -> bytes:
    """Return a child trie's storage key: of a publisher by its id, or in hex.

    The hex may begin with the prefix of child tries.
    """
    if text.isdecimal() and int(text) <= U32_MAX:
        return derive_child_key(ParaId(int(text)))
    if not text.startswith("0x"):
        raise NodeDataError(f"--child {text}: neither a parachain's id nor a storage key in hex")
    return _hex("--child", text).removeprefix(CHILD_STORAGE_PREFIX)


def _hex(option: str, text: str) -> bytes:
    """Parse the hexadecimal value of an option. Raises `NodeDataError`."""
    try:
        return bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        raise NodeDataError(f"{option} {text}: not hex") from None


def _value_words(part: shares.ProofShare) -> str:
    """Return the value of a key in words. A publisher's entry is decoded."""
    if part.state == "not proven":
        return "its value is not in the proof"
    if part.value is None:
        return part.state or ""
    if part.trie.startswith(_PUBLISHER):
        try:
            entry = PublishedEntry.decode(part.value)
        except ScaleError:
            return f"{words(part.value, _PREVIEW)}, no published entry"
        return (
            f"{words(entry.value, _PREVIEW)}, ttl {entry.ttl}, inserted in block"
            f" {entry.when_inserted}"
        )
    return words(part.value, _PREVIEW)


def _part_words(opened: AttributedProof, part: shares.ProofShare) -> str:
    """Return a part in words. A long key is cut to leave room for figures."""
    name = opened.name(part)
    if part.key is None:
        return name
    if len(name) <= _NAME:
        return name
    return f"{name[: _NAME - 10]}…{name[-8:]}"


def _as_json(opened: AttributedProof) -> dict[str, object]:
    """Return a proof as a JSON object: its place, its parts, and the hashes of unneeded nodes.

    Sizes are in bytes, and hashes are hexadecimal digits with 0x.
    """
    attribution = opened.attribution
    proof = opened.proof
    block = None if proof.at is None else hexed(proof.at)
    place = {"place": proof.place, "block": block, "state_root": hexed(opened.root)}
    parts = {
        "nodes": attribution.nodes,
        "bytes": attribution.weight,
        "node_bytes": attribution.node_bytes,
        "parts": [_part_as_json(part, opened.name(part)) for part in attribution.parts],
    }
    nodes = {
        "unread": list(map(hexed, attribution.unread)),
        "unplaced": list(map(hexed, attribution.unplaced)),
    }
    return {**place, **parts, **nodes}


def _part_as_json(part: shares.ProofShare, name: str) -> dict[str, object]:
    """Return a part as a JSON object, with sizes in bytes. `trie` is null for the top trie."""
    return {
        "kind": part.kind,
        "name": name,
        "trie": None if part.trie == shares.TOP else hexed(part.trie),
        "key": None if part.key is None else hexed(part.key),
        "state": part.state,
        "value": None if part.value is None else hexed(part.value),
        "nodes": part.nodes,
        "bytes": part.weight,
        "path_bytes": part.path_bytes,
    }


def _tree(opened: AttributedProof) -> list[Drawn]:
    """Return the nodes that were read, for drawing.

    Each child trie is below the key that stores its root.
    """
    keys: dict[bytes, list[shares.ProofShare]] = {}
    for part in opened.attribution.parts:
        if part.key is not None:
            keys.setdefault(part.trie, []).append(part)
    below = {
        child_root_key(trie).hex(): Below(_asked(parts), note=shares.child_trie_name(trie))
        for trie, parts in keys.items()
        if trie != shares.TOP
    }
    unread = frozenset(opened.attribution.unread)
    nodes = {blake2_256(node): node for node in opened.proof.nodes}
    sources = Sources(nodes, used=lambda name: Fate.UNUSED if name in unread else Fate.PROVEN)
    return draw(opened.root, _asked(keys.get(shares.TOP, []), below), sources)


def _asked(parts: list[shares.ProofShare], below: dict[str, Below] | None = None) -> TreeQuery:
    """Return the keys of these parts for drawing. `below` has the child tries by root key."""
    names = {part.key.hex(): part.name for part in parts if part.key is not None}
    return TreeQuery(tuple(sorted(names)), names, below or {}, fate=lambda *_: Fate.PRUNED)

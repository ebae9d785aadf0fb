"""`pubsub open-proof`: what a node's read proof says, key by key, and where its bytes went."""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from pubsub_emulator.cli.commands.prove.names import OwnNames, fixed_names, names_from
from pubsub_emulator.cli.commands.prove.requests import request_of
from pubsub_emulator.cli.screen import say, say_document, table
from pubsub_emulator.explorer.svg import arrange, render
from pubsub_emulator.explorer.tree import Below, Drawn, Fate, Sources, TreeQuery, draw
from pubsub_emulator.files.atomic import write_whole
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX, child_root_key
from pubsub_emulator.primitives.types import U32_MAX, Hash, ParaId
from pubsub_emulator.primitives.words import counted
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
_PREVIEW: Final = 16
_SECONDS: Final = 20.0
"""The time that a node has for its metadata, in seconds."""
_PUBLISHER: Final = derive_child_key(ParaId(0))[:-4]


@dataclass(frozen=True, slots=True)
class Opened:
    """A proof with what was found in it."""

    proof: NodeProof
    root: Hash
    found: shares.Attribution
    names: OwnNames

    def name(self, part: shares.ProofShare) -> str:
        """Return a part in words: a key of the top trie by the chain's metadata."""
        is_top = part.key is not None and part.trie == shares.TOP
        return self.names.top_name(part.key) if is_top and part.key is not None else part.name


def open_files(
    *,
    files: Sequence[Path],
    header: Path | None,
    root: str | None,
    child: str | None,
    keys: Sequence[str],
    top: Sequence[str],
    request: str | None,
    metadata: str | None,
    drawing: Path | None,
    as_json: bool,
) -> bool:
    """The command; whether every byte of every proof was needed.

    Raises `NodeDataError`, `ProofError`, and `InputError`, `ClientError` for a request or names
    that cannot be used.
    """
    if header is not None and root is not None:
        raise click.UsageError("give either --header or --root")
    names = fixed_names() if metadata is None else names_from(metadata, _SECONDS)
    asked = _requested(child, keys, top, request, names)
    data = read_node_data([*files, *([] if header is None else [header])])
    if not data.proofs:
        headers = counted(len(data.headers), "header")
        raise NodeDataError(f"{', '.join(map(str, files))}: no read proof, only {headers}")
    given = None if root is None else Hash(_hex("--root", root))
    if given is not None and len(given) != 32:
        raise NodeDataError(f"--root has {counted(len(given), 'byte')}, not 32")
    opened = []
    for proof in data.proofs:
        under = root_of(proof, data.headers) if given is None else given
        try:
            opened.append(Opened(proof, under, _attribute(proof, under, child, asked), names))
        except ProofError as error:
            raise ProofError(f"{proof.place}: {error}") from None
    if as_json:
        say_document(
            json.dumps({"format": FORMAT, "proofs": [_as_json(each) for each in opened]}, indent=1)
        )
    else:
        for each in opened:
            _show(each)
    if drawing is not None:
        trees = itertools.chain.from_iterable(map(_tree, opened))
        write_whole(drawing, render(arrange(trees)))
        say(f"written: {drawing}", aside=as_json)
    return not any(_has_unread(each) for each in opened)


def _has_unread(proof: Opened) -> bool:
    return any(part.kind == "unread" for part in proof.found.parts)


def _requested(
    child: str | None,
    keys: Sequence[str],
    top: Sequence[str],
    request: str | None,
    names: OwnNames,
) -> dict[bytes, list[bytes]]:
    """Return the keys that the command line asks for, by trie. It is empty if it names none."""
    found: dict[bytes, list[bytes]] = {}
    if request is not None:
        whole = request_of(request, names, _SECONDS)
        found[shares.TOP] = list(whole.top())
        for trie, listed in whole.children().items():
            found[trie] = list(listed)
    if top:
        found.setdefault(shares.TOP, []).extend(names.key(text) for text in top)
    if keys:
        trie = shares.TOP if child is None else _child_key(child)
        found.setdefault(trie, []).extend(_hex("--key", key) for key in keys)
    return found


def _attribute(
    proof: NodeProof, root: Hash, child: str | None, asked: Mapping[bytes, Sequence[bytes]]
) -> shares.Attribution:
    """Attribute the bytes to the requested keys, or to the keys that the proof itself shows.

    Keys of the command line come before those of a request in a file.
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
        shares.attribute_reads(
            root, proof.nodes, {trie: ()}
        )  # raises where the trie's root is left open
    # Without a request it may be a subscriber's own proof: what that chain has stored is left out
    # of it.
    found = shares.attribute(root, proof.nodes, absences=True, cached=True)
    if trie != shares.TOP and not any(part.trie == trie for part in found.parts):
        for part in found.parts:
            if (
                part.trie == shares.TOP
                and part.key == child_root_key(trie)
                and part.value is not None
            ):
                raise ProofError(
                    f"the root node of {name}, {part.value.hex()}, is not in the proof"
                )
    return found


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
    try:
        return bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        raise NodeDataError(f"{option} {text}: not hex") from None


def _said(part: shares.ProofShare) -> str:
    """The value of a key; a publisher's entry is decoded."""
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


def _show(opened: Opened) -> None:
    found, proof = opened.found, opened.proof
    of = "" if proof.at is None else f" of block 0x{proof.at.hex()}"
    say(
        f"{proof.place}: {counted(found.weight, 'byte')} in {counted(found.nodes, 'node')}{of},"
        f" state root 0x{opened.root.hex()}",
        f"Each node counts with its length before it, as in a block. Without the lengths, the"
        f" nodes have {counted(found.node_bytes, 'byte')}.",
    )
    rows: list[tuple[object, ...]] = []
    for part in found.parts:
        path = "" if part.path_bytes is None else part.path_bytes
        rows.append((part.kind, _what(opened, part), part.nodes, part.weight, path, _said(part)))
    table("", ("", "what", "nodes", "own bytes", "whole path", "value"), rows)
    for node_hash in found.unread:
        say(f"unread node {hexed(node_hash)}")
    for node_hash in found.unplaced:
        say(f"unplaced node {hexed(node_hash)}: no node of the proof leads to it")


def _what(opened: Opened, part: shares.ProofShare) -> str:
    """Return a part in words. A key leaves room for figures, and `--json` has it whole."""
    name = opened.name(part)
    if part.key is None:
        return name
    return name if len(name) <= _NAME else f"{name[: _NAME - 10]}…{name[-8:]}"


def _as_json(opened: Opened) -> dict[str, object]:
    found, proof = opened.found, opened.proof
    block = None if proof.at is None else hexed(proof.at)
    place = {"place": proof.place, "block": block, "state_root": hexed(opened.root)}
    parts = {
        "nodes": found.nodes,
        "bytes": found.weight,
        "node_bytes": found.node_bytes,
        "parts": [_part_as_json(part, opened.name(part)) for part in found.parts],
    }
    left = {"unread": list(map(hexed, found.unread)), "unplaced": list(map(hexed, found.unplaced))}
    return {**place, **parts, **left}


def _part_as_json(part: shares.ProofShare, name: str) -> dict[str, object]:
    trie = None if part.trie == shares.TOP else hexed(part.trie)
    key, value = (None if each is None else hexed(each) for each in (part.key, part.value))
    place = {
        "kind": part.kind,
        "name": name,
        "trie": trie,
        "key": key,
        "state": part.state,
        "value": value,
    }
    return {**place, "nodes": part.nodes, "bytes": part.weight, "path_bytes": part.path_bytes}


def _tree(opened: Opened) -> list[Drawn]:
    """The nodes that were read, for drawing: each child trie below the key that stores its root."""
    keys: dict[bytes, list[shares.ProofShare]] = {}
    for part in opened.found.parts:
        if part.key is not None:
            keys.setdefault(part.trie, []).append(part)
    below = {
        child_root_key(trie).hex(): Below(_asked(parts), note=shares.child_trie_name(trie))
        for trie, parts in keys.items()
        if trie != shares.TOP
    }
    unread = frozenset(opened.found.unread)
    nodes = {blake2_256(node): node for node in opened.proof.nodes}
    sources = Sources(nodes, used=lambda name: Fate.UNUSED if name in unread else Fate.PROVEN)
    return draw(opened.root, _asked(keys.get(shares.TOP, []), below), sources)


def _asked(parts: list[shares.ProofShare], below: dict[str, Below] | None = None) -> TreeQuery:
    listed = {part.key.hex(): part.name for part in parts if part.key is not None}
    return TreeQuery(tuple(sorted(listed)), listed, below or {}, fate=lambda *_: Fate.PRUNED)

"""A node's answers: headers and read proofs from JSON-RPC of any Substrate chain.

A file holds one answer, or several as a batch or line by line, each with its envelope or bare:

    chain_getHeader, chain_getBlock               {"parentHash", "number", "stateRoot", "extrinsicsRoot", "digest"}
    state_getReadProof, state_getChildReadProof   {"at", "proof": ["0x…", …]}, or the list of nodes alone

A request among them says which keys the answer with its id was asked for. Nothing is taken on trust: a header's hash is
computed, and has to be the block that the proof names.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeGuard

from pubsub_emulator.emulator.untrusted import parse_json, read_bytes
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.spark_audit.real_proofs.attribution import TOP
from pubsub_emulator.spark_audit.real_proofs.values import Values

_READ: Final = "state_getReadProof"
_CHILD_READ: Final = "state_getChildReadProof"


class NodeDataError(PubsubError):
    """An answer that is not what it has to be; the message names file and place."""


_VALUES: Final = Values(NodeDataError)


@dataclass(frozen=True, slots=True)
class NodeHeader:
    """A block's header; `hash` is computed from the rest."""

    place: str
    number: int
    hash: Hash
    state_root: Hash


@dataclass(frozen=True, slots=True)
class NodeProof:
    """A read proof; `at` is the block that it names, `requested` the keys by trie where the request is known."""

    place: str
    at: Hash | None
    nodes: tuple[bytes, ...]
    requested: dict[bytes, tuple[bytes, ...]] | None = None


@dataclass(slots=True)
class NodeData:
    """Everything that some files hold."""

    headers: list[NodeHeader] = field(default_factory=list)
    proofs: list[NodeProof] = field(default_factory=list)


def read_node_data(files: Iterable[Path]) -> NodeData:
    """The headers and proofs in `files`. Raises `NodeDataError`, `OSError`."""
    data = NodeData()
    for path in files:
        documents = _documents(path)
        requested = {identity: keys for place, document in documents for identity, keys in _request(place, document)}
        for place, document in documents:
            if not _is_request(document):
                _add(place, document, requested, data)
    return data


def root_of(proof: NodeProof, headers: Iterable[NodeHeader]) -> Hash:
    """The state root of a proof's block, by the header with its hash, or the only header. Raises `NodeDataError`."""
    known = list(headers)
    if not known:
        raise NodeDataError(f"{proof.place}: no header names the state root of the proof")
    if proof.at is None:
        if len({header.hash for header in known}) > 1:
            raise NodeDataError(f"{proof.place}: the proof names no block, and there are {len(known)} headers")
        return known[0].state_root
    for header in known:
        if header.hash == proof.at:
            return header.state_root
    there = ", ".join(f"0x{header.hash.hex()} (block {header.number}, {header.place})" for header in known)
    raise NodeDataError(f"{proof.place}: the proof is of block 0x{proof.at.hex()}, but the header is that of {there}")


def _documents(path: Path) -> list[tuple[str, object]]:
    """Every answer and request in a file with its place; JSON, a batch of it, or JSON line by line."""
    try:
        text = read_bytes(path, error=NodeDataError).decode()
    except UnicodeDecodeError as error:
        raise NodeDataError(f"{path}: not UTF-8 at byte {error.start}") from None
    try:
        whole = parse_json(text.encode(), str(path), NodeDataError)
    except NodeDataError:
        lines = [(f"{path}:{at}", line) for at, line in enumerate(text.splitlines(), start=1) if line.strip()]
        if len(lines) < 2:
            raise
        return [(place, parse_json(line.encode(), place, NodeDataError)) for place, line in lines]
    if isinstance(whole, list) and whole and all(isinstance(each, dict) for each in whole):
        return [(f"{path}[{at}]", each) for at, each in enumerate(whole)]
    return [(str(path), whole)]


def _is_request(document: object) -> TypeGuard[dict[str, object]]:
    return isinstance(document, dict) and isinstance(document.get("method"), str) and "id" in document


def _request(place: str, document: object) -> Iterable[tuple[str, dict[bytes, tuple[bytes, ...]]]]:
    """The id of a request for a read proof, and the keys that it asks for."""
    if not _is_request(document) or document["method"] not in {_READ, _CHILD_READ}:
        return
    params = document.get("params")
    child = document["method"] == _CHILD_READ
    if not isinstance(params, list) or len(params) < 1 + child or not isinstance(params[child], list):
        raise NodeDataError(f"{place}: params of {document['method']} do not name keys")
    keys = tuple(_VALUES.hex(f"{place}: params[{int(child)}][{at}]", key) for at, key in enumerate(params[child]))
    trie = TOP
    if child:
        storage_key = _VALUES.hex(f"{place}: params[0]", params[0])
        if not storage_key.startswith(CHILD_STORAGE_PREFIX):
            raise NodeDataError(f"{place}: params[0] is not the storage key of a default child trie")
        trie = storage_key[len(CHILD_STORAGE_PREFIX) :]
    yield json.dumps(document["id"]), {trie: keys}


def _add(place: str, document: object, requested: dict[str, dict[bytes, tuple[bytes, ...]]], data: NodeData) -> None:
    answer, identity = document, None
    if isinstance(document, dict) and ("jsonrpc" in document or "result" in document or "error" in document):
        if document.get("error") is not None:
            error = document["error"]
            said = f"{error.get('code')}: {error.get('message')}" if isinstance(error, dict) else str(error)
            raise NodeDataError(f"{place}: the node answered with error {said}")
        if document.get("result") is None:
            raise NodeDataError(f"{place}: the node's answer is empty: it does not know the block or pruned its state")
        answer, identity, place = document["result"], json.dumps(document.get("id")), f"{place}: result"
    keys = requested.get(identity) if identity is not None else None
    if isinstance(answer, list):
        data.proofs.append(NodeProof(place, None, _nodes(place, answer), keys))
        return
    if not isinstance(answer, dict):
        raise NodeDataError(f"{place}: neither a header nor a read proof")
    if "proof" in answer:
        at = None if answer.get("at") is None else _VALUES.hash(f"{place}.at", answer["at"])
        data.proofs.append(NodeProof(place, at, _nodes(f"{place}.proof", answer["proof"]), keys))
        return
    for name in ("block", "header"):
        if isinstance(answer.get(name), dict):
            answer, place = answer[name], f"{place}.{name}"
    if "stateRoot" not in answer:
        raise NodeDataError(f"{place}: neither a header (stateRoot) nor a read proof (proof); has {', '.join(answer)}")
    header = _VALUES.header(place, answer)
    data.headers.append(NodeHeader(place, header.number, header.hash, header.state_root))


def _nodes(place: str, answer: object) -> tuple[bytes, ...]:
    if not isinstance(answer, list) or not answer:
        raise NodeDataError(f"{place}: not a list of trie nodes")
    return tuple(_VALUES.hex(f"{place}[{at}]", node) for at, node in enumerate(answer))

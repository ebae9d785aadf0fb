"""Headers and read proofs from JSON-RPC answers of nodes of any Substrate chain.

A file contains one answer or several, as a batch or one per line, each with or without its
envelope:

    chain_getHeader, chain_getBlock               {"parentHash", "number", "stateRoot",
                                                  "extrinsicsRoot", "digest"}
    state_getReadProof, state_getChildReadProof   {"at", "proof": ["0x…", …]}, or only the list of
                                                  nodes

If the file also contains the request, it tells which keys were requested. A file of `pubsub prove
--out` has the request in a field of its own. The content is not trusted: a header's hash is
computed, and must be that of the block that the proof names.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeGuard

from pubsub_emulator.files.untrusted import parse_json, read_bytes
from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.runtime.framework.relay_request import RelayProofRequest
from pubsub_emulator.spark_audit.real_proofs.attribution import TOP
from pubsub_emulator.spark_audit.real_proofs.values import Values

_READ: Final = "state_getReadProof"
_CHILD_READ: Final = "state_getChildReadProof"


class NodeDataError(PubsubError):
    """An answer that is malformed or does not fit the others. The message names file and place."""


_VALUES: Final = Values(NodeDataError)
"""Reads JSON values. Raises `NodeDataError` for wrong ones."""


@dataclass(frozen=True, slots=True)
class NodeHeader:
    """A block's header."""

    place: str
    """The place of its document, for messages."""
    number: int
    hash: Hash
    """The hash, computed from the other fields."""
    state_root: Hash


@dataclass(frozen=True, slots=True)
class NodeProof:
    """A read proof."""

    place: str
    """The place of its document, for messages."""
    at: Hash | None
    """The hash of the block that the answer names, `None` if the answer does not name one."""
    nodes: tuple[bytes, ...]
    requested: dict[bytes, tuple[bytes, ...]] | None = None
    """The requested keys by trie, `None` if the request is not known."""


@dataclass(slots=True)
class NodeData:
    """The content of some files."""

    headers: list[NodeHeader] = field(default_factory=list)
    proofs: list[NodeProof] = field(default_factory=list)


def read_node_data(files: Iterable[Path]) -> NodeData:
    """Read the headers and proofs in files. Raises `NodeDataError`, `OSError`."""
    data = NodeData()
    for path in files:
        documents = _documents(path)
        requested: dict[str, dict[bytes, tuple[bytes, ...]]] = {}
        for place, document in documents:
            requested.update(_request(place, document))
        for place, document in documents:
            if not _is_request(document):
                _add(place, document, requested, data=data)
    return data


def root_of(proof: NodeProof, headers: Iterable[NodeHeader]) -> Hash:
    """Return the state root of a proof's block.

    If the proof names a block, the header with that hash has the state root. Otherwise, there must
    be exactly one header. Raises `NodeDataError` if there is no such header.
    """
    known = list(headers)
    if not known:
        raise NodeDataError(f"{proof.place}: no header names the state root of the proof")
    if proof.at is None:
        if len({header.hash for header in known}) > 1:
            raise NodeDataError(
                f"{proof.place}: the proof names no block, and there are {len(known)} headers"
            )
        return known[0].state_root
    for header in known:
        if header.hash == proof.at:
            return header.state_root
    known_headers = ", ".join(
        f"0x{header.hash.hex()} (block {header.number}, {header.place})" for header in known
    )
    raise NodeDataError(
        f"{proof.place}: the proof is of block 0x{proof.at.hex()}, but the header is that of"
        f" {known_headers}"
    )


def _documents(path: Path) -> list[tuple[str, object]]:
    """Return every answer and request in a file with its place.

    The file is JSON, a batch in JSON, or JSON in each line.
    """
    try:
        text = read_bytes(path, error=NodeDataError).decode()
    except UnicodeDecodeError as error:
        raise NodeDataError(f"{path}: not UTF-8 at byte {error.start}") from None
    try:
        document_or_batch = parse_json(text.encode(), str(path), NodeDataError)
    except NodeDataError:
        lines = [
            (f"{path}:{number}", line)
            for number, line in enumerate(text.splitlines(), start=1)
            if line.strip()
        ]
        if len(lines) < 2:
            raise
        return [(place, parse_json(line.encode(), place, NodeDataError)) for place, line in lines]
    if (
        isinstance(document_or_batch, list)
        and document_or_batch
        and all(isinstance(document, dict) for document in document_or_batch)
    ):
        return [
            (f"{path}[{number}]", document) for number, document in enumerate(document_or_batch)
        ]
    return [(str(path), document_or_batch)]


def _is_request(document: object) -> TypeGuard[dict[str, object]]:
    """Return whether a document is a request of JSON-RPC, not an answer."""
    return (
        isinstance(document, dict) and isinstance(document.get("method"), str) and "id" in document
    )


def _request(place: str, document: object) -> Iterable[tuple[str, dict[bytes, tuple[bytes, ...]]]]:
    """Yield the id of a request for a read proof, and the keys that it asks for."""
    if not _is_request(document) or document["method"] not in {_READ, _CHILD_READ}:
        return
    params = document.get("params")
    is_child = document["method"] == _CHILD_READ
    # The storage key of a child trie comes before the keys.
    keys_index = 1 if is_child else 0
    if (
        not isinstance(params, list)
        or len(params) <= keys_index
        or not isinstance(params[keys_index], list)
    ):
        raise NodeDataError(f"{place}: params of {document['method']} do not name keys")
    keys = tuple(
        _VALUES.hex(f"{place}: params[{keys_index}][{index}]", key)
        for index, key in enumerate(params[keys_index])
    )
    trie = TOP
    if is_child:
        storage_key = _VALUES.hex(f"{place}: params[0]", params[0])
        if not storage_key.startswith(CHILD_STORAGE_PREFIX):
            raise NodeDataError(
                f"{place}: params[0] is not the storage key of a default child trie"
            )
        trie = storage_key[len(CHILD_STORAGE_PREFIX) :]
    yield json.dumps(document["id"]), {trie: keys}


def _whole_request(place: str, text: str) -> dict[bytes, tuple[bytes, ...]]:
    """Return the keys of a RelayProofRequest by trie."""
    try:
        request = RelayProofRequest.decode(_VALUES.hex(place, text))
    except ScaleError as error:
        raise NodeDataError(f"{place}: not a RelayProofRequest: {error}") from None
    return {TOP: request.top(), **request.children()}


def _add(
    place: str,
    document: object,
    requested: dict[str, dict[bytes, tuple[bytes, ...]]],
    data: NodeData,
) -> None:
    """Add an answer to the data. `requested` has the keys of requests by their id."""
    answer = document
    identity = None
    if isinstance(document, dict) and (
        "jsonrpc" in document or "result" in document or "error" in document
    ):
        if document.get("error") is not None:
            error = document["error"]
            message = str(error)
            if isinstance(error, dict):
                message = f"{error.get('code')}: {error.get('message')}"
            raise NodeDataError(f"{place}: the node answered with error {message}")
        if document.get("result") is None:
            raise NodeDataError(
                f"{place}: the node's answer is empty: it does not know the block or pruned its"
                " state"
            )
        answer = document["result"]
        identity = json.dumps(document.get("id"))
        place = f"{place}: result"
    keys = requested.get(identity) if identity is not None else None
    if isinstance(answer, list):
        data.proofs.append(NodeProof(place, None, _nodes(place, answer), requested=keys))
        return
    if not isinstance(answer, dict):
        raise NodeDataError(f"{place}: neither a header nor a read proof")
    if "proof" in answer:
        block_hash = None if answer.get("at") is None else _VALUES.hash(f"{place}.at", answer["at"])
        if isinstance(answer.get("request"), str):
            # A file that `pubsub prove --out` wrote.
            keys = _whole_request(f"{place}.request", answer["request"])
        data.proofs.append(
            NodeProof(place, block_hash, _nodes(f"{place}.proof", answer["proof"]), requested=keys)
        )
        return
    for name in ("block", "header"):
        if isinstance(answer.get(name), dict):
            answer = answer[name]
            place = f"{place}.{name}"
    if "stateRoot" not in answer:
        raise NodeDataError(
            f"{place}: neither a header (stateRoot) nor a read proof (proof); has"
            f" {', '.join(answer)}"
        )
    header = _VALUES.header(place, answer)
    data.headers.append(NodeHeader(place, header.number, header.hash, state_root=header.state_root))


def _nodes(place: str, answer: object) -> tuple[bytes, ...]:
    """Return the nodes of a proof. Raises `NodeDataError` unless they are a list of hex strings."""
    if not isinstance(answer, list) or not answer:
        raise NodeDataError(f"{place}: not a list of trie nodes")
    return tuple(_VALUES.hex(f"{place}[{index}]", node) for index, node in enumerate(answer))

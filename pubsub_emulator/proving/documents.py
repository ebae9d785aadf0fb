"""The cost of a request as a document for scripts, and the file of a proof."""

from dataclasses import asdict
from typing import Any

from pubsub_emulator.client.request_costs import sizes
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.proving.costs import Costs, compact_size
from pubsub_emulator.proving.verify import FORMAT
from pubsub_emulator.runtime.framework.relay_request import ChildKey, RelayProofRequest
from pubsub_emulator.runtime.framework.request_proof import (
    BUDGET,
    LARGE_POV,
    POV,
    KeyCost,
    RequestProof,
    joined,
)


def proof_file(costs: Costs) -> dict[str, object]:
    """Return the content of a file with the newest block's proof.

    The proof covers all keys that were proven together. The file has the fields of a node's answer,
    so that `open-proof` can read it.
    """
    proof = costs.newest.whole
    request = joined(RelayProofRequest(tuple(cost.asked for cost in proof.keys)))
    block = costs.newest.block
    return {
        "format": FORMAT,
        "at": None if block is None else hexed(block),
        "number": costs.newest.number,
        "root": hexed(proof.root),
        "request": hexed(request.encode()),
        "proof": [hexed(node) for node in proof.listed()],
    }


def document(costs: Costs) -> dict[str, Any]:
    """Return the sizes of all parts, the keys of the newest block, and all blocks' sizes."""
    changes = costs.changes()
    newest = costs.newest
    parts = dict(costs.parts())
    shown: dict[str, Any] = {
        "request": hexed(costs.request.encode()),
        "para": costs.para,
        "block": {
            "number": newest.number,
            "hash": None if newest.block is None else hexed(newest.block),
            "root": hexed(newest.request.root),
        },
        "parts": {part: _part(proofs[-1]) for part, proofs in parts.items()},
        "keys": [_key(costs, cost) for cost in newest.request.keys],
        "absent_bytes": newest.absent_bytes,
        "absent_block_bytes": newest.absent_block_bytes,
        "blocks": [
            {"number": block.number, "bytes": block.request.size, "all_bytes": block.whole.size}
            for block in costs.blocks
        ],
    }
    if changes is not None:
        shown["ranges"] = {part: asdict(sizes(proofs)) for part, proofs in parts.items()}
        shown["changes"] = {"steps": changes.steps, "new_bytes_median": changes.new_bytes}
        for row, cost in zip(shown["keys"], newest.request.keys, strict=True):
            row["path_changes"] = changes.paths.get(cost.asked, 0)
    return shown


def _part(proof: RequestProof) -> dict[str, object]:
    """Return the size of a proof in bytes, and its shares of a block and of the smallest budget."""
    return {
        "nodes": len(proof.nodes),
        "bytes": proof.size,
        "compact_bytes": compact_size(proof),
        "share_of_5_mib": proof.size / POV,
        "share_of_10_mib": proof.size / LARGE_POV,
        "share_of_1_mib": proof.size / BUDGET,
    }


def _key(costs: Costs, cost: KeyCost) -> dict[str, object]:
    """Return a key with its sizes in bytes. `trie` is null for a key of the top trie."""
    child = cost.asked if isinstance(cost.asked, ChildKey) else None
    return {
        "name": costs.names.name(cost.asked),
        "trie": None if child is None else hexed(child.storage_key),
        "key": hexed(cost.asked.key),
        "absent": cost.value is None,
        "value_bytes": None if cost.value is None else len(cost.value),
        "own_nodes": cost.own_nodes,
        "own_bytes": cost.own_bytes,
        "shared_bytes": cost.shared_bytes,
        "path_bytes": cost.path_bytes,
    }

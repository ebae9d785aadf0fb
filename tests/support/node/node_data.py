"""Answers of a node: made from states at hand, or real ones made from real proofs."""

from collections.abc import Iterable, Mapping
from typing import Any

from pubsub_emulator.emulator.network import Network
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.pubsub import derive_child_key, key_from_data
from pubsub_emulator.primitives.storage_keys import (
    ACTIVE_CONFIG,
    CURRENT_SLOT,
    child_root_key,
    para_head,
)
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.runtime.framework.storage import State

PRICES = (key_from_data(b"DOT/USD"), key_from_data(b"KSM/USD"), key_from_data(b"never published"))


def hexed(raw: bytes) -> str:
    return f"0x{raw.hex()}"


def header_answer(header: Header, identity: int = 1) -> dict[str, Any]:
    """Return the answer to `chain_getHeader`."""
    result = {
        "parentHash": hexed(header.parent_hash),
        "number": hex(header.number),
        "stateRoot": hexed(header.state_root),
        "extrinsicsRoot": hexed(header.extrinsics_root),
        "digest": {"logs": [hexed(item.encode()) for item in header.digest]},
    }
    return {"jsonrpc": "2.0", "id": identity, "result": result}


def proof_answer(at: bytes | None, nodes: Iterable[bytes], identity: int = 2) -> dict[str, Any]:
    """Return the answer to `state_getReadProof`."""
    result: dict[str, Any] = {} if at is None else {"at": hexed(at)}
    return {
        "jsonrpc": "2.0",
        "id": identity,
        "result": {**result, "proof": [hexed(node) for node in nodes]},
    }


def read_request(keys: Iterable[bytes], at: bytes, identity: int = 2) -> dict[str, Any]:
    """Return a request of `state_getReadProof`."""
    params = [[hexed(key) for key in keys], hexed(at)]
    return {"jsonrpc": "2.0", "id": identity, "method": "state_getReadProof", "params": params}


def child_request(
    child: bytes, keys: Iterable[bytes], at: bytes, identity: int = 2
) -> dict[str, Any]:
    """Return a request of `state_getChildReadProof`."""
    params = [hexed(child_root_key(child)), [hexed(key) for key in keys], hexed(at)]
    return {"jsonrpc": "2.0", "id": identity, "method": "state_getChildReadProof", "params": params}


def proven(
    state: State, top: Iterable[bytes], children: Mapping[bytes, Iterable[bytes]]
) -> list[bytes]:
    """Return the nodes that a node would send, ordered by their bytes."""
    nodes: dict[Hash, bytes] = {}
    state.prove(top, children, nodes)
    return sorted(nodes.values())


def priced() -> Network:
    """Return a network with data of three publishers on its relay chain.

    Publisher 1000 has prices, 2000 has a large entry, and 1001 is empty.
    """
    network = Network.of([1000, 1001, 2000], {3000: {1000: PRICES[:1]}})
    for number in range(12):
        network.publish(1000, key_from_data(b"pair %d" % number), b"%d" % number * 30)
    network.publish(1000, PRICES[0], b"7.42", ttl=100)
    network.publish(1000, PRICES[1], b"31.5" * 20)
    network.publish(2000, PRICES[0], b"large" * 100)
    network.step(3)
    return network


STATIC = (ACTIVE_CONFIG, CURRENT_SLOT, para_head(ParaId(3000)), para_head(ParaId(4000)))


def answers(network: Network) -> dict[str, list[dict[str, Any]]]:
    """Return the files of `examples/node_data` by name: requests and answers of a session."""
    header, state = network.relay.header, network.relay.state
    at, child = header.hash(), derive_child_key(ParaId(1000))
    return {
        "header.json": [header_answer(header)],
        "read-proof.json": [proof_answer(at, proven(state, STATIC, {}))],
        "child-read-proof.json": [proof_answer(at, proven(state, (), {child: PRICES}))],
        "session.jsonl": [
            {"jsonrpc": "2.0", "id": 1, "method": "chain_getHeader", "params": [hexed(at)]},
            header_answer(header, 1),
            read_request(STATIC, at, 2),
            proof_answer(at, proven(state, STATIC, {}), 2),
            child_request(child, PRICES, at, 3),
            proof_answer(at, proven(state, (), {child: PRICES}), 3),
        ],
    }

"""A relay node that answers from recorded proofs of Polkadot, with its real metadata.

Its blocks have the state roots of the recorded proofs. It can be told to lie, to have pruned its
states, to be slow or to stop.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web
from support.client.chain_values import real_bytes
from support.plumbing.told import beside

from pubsub_emulator.node.rpc.encode import header_json
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.hexadecimal import hexed, unhex
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.runtime.framework.relay_request import RelayProofRequest, TopKey
from pubsub_emulator.runtime.framework.request_proof import open_request
from pubsub_emulator.serving.listening import listening
from pubsub_emulator.trie.errors import MissingNode

MAINNET = Path(__file__).resolve().parents[3] / "examples" / "mainnet"
RECORDED = (
    "asset-hub-polkadot-10000",
    "asset-hub-polkadot-800000",
    "asset-hub-polkadot-3356195",
    "moonbeam-11728459",
)
"""Proofs of Polkadot's state, oldest first."""
Fault = Callable[[str, Any], Any]
"""Returns what the node answers instead of its answer to a method."""

UNKNOWN_METHOD = "unknown method"
"""The answer of a fault for a method that the node does not have."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recorded proof."""

    root: Hash
    nodes: dict[Hash, bytes]
    values: dict[bytes, bytes | None]
    """Values that sp-trie read from the proof, by key."""


def recorded(name: str) -> Recorded:
    """Return the recorded proof in the file `name`."""
    document = json.loads((MAINNET / f"{name}.json").read_text())
    nodes = [unhex(node) for node in document["trieNodes"]]
    values = {
        unhex(read["key"]): None if read["value"] is None else unhex(read["value"])
        for read in document["reads_sp_trie"].values()
        if isinstance(read, dict) and "value" in read
    }
    root = Hash(unhex(document["relayParentStorageRoot"]))
    return Recorded(root, {blake2_256(node): node for node in nodes}, values)


@dataclass
class RelayNode:
    """The node. Its blocks are 0 to 3."""

    fault: Fault = lambda _method, answer: answer
    request: bytes = b""
    """The result of the runtime function keys_to_prove."""
    calls: list[str] = field(default_factory=list)
    """The methods that were called."""
    url: str = ""

    def __post_init__(self) -> None:
        self.states = [recorded(name) for name in RECORDED]
        self.headers: list[Header] = []
        for number, state in enumerate(self.states):
            parent = self.headers[-1].hash() if self.headers else Hash(bytes(32))
            self.headers.append(Header(parent, number, state.root, Hash(bytes(32)), ()))
        self.by_hash = {hexed(header.hash()): header for header in self.headers}

    def answer(self, method: str, params: list[Any]) -> Any:
        match method:
            case "chain_getFinalizedHead":
                return hexed(self.headers[-1].hash())
            case "chain_getBlockHash":
                number = params[0]
                return hexed(self.headers[number].hash()) if number < len(self.headers) else None
            case "chain_getHeader":
                header = self.by_hash.get(params[0])
                return None if header is None else header_json(header)
            case "state_getMetadata":
                return hexed(real_bytes("polkadot-14"))
            case "state_getReadProof":
                return self._proof(params[0], self.by_hash[params[1]].number)
            case "state_call":
                return hexed(self.request)
        raise KeyError(method)

    def _proof(self, keys: list[str], number: int) -> Any:
        state = self.states[number]
        request = RelayProofRequest(tuple(TopKey(unhex(key)) for key in keys))
        proof = open_request(state.root, state.nodes, request)
        return {"at": "", "proof": [hexed(node) for node in proof.nodes.values()]}

    async def handle(self, request: web.Request) -> web.Response:
        asked = await request.json()
        method = asked["method"]
        self.calls.append(method)
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": asked["id"]}
        try:
            found = self.fault(method, self.answer(method, asked["params"]))
        except MissingNode as error:
            return web.json_response({**body, "error": {"code": 4003, "message": str(error)}})
        if isinstance(found, web.Response):
            return found
        if isinstance(found, float):
            await asyncio.sleep(found)
            found = None
        if isinstance(found, str) and found.startswith("refuse "):
            return web.json_response({**body, "error": {"code": 4003, "message": found}})
        if found == UNKNOWN_METHOD:
            error = {"code": -32601, "message": "Method not found"}
            return web.json_response({**body, "error": error})
        return web.json_response({**body, "result": found})

    @asynccontextmanager
    async def served(self) -> AsyncIterator["RelayNode"]:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/", self.handle)
        async with listening(app, "127.0.0.1", 0, 0.1) as (_, port):
            self.url = f"http://127.0.0.1:{port}"
            yield self


@contextmanager
def relay_node(node: RelayNode | None = None) -> Iterator[RelayNode]:
    """Run a relay node in a thread of its own."""
    made = node or RelayNode()
    with beside(made.served) as running:
        yield running

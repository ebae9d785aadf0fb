"""A chain with bodies like real parachains': recorded relay proofs in inherents of both layouts;
nodes that tell it.

The proofs are those of `examples/mainnet/`. Blocks, headers and metadata around them are made here,
in the layout of `cumulus-primitives-parachain-inherent`: the older runtime has one argument with
messages in it, the newer one has `BasicParachainInherentData` and abridged messages beside it.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from aiohttp import WSMsgType, web

from pubsub_emulator.node.rpc.encode import header_json
from pubsub_emulator.primitives import scale, type_info
from pubsub_emulator.primitives.byte_lists import encode_bytes_list
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.scale import Codec, encode_bytes, encode_compact
from pubsub_emulator.primitives.type_info import (
    BYTES,
    H256,
    PARA_ID,
    U32,
    Composite,
    Field,
    SequenceOf,
    TupleOf,
)
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.accounts.timestamp import NOW, Timestamp
from pubsub_emulator.runtime.framework.definitions import RuntimeDefinition
from pubsub_emulator.runtime.framework.dispatch import dispatchable
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.metadata.versions import metadata
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec
from pubsub_emulator.runtime.parachain.accounts import parachain_accounts
from pubsub_emulator.runtime.parachain.pallets import PARACHAIN
from pubsub_emulator.runtime.parachain.storage import PARACHAIN_SYSTEM
from pubsub_emulator.serving.listening import listening
from pubsub_emulator.spark_audit.real_proofs.imported import RelayProof
from pubsub_emulator.spark_audit.real_proofs.relay_proofs import read_relay_proof
from pubsub_emulator.trie import ordered_root
from pubsub_emulator.xcm.description import type_names

MAINNET = Path(__file__).resolve().parents[3] / "examples" / "mainnet"
CHAIN = 1000
NAME = "Recorded Hub"
UPGRADE = 6
"""The first block of the newer runtime."""
FIRST_TIME = 1_700_000_000_000
PEER = b"peer of a collator"


def _opaque(name: str, info: type_info.TypeInfo) -> Codec[bytes]:
    return Codec(name, lambda raw: raw, lambda reader: reader.take(reader.remaining()), info)


_HEAD = Composite(("polkadot_parachain_primitives", "primitives", "HeadData"), (Field(BYTES),))
_NODES = Composite(("BTreeSet",), (Field(SequenceOf(BYTES)),))
_DOWNWARD = type_info.struct(
    "polkadot_core_primitives::InboundDownwardMessage", sent_at=U32, msg=BYTES
)
_HRMP = type_info.struct("polkadot_core_primitives::InboundHrmpMessage", sent_at=U32, data=BYTES)
_HASHED = type_info.struct(
    "cumulus_primitives_parachain_inherent::HashedMessage", sent_at=U32, msg_hash=H256
)
_VALIDATION = type_info.struct(
    "polkadot_primitives::v8::PersistedValidationData",
    parent_head=_HEAD,
    relay_parent_number=U32,
    relay_parent_storage_root=H256,
    max_pov_size=U32,
)
_DIGEST = type_info.struct("sp_runtime::generic::digest::Digest", logs=SequenceOf(BYTES))
_RELAY_HEADER = type_info.struct(
    "sp_runtime::generic::header::Header",
    parent_hash=H256,
    number=type_info.CompactOf(U32),
    state_root=H256,
    extrinsics_root=H256,
    digest=_DIGEST,
)
_OLD = type_info.struct(
    "cumulus_primitives_parachain_inherent::ParachainInherentData",
    validation_data=_VALIDATION,
    relay_chain_state=type_info.struct("sp_trie::storage_proof::StorageProof", trie_nodes=_NODES),
    downward_messages=SequenceOf(_DOWNWARD),
    horizontal_messages=type_info.sorted_map(PARA_ID, SequenceOf(_HRMP)),
)
_BASIC = type_info.struct(
    "cumulus_pallet_parachain_system::parachain_inherent::BasicParachainInherentData",
    validation_data=_VALIDATION,
    relay_chain_state=type_info.struct("sp_trie::storage_proof::StorageProof", trie_nodes=_NODES),
    relay_parent_descendants=SequenceOf(_RELAY_HEADER),
    collator_peer_id=type_info.option(BYTES),
)
_INBOUND = type_info.struct(
    "cumulus_pallet_parachain_system::parachain_inherent::InboundMessagesData",
    downward_messages=type_info.struct(
        "cumulus::AbridgedInboundDownwardMessages",
        full_messages=SequenceOf(_DOWNWARD),
        hashed_messages=SequenceOf(_HASHED),
    ),
    horizontal_messages=type_info.struct(
        "cumulus::AbridgedInboundHrmpMessages",
        full_messages=SequenceOf(TupleOf((PARA_ID, _HRMP))),
        hashed_messages=SequenceOf(TupleOf((PARA_ID, _HASHED))),
    ),
)


_Basic = Annotated[bytes, _opaque("data", _BASIC)]
_Inbound = Annotated[bytes, _opaque("inbound", _INBOUND)]


class OldParachainSystem(Hooks):
    """One argument."""

    pallet = PARACHAIN_SYSTEM

    @dispatchable(0, weight=Weight(0, 0))
    def set_validation_data(
        self, storage: Any, origin: Any, data: Annotated[bytes, _opaque("data", _OLD)], /
    ) -> None:
        """The inherent."""


class NewParachainSystem(Hooks):
    """Messages beside it."""

    pallet = PARACHAIN_SYSTEM

    @dispatchable(0, weight=Weight(0, 0))
    def set_validation_data(
        self, storage: Any, origin: Any, data: _Basic, inbound_messages_data: _Inbound, /
    ) -> None:
        """The inherent."""


class TimestampCalls(Timestamp):
    """The pallet `Timestamp`, with its inherent."""

    @dispatchable(0, weight=Weight(0, 0))
    def set(self, storage: Any, origin: Any, now: Annotated[int, scale.compact_of(64)], /) -> None:
        """Set the time."""


@cache
def runtime_metadata(version: int) -> bytes:
    """Return metadata V14 of runtime 1 or 2."""
    made = parachain_accounts(RuntimeSpec(ParaId(CHAIN), {}, accounts=True)).definition
    others = {
        PARACHAIN_SYSTEM: {1: OldParachainSystem, 2: NewParachainSystem}[version](),
        NOW.pallet: TimestampCalls(),
    }
    pallets = tuple(others.get(each.pallet, each) for each in made.pallets)
    definition = RuntimeDefinition(
        made.crate, made.version, pallets, made.apis, parachain_origins=False
    )
    return metadata(14, definition, type_names)


def _index(pallet: str) -> int:
    return next(each.index for each in PARACHAIN.pallets.values() if each.name == pallet)


def _bare(pallet: str, arguments: bytes) -> bytes:
    return encode_bytes(bytes((4, _index(pallet), 0)) + arguments)


def _message(sent_at: int, data: bytes) -> bytes:
    return sent_at.to_bytes(4, "little") + encode_bytes(data)


def _listed(items: list[bytes]) -> bytes:
    return encode_compact(len(items)) + b"".join(items)


def _validation(proof: RelayProof, parent_head: bytes) -> bytes:
    pov = (proof.max_pov or 0).to_bytes(4, "little")
    return (
        encode_bytes(parent_head)
        + proof.relay_parent.to_bytes(4, "little")
        + proof.relay_root
        + pov
    )


def _inherent(proof: RelayProof, parent_head: bytes, version: int, relay: Header) -> bytes:
    start = _validation(proof, parent_head) + encode_bytes_list(proof.proof)
    down = [_message(m.sent_at, m.msg) for m in proof.downward]
    sent = [(each.to_bytes(4, "little"), many) for each, many in proof.horizontal]
    across = [(sender, [_message(m.sent_at, m.data) for m in many]) for sender, many in sent]
    if version == 1:
        return start + _listed(down) + _listed([sender + _listed(many) for sender, many in across])
    hashed = encode_compact(1) + (7).to_bytes(4, "little") + bytes(32)
    basic = start + encode_compact(1) + relay.encode() + b"\x01" + encode_bytes(PEER)
    return (
        basic
        + _listed(down)
        + hashed
        + _listed([sender + each for sender, many in across for each in many])
        + b"\0"
    )


@dataclass
class RealChain:
    """Blocks 0 to `len(blocks) - 1`, as JSON of `chain_getBlock`, and the relay headers of their
    relay parents.
    """

    blocks: list[dict[str, Any]] = field(default_factory=list)
    hashes: list[str] = field(default_factory=list)
    proofs: list[RelayProof] = field(default_factory=list)
    relay: dict[int, Header] = field(default_factory=dict)

    def version(self, number: int) -> int:
        """Return the version of the runtime that made a block."""
        return 2 if number >= UPGRADE else 1


@cache
def real_chain(count: int = 11, salt: bytes = b"") -> RealChain:
    """Return a chain of blocks 1 to `count` on a genesis. Another `salt` makes another fork."""
    recorded = [
        proof
        for path in sorted(MAINNET.glob("asset-hub-*.json"))
        if (proof := read_relay_proof(path)).chain
    ]
    chain = RealChain()
    parent = Header(Hash(bytes(32)), 0, blake2_256(b"genesis"), ordered_root(()))
    chain.blocks.append({"block": {"header": header_json(parent), "extrinsics": []}})
    chain.hashes.append("0x" + parent.hash().hex())
    for number in range(1, count + 1):
        proof = recorded[number % len(recorded)]
        relay = Header(
            blake2_256(b"relay"), int(proof.relay_parent), proof.relay_root, ordered_root(())
        )
        chain.relay[relay.number] = relay
        version = chain.version(number)
        body = [
            _bare("ParachainSystem", _inherent(proof, parent.encode(), version, relay)),
            _bare("Timestamp", encode_compact(FIRST_TIME + number * 12_000)),
            encode_bytes(bytes((0x84, 1, 2, 3)) + salt),  # a signed one, which nobody here reads
        ]
        state = blake2_256(b"state" + number.to_bytes(4, "little") + salt)
        header = Header(parent.hash(), number, state, ordered_root(body))
        extrinsics = ["0x" + each.hex() for each in body]
        chain.blocks.append(
            {
                "block": {"header": header_json(header), "extrinsics": extrinsics},
                "justifications": None,
            }
        )
        chain.hashes.append("0x" + header.hash().hex())
        chain.proofs.append(proof)
        parent = header
    return chain


Fault = Callable[[str, list[Any], int], Awaitable[dict[str, Any] | None]]
"""Told a method, its parameters and how many requests came before: what to answer instead, or
`None`.
"""


class Drop(Exception):  # what the server is to do
    """Close the connection without an answer."""


class Busy(Exception):  # what the server is to do
    """HTTP status 429."""


@dataclass
class Told:
    """The requests that a server has received."""

    url: str
    asked: list[str] = field(default_factory=list)


def answers(chain: RealChain, *, relay: bool, method: str, params: list[Any]) -> dict[str, Any]:
    """Return the answer of an honest archive node."""
    hashes = chain.hashes
    headers = [block["block"]["header"] for block in chain.blocks]
    if relay:
        hashes = ["0x" + header.hash().hex() for header in chain.relay.values()]
        headers = [header_json(header) for header in chain.relay.values()]
    if method == "chain_getBlockHash":
        numbers = {int(header["number"], 16): index for index, header in enumerate(headers)}
        return {"result": hashes[numbers[params[0]]] if params[0] in numbers else None}
    if method == "system_chain":
        return {"result": NAME}
    if method == "chain_getFinalizedHead":
        return {"result": hashes[-1]}
    if params[0] not in hashes:
        return {"result": None}
    index = hashes.index(params[0])
    # The state after a block has the runtime of the next one.
    version = chain.version(index + 1)
    known: dict[str, Callable[[], Any]] = {
        "chain_getBlock": lambda: chain.blocks[index],
        "chain_getHeader": lambda: headers[index],
        "state_getRuntimeVersion": lambda: {"specName": "recorded", "specVersion": version},
        "state_getMetadata": lambda: "0x" + runtime_metadata(version).hex(),
    }
    if method not in known:
        return {"error": {"code": -32601, "message": "not found"}}
    return {"result": known[method]()}


@asynccontextmanager
async def telling(
    chain: RealChain, fault: Fault | None = None, *, relay: bool = False
) -> AsyncIterator[Told]:
    """Run a node that serves a chain, or its relay chain's headers, over HTTP and WebSocket."""
    told = Told("")

    async def reply(request: dict[str, Any]) -> dict[str, Any]:
        method, params = request["method"], request["params"]
        told.asked.append(method)
        other = None if fault is None else await fault(method, params, len(told.asked) - 1)
        found = (
            answers(chain, relay=relay, method=method, params=params) if other is None else other
        )
        return {"jsonrpc": "2.0", "id": request["id"], **found}

    async def post(request: web.Request) -> web.StreamResponse:
        try:
            return web.json_response(await reply(await request.json()))
        except Busy:
            return web.Response(status=429, headers={"Retry-After": "0"})
        except Drop:
            if request.transport is not None:
                request.transport.close()
            return web.Response()

    async def talk(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                try:
                    await socket.send_str(json.dumps(await reply(json.loads(message.data))))
                except Drop:
                    break
        return socket

    app = web.Application()
    app.router.add_post("/", post)
    app.router.add_get("/", talk)
    async with listening(app, "127.0.0.1", 0, 0.1) as (_, port):
        told.url = f"http://127.0.0.1:{port}"
        yield told


async def never() -> None:
    """Wait for longer than any caller does."""
    await asyncio.sleep(3600)

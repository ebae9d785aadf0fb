"""Targets of `pubsub fuzz --target` that read requests to nodes, answers of nodes, and journals."""

import asyncio
import json
from collections.abc import Coroutine, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pubsub_emulator.emulator.network import Network, NetworkConfig, ParachainConfig, actions
from pubsub_emulator.emulator.relay.runtime import RelayConfig
from pubsub_emulator.emulator.scenario.file import load_bundled
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.files.untrusted import parse_json
from pubsub_emulator.laboratory.mutation import target
from pubsub_emulator.laboratory.target_files import from_file, temporary_folder
from pubsub_emulator.node.chain import journal
from pubsub_emulator.primitives import ed25519
from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.signatures import Scheme
from pubsub_emulator.primitives.types import AccountId, Hash, ParaId
from pubsub_emulator.runtime.accounts import extrinsic as extrinsics
from pubsub_emulator.runtime.accounts.chain import ChainRuntime, NextBlock, begin
from pubsub_emulator.runtime.framework import events, system
from pubsub_emulator.runtime.framework.fork import Fork
from pubsub_emulator.runtime.framework.lazy_state import lazy_state
from pubsub_emulator.runtime.framework.origin import Root, Signed
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.metadata.outer import type_names
from pubsub_emulator.runtime.metadata.versions import metadata
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec

if TYPE_CHECKING:
    from pubsub_emulator.node.rpc.dispatch import Dispatcher
    from pubsub_emulator.node.rpc.session import RpcSubscription

_SENDER: Final = bytes(range(32))
"""The seed of the key that signs mutated extrinsics again."""
_WHO: Final = AccountId(ed25519.public_key(_SENDER))
_OTHER: Final = AccountId(b"\x07" * 32)
_STATE: Final = {bytes((seed, seed % 7)) * 8: bytes(seed % 60) for seed in range(40)} | {
    bytes.fromhex("26aa394eea5630e07c48ae0c9558cef702a5c1b19ab7a04f536c519aca4983ac"): (
        (7).to_bytes(4, "little")
    )
}
"""Entries of a small state, `System.Number` among them."""
_CHILD: Final = b"pubsub\xe8\x03\x00\x00"


@cache
def _small_state() -> State:
    return State.from_entries(
        _STATE.items(), {_CHILD: {bytes((seed,)) * 32: bytes(50) for seed in range(9)}.items()}
    )


def _state_answers() -> Iterable[bytes]:
    nodes: dict[Hash, bytes] = {}
    _small_state().prove(_STATE, {}, nodes)
    yield json.dumps(
        {"at": hexed(bytes(32)), "proof": [hexed(node) for node in nodes.values()]}
    ).encode()


class _ConstantNode:
    """A node that returns the same answer to all requests, and real keys to requests of keys."""

    url = "ws://node"

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def ask(self, method: str, *_params: object) -> object:
        return list(_STATE) if "Keys" in method else self._answer


@target("state-answer", "read proofs of a forked node", _state_answers, "client", text=True)
def _read_state_answer(data: bytes) -> str:
    """Read a state from a node that gives the same answer to each request for a proof.

    Raises `DefensiveFailure` if a wrong value or node is accepted.
    """
    from pubsub_emulator.client.live_state import StateProofs

    source = StateProofs(_ConstantNode(parse_json(data, "answer")), Hash(bytes(32)))
    state = lazy_state(_small_state().root(), source)
    for key, value in _STATE.items():
        if state.top.get(key) != value:
            raise DefensiveFailure("a wrong value was accepted")
    if any(Hash(blake2_256(node)) != name for name, node in source.nodes.items()):
        raise DefensiveFailure("a trie node was stored under another hash")
    return f"{len(source.nodes)} nodes"


def _exported_states() -> Iterable[bytes]:
    from pubsub_emulator.client.state_file import write_state

    path = temporary_folder() / "state.json"
    write_state(Fork(_small_state(), 7, Hash(bytes(32)), "small"), path)
    return [path.read_bytes()]


@target("exported-state", "an exported state's file", _exported_states, "client", text=True)
@from_file("read.json")
def _read_exported_state(path: Path) -> str:
    from pubsub_emulator.client.state_file import read_state

    return f"{read_state(path).number < 1000}"


class _AcceptingOutlet:
    """The outlet of a client that accepts all events. Events must be JSON.

    Work that a request starts in the background is collected, for the target to run.
    """

    def __init__(self) -> None:
        self.works: list[Coroutine[object, None, None]] = []

    def event(self, subscription: "RpcSubscription", text: str) -> None:
        if subscription.session is not None:
            json.loads(text)

    def spawn(self, work: Coroutine[object, None, None]) -> None:
        self.works.append(work)

    async def room(self) -> None:
        return


@cache
def event_loop() -> asyncio.AbstractEventLoop:
    """Return the loop that readers of this process run in."""
    return asyncio.new_event_loop()


@cache
def _dispatcher() -> "Dispatcher":
    """Return the dispatcher of a node that is a few blocks old and has no development methods."""
    from pubsub_emulator.node.chain.live import LiveNetwork
    from pubsub_emulator.node.server.options import Build, Options
    from pubsub_emulator.node.server.server import Server

    live = LiveNetwork(Simulation(load_bundled("node"), accounts=True))
    server = Server(live, Options(build=Build.MANUAL))
    event_loop().run_until_complete(server.producer.start())
    return server.dispatcher


def _requests() -> Iterable[bytes]:
    """Yield a request for each method, further ones with better arguments, and a batch."""
    node = _dispatcher()._node  # noqa: SLF001  # there is no public access to the methods
    block = hexed(node.timeline.newest.relay.hash)
    key = "0x26aa394eea5630e07c48ae0c9558cef702a5c1b19ab7a04f536c519aca4983ac"
    samples: dict[str, list[object]] = {
        "state_call": ["Core_version", "0x"],
        "system_accountNextIndex": ["5C4hrfjw"],
    }
    for name, method in sorted(node.methods.items()):
        params: list[object] = samples.get(name, [])
        # Arguments of other methods follow from the names of their parameters.
        if not params:
            for param in method.params:
                hint = f"{param}".lower()
                if "keys" in hint:
                    params.append([key])
                elif "key" in hint:
                    params.append(key)
                else:
                    params.append(block if "hash" in hint else 1)
        yield json.dumps({"jsonrpc": "2.0", "id": 1, "method": name, "params": params}).encode()
    query = [
        {"key": key, "type": "descendantsValues"},
        {"key": key, "type": "closestDescendantMerkleValue"},
    ]
    calls: dict[str, list[object]] = {
        "chainHead_v1_follow": [True],
        "archive_v1_storage": [block, query, None],
        "archive_v1_storageDiff": [block, None, None],
        "state_getKeysPaged": [key, 10, key, block],
        "state_getReadProof": [[key], block],
        "state_queryStorageAt": [[key], block],
        "author_submitAndWatchExtrinsic": ["0x1004000000"],
        "transaction_v1_broadcast": ["0x1004000000"],
    }
    for name, params in calls.items():
        yield json.dumps({"jsonrpc": "2.0", "id": "x", "method": name, "params": params}).encode()
    yield json.dumps(
        [{"jsonrpc": "2.0", "id": 1, "method": "chain_getHeader", "params": []}] * 3
    ).encode()


@target("request", "a JSON-RPC message to a node", _requests, "node", text=True)
def _read_request(data: bytes) -> str:
    return event_loop().run_until_complete(_answered(data))


async def _answered(data: bytes) -> str:
    """Send a message to the relay chain and return a summary of its answers.

    Raises `DefensiveFailure` for an internal error.
    """
    from pubsub_emulator.node.chain.block import RELAY
    from pubsub_emulator.node.rpc.dispatch import RpcAnswer
    from pubsub_emulator.node.rpc.session import RpcSession

    outlet = _AcceptingOutlet()
    session = RpcSession("f", outlet)
    try:
        result = _dispatcher().handle(data, RELAY, session)
        answer = result if isinstance(result, RpcAnswer) else await result.work
        session.release(answer.opened or [])
        for work in outlet.works:
            async with asyncio.timeout(60):
                await work
    finally:
        for work in outlet.works:
            work.close()
        session.close()
    if answer.text is None:
        return "nothing"
    document = json.loads(answer.text)
    answers = document if isinstance(document, list) else [document]
    errors = [item.get("error") for item in answers]
    for error in errors:
        if error is not None and error["code"] == -32603:
            raise DefensiveFailure(f"internal error: {error}")
    return " ".join(
        sorted({"answered" if error is None else f"refused {error['code']}" for error in errors})
    )


@cache
def relay_with_accounts() -> tuple[Network, ChainRuntime]:
    """Return a relay chain with the profile `accounts` and its runtime.

    The account that signs mutated extrinsics has a balance there.
    """
    spec = RuntimeSpec(ParaId(2000), {}, accounts=True)
    network = Network(NetworkConfig((ParachainConfig(spec),), RelayConfig(accounts=True)))
    network.call(Root(), "Balances", "force_set_balance", _WHO, 10**18)
    network.step(2)
    runtime = network.relay.runtime.accounts
    if runtime is None:
        raise DefensiveFailure("the profile is off")
    return network, runtime


def _extrinsics() -> Iterable[bytes]:
    """Yield a signed extrinsic for each kind of call. The signatures are zeros."""
    encode = relay_with_accounts()[1].calls.encode
    extra = extrinsics.Extra(extrinsics.Era(), 0, 0, 0)
    for call in (
        encode("System", "remark", b"hello"),
        encode("System", "remark_with_event", b"hello"),
        encode("Balances", "transfer_allow_death", _OTHER, 10**12),
        encode("Balances", "transfer_keep_alive", _OTHER, 5),
        encode("Balances", "force_set_balance", _OTHER, 2**127),
        encode("Registrar", "register", 4000, b"head"),
        encode("Registrar", "deregister", 2000),
        encode("Broadcaster", "register_publisher", 2000),
        encode("Broadcaster", "force_deregister_publisher", 2000),
        encode("Sudo", "sudo", encode("System", "set_storage", [(b"key", b"value")])),
    ):
        yield extrinsics.SignedExtrinsic(_WHO, Scheme.ED25519, bytes(64), extra, call, 0).encode()


@target("extrinsic", "an extrinsic, signed again and run", _extrinsics, "runtime")
def _read_extrinsic(data: bytes) -> str:
    """Run an extrinsic in a block with a valid signature, and its call as root."""
    network, runtime = relay_with_accounts()
    extrinsic = extrinsics.decode(data, runtime.calls)
    if isinstance(extrinsic, extrinsics.BareExtrinsic):
        return "not signed"
    if extrinsic.encode() != data:
        raise DefensiveFailure("a decoded extrinsic is encoded as other bytes")
    state = network.relay.state
    header = network.relay.header
    root = state.root()
    dispatched = runtime.calls.dispatch(begin(state, header), Root(), extrinsic.call)
    hashes = dict(system.BLOCK_HASH.items(network.relay.storage())) | {header.number: header.hash()}
    birth = hashes.get(extrinsic.extra.era.birth(header.number + 1), header.hash())
    implicit = extrinsics.Implicit(
        runtime.signing.spec_version, runtime.signing.transaction_version, hashes[0], birth
    )
    signature = ed25519.sign(
        _SENDER, extrinsics.payload(extrinsic.call.encoded, extrinsic.extra, implicit)
    )
    signed = extrinsics.SignedExtrinsic(
        _WHO, Scheme.ED25519, signature, extrinsic.extra, extrinsic.call, 0
    )
    outcome = NextBlock(runtime, state, header).apply(signed.encode())
    if state.root() != root:
        raise DefensiveFailure("a dry run changed the state")
    return f"{extrinsic.call.pallet}: {outcome.error is None}, {dispatched.error is None}"


@cache
def _metadata_bytes() -> bytes:
    """Return metadata V14 of a runtime with two pallets."""
    definition = relay_with_accounts()[1].definition
    pallets = tuple(
        instance
        for instance in definition.pallets
        if instance.pallet.name in ("System", "Balances")
    )
    two_pallets = replace(definition, pallets=pallets, apis=())
    return metadata(14, two_pallets, lambda: type_names(two_pallets))


@cache
def _event_records() -> bytes:
    """Return the value of `System.Events` after a transfer and a remark."""
    network, runtime = relay_with_accounts()
    calls = runtime.calls
    storage = begin(network.relay.state, network.relay.header)
    calls.dispatch(
        storage, Signed(_WHO), calls.encode("Balances", "transfer_allow_death", _OTHER, 10**12)
    )
    calls.dispatch(storage, Signed(_WHO), calls.encode("System", "remark_with_event", b"hello"))
    return events.encode_records(events.records(storage))


@target("metadata", "a node's metadata", lambda: [_metadata_bytes()], "client")
def _read_metadata(data: bytes) -> str:
    """Read metadata, and decode a block's events with it."""
    from pubsub_emulator.client.metadata import parse_metadata
    from pubsub_emulator.client.node import decode_events

    parse_metadata.cache_clear()
    return f"{len(decode_events(parse_metadata(data), _event_records()))} events"


@target("events", "the events of a block", lambda: [_event_records()], "client")
def _read_events(data: bytes) -> str:
    from pubsub_emulator.client.metadata import parse_metadata
    from pubsub_emulator.client.node import decode_events

    return f"{min(len(decode_events(parse_metadata(_metadata_bytes()), data)), 5)} events"


def _journals() -> Iterable[bytes]:
    """Yield a journal with four actions and a step."""
    head = journal.JournalHead(load_bundled("node"), 1_000_000).line()
    before_step = (
        actions.Publish(para=1000, key=bytes(32), value=b"a", ttl=3),
        actions.Subscribe(para=2000, items=((1000, (bytes(32),)),)),
        actions.Travel(slot=1_000_100),
        actions.Rewind(relay=bytes(32)),
    )
    step = json.dumps({"step": 1, "relay": hexed(bytes(32))})
    lines = (head, *(journal.action_line(action) for action in before_step), step)
    yield "".join(f"{line}\n" for line in lines).encode()


@target("journal", "a node's journal", _journals, "node.chain")
def _read_journal(data: bytes) -> str:
    content = journal.read_journal(data, "journal")
    steps = min(len(content.entries), 3)
    without_step = min(len(content.rest), 3)
    return f"{steps} steps, {without_step} left, cut {content.cut}"

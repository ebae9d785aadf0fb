"""The node: proofs and steps beside their floors, calls beside a constant server (ND-32, ND-33).

`python -m bench --only node` measures the ratios of CPU time. `python -m bench.node` also measures
calls: both servers run in processes of their own, this one sends 32 requests at a time, and the two
take turns.
"""

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any, Final

import aiohttp
from aiohttp import web

from bench.measure import Race, Work
from pubsub_emulator.client.extrinsics import development_seed
from pubsub_emulator.emulator.scenario.file import load_bundled
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.node.chain.block import RELAY
from pubsub_emulator.node.chain.live import LiveNetwork
from pubsub_emulator.node.pool import Pool
from pubsub_emulator.node.rpc.dispatch import Later, RpcAnswer
from pubsub_emulator.node.rpc.legacy_chain import Heads
from pubsub_emulator.node.rpc.legacy_state import StorageChanges
from pubsub_emulator.node.rpc.session import RpcSession, RpcSubscription
from pubsub_emulator.node.server.options import Build, Options
from pubsub_emulator.node.server.server import Server
from pubsub_emulator.primitives import ed25519
from pubsub_emulator.primitives.pubsub import derive_child_key, publisher_root_key
from pubsub_emulator.primitives.signatures import Scheme
from pubsub_emulator.primitives.types import AccountId, Hash, ParaId
from pubsub_emulator.runtime.accounts.apply import TRANSACTION_VERSION
from pubsub_emulator.runtime.accounts.chain import NextBlock
from pubsub_emulator.runtime.accounts.extrinsic import (
    Era,
    Extra,
    Implicit,
    SignedExtrinsic,
    payload,
)

PUBLISHER: Final = ParaId(1000)
PIPELINED: Final = 32
CALLS: Final = 3200
TURNS: Final = 7
WAITING: Final = 500
"""The number of extrinsics in the pool."""


class _Sink:
    """An outlet that counts the characters of its events."""

    def __init__(self) -> None:
        self.sent = 0

    def event(self, _subscription: RpcSubscription, text: str) -> None:
        self.sent += len(text)

    def spawn(self, work: Any) -> None:
        work.close()

    async def room(self) -> None:
        """Return at once, because there is always room."""


def _server(loop: asyncio.AbstractEventLoop) -> tuple[Server, Work]:
    """Return a node after twelve steps, and a function that makes it step once more."""
    live = LiveNetwork(Simulation(load_bundled("demo"), accounts=True))
    server = Server(live, Options(port=0, dev=True, build=Build.MANUAL))

    def step() -> None:
        loop.run_until_complete(server.producer.build())

    for _ in range(12):
        step()
    return server, step


def races() -> Iterator[Race]:
    """Yield races of a child read proof, of steps with and without subscribers, and of a pool."""
    loop = asyncio.new_event_loop()
    server, step = _server(loop)
    state = server.live.network.relay.state
    keys = list(state.children[derive_child_key(PUBLISHER)].keys())[:16]
    child = f"0x{publisher_root_key(PUBLISHER).hex()}"
    params = [child, [f"0x{key.hex()}" for key in keys]]
    request = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "state_getChildReadProof", "params": params}
    )

    async def answered() -> None:
        for _ in range(20):
            answer = server.dispatcher.handle(request, RELAY, None)
            # Proofs are read in a thread beside the event loop.
            if isinstance(answer, Later):
                answer = await answer.work
            if not isinstance(answer, RpcAnswer):
                raise TypeError(answer)

    def proof() -> None:
        loop.run_until_complete(answered())

    def prove() -> None:
        for _ in range(20):
            state.prove((), {derive_child_key(PUBLISHER): keys}, {})

    yield Race("node: a child read proof of 16 keys", proof, "State.prove", prove, 9)
    base = "a step of the simulation"
    yield Race("node: a step", step, base, _twin(12), 15, 1.15)
    yield _pool_race(server)
    crowded, step = _server(loop)
    session = RpcSession("bench", _Sink(), most=2000)
    for at in range(1000):
        session.add(StorageChanges(RELAY, [at.to_bytes(4, "big")], crowded.timeline))
    for _ in range(100):
        session.add(Heads(RELAY))
    crowded.node.sessions[session] = None
    yield Race(
        "node: a step, 100 head and 1,000 storage subscriptions", step, base, _twin(12), 15, 1.5
    )


def _pool_race(server: Server) -> Race:
    """Return a race between advancing a pool past a block and checking each extrinsic again.

    The block has none of the pool's extrinsics.
    """
    relay = server.live.network.relay
    if relay.runtime.accounts is None:
        raise RuntimeError("this network has no accounts")
    seed = development_seed("Alice")
    genesis = Hash(server.node.timeline.views[RELAY].genesis.hash)
    who = AccountId(ed25519.public_key(seed))
    call = relay.runtime.accounts.calls.encode("System", "remark", b"")
    implicit = Implicit(
        relay.runtime.accounts.signing.spec_version, TRANSACTION_VERSION, genesis, genesis
    )
    pool = Pool()
    at = server.node.at(server.node.timeline.views[RELAY].best)
    block = NextBlock(at.runtime, at.state, at.header)
    waiting = []
    for nonce in range(WAITING):
        extra = Extra(Era(), nonce, 0)
        signature = ed25519.sign(seed, payload(call.encoded, extra, implicit))
        waiting.append(SignedExtrinsic(who, Scheme.ED25519, signature, extra, call, 0).encode())
        pool.submit(at, waiting[-1])

    def check() -> None:
        for raw in waiting:
            block.check(raw)

    name = f"node: a pool of {WAITING} after a block without them"
    return Race(name, lambda: pool.advance(at, ()), "checking each", check, 9, 0.2)


def _twin(steps: int) -> Any:
    """Return the function that steps a simulation like that of the node, after some steps."""
    simulation = Simulation(load_bundled("demo"), accounts=True)
    for _ in range(steps):
        simulation.step()
    return simulation.step


# Calls


async def _constant(request: web.Request) -> web.StreamResponse:
    """Answer every request with the same text.

    A node cannot be faster than this.
    """
    text = '{"jsonrpc":"2.0","id":1,"result":"node relay chain"}'
    if request.method == "POST":
        await request.read()
        return web.Response(text=text, content_type="application/json")
    answers = web.WebSocketResponse(compress=False)
    await answers.prepare(request)
    async for _ in answers:
        await answers.send_str(text)
    return answers


def _serve_constant(port: int) -> None:
    app = web.Application()
    app.router.add_route("*", "/", _constant)
    web.run_app(app, host="127.0.0.1", port=port, print=None, access_log=None)


async def _by_socket(http: aiohttp.ClientSession, url: str, text: str) -> float:
    async with http.ws_connect(url, compress=0) as pipe:
        began = time.perf_counter()
        for _ in range(CALLS // PIPELINED):
            for _ in range(PIPELINED):
                await pipe.send_str(text)
            for _ in range(PIPELINED):
                await pipe.receive_str()
        return time.perf_counter() - began


async def _by_post(http: aiohttp.ClientSession, url: str, text: str) -> float:
    async def post() -> None:
        async with http.post(
            url, data=text, headers={"Content-Type": "application/json"}
        ) as answer:
            await answer.read()

    began = time.perf_counter()
    for _ in range(CALLS // PIPELINED // 4):
        await asyncio.gather(*(post() for _ in range(PIPELINED)))
    return time.perf_counter() - began


async def _compare(node: str, constant: str) -> None:
    def request(method: str, *params: str) -> str:
        return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})

    number = "0x26aa394eea5630e07c48ae0c9558cef702a5c1b19ab7a04f536c519aca4983ac"
    lines = (
        ("system_chain, WebSocket", _by_socket, request("system_chain"), 0.5),
        ("state_getStorage, WebSocket", _by_socket, request("state_getStorage", number), 0.35),
        ("system_chain, POST", _by_post, request("system_chain"), 0.5),
    )
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=PIPELINED)) as http:
        for name, run, text, least in lines:
            rates = []
            for _ in range(TURNS):
                mine = await run(http, node, text)
                floor = await run(http, constant, text)
                rates.append((floor / mine, mine))
            calls = CALLS if run is _by_socket else CALLS // 4
            speed = calls / median(mine for _, mine in rates)
            ratio = median(rate for rate, _ in rates)
            print(f"{name:30} {speed:9,.0f} calls/s  {ratio:5.2f} of a constant (>= {least})")


def main() -> None:
    """Start both servers and compare them."""
    if sys.argv[1:2] == ["--constant"]:
        _serve_constant(int(sys.argv[2]))
        return
    port, other = 19_944, 19_945
    node = [
        sys.executable,
        "-m",
        "pubsub_emulator.cli.main",
        "serve",
        "--port",
        str(port),
        "--build",
        "manual",
    ]
    constant = [sys.executable, "-m", "bench.node", "--constant", str(other)]
    with _started(node), _started(constant):
        for place in (port, other):
            _wait_for(place)
        asyncio.run(_compare(f"http://127.0.0.1:{port}/", f"http://127.0.0.1:{other}/"))


@contextmanager
def _started(command: list[str]) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:  # noqa: S603  # ours
        try:
            yield
        finally:
            process.terminate()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"nobody listens on {port}")


if __name__ == "__main__":
    main()

"""A node of the bundled scenario on a free port, and a plain JSON-RPC client of it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import wraps
from inspect import signature
from typing import Any

import aiohttp
import pytest
from support.plumbing.told import Told, beside, told
from support.runtime.accounts import call, signed, signer

from pubsub_emulator.emulator.network.network import Network
from pubsub_emulator.emulator.scenario.file import load_bundled
from pubsub_emulator.emulator.scenario.model import Scenario
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.node.at import At
from pubsub_emulator.node.chain.block import Chain
from pubsub_emulator.node.chain.live import LiveNetwork, Observers
from pubsub_emulator.node.server.options import Build, Options
from pubsub_emulator.node.server.producer import Writer
from pubsub_emulator.node.server.server import Server

PATIENCE = 60.0
HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
)
"""A WebSocket's request, without the empty line at its end."""
ALICE, BOB = signer("Alice"), signer("Bob")


def at(net: Network, chain: int | None) -> At:
    """Return the newest block of a chain, for calls of runtime APIs."""
    if chain is None:
        return At(
            net.relay.runtime, net.relay.header, net.relay.state, net.relay.blocks[0].header.hash()
        )
    para = net.parachain(chain)
    return At(None, para.header, para.state, para.header.hash())


class Refusal(Exception):
    """The error member of an answer."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Any = error.get("data")


story = told(lambda what: asyncio.run(asyncio.wait_for(what(), PATIENCE)), made=0)
"""A coroutine as a test, which ends after a minute at the latest."""


class Client:
    """One WebSocket connection; events wait by the id of their subscription."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.events: dict[str, list[dict[str, Any]]] = {}
        self._count = 0

    async def send(self, method: str, *params: Any) -> int:
        """Send a request; returns its id."""
        self._count += 1
        await self.socket.send_str(
            json.dumps(
                {"jsonrpc": "2.0", "id": self._count, "method": method, "params": list(params)}
            )
        )
        return self._count

    async def read(self) -> dict[str, Any]:
        """Return the next answer. Events before it are stored for `event`."""
        while True:
            message = await self.message()
            if "id" in message:
                return message
            self._keep(message)

    async def message(self) -> dict[str, Any]:
        """Return the next message of any kind."""
        found = await self.socket.receive()
        if found.type is not aiohttp.WSMsgType.TEXT:
            raise ConnectionError(f"{found.type.name}, close code {self.socket.close_code}")
        message: dict[str, Any] = json.loads(found.data)
        return message

    async def call(self, method: str, *params: Any) -> Any:
        """Make a call and return its result. Raises `Refusal`."""
        number = await self.send(method, *params)
        answer = await self.read()
        assert answer["id"] == number, answer
        if "error" in answer:
            raise Refusal(answer["error"])
        return answer["result"]

    async def refused(self, why: int | str, method: str, *params: Any) -> Refusal:
        """Assert that a call is refused, with a code or with words of the code and the message."""
        with pytest.raises(Refusal, match=f"^{why}: " if isinstance(why, int) else why) as refused:
            await self.call(method, *params)
        return refused.value

    async def event(self, subscription: str) -> Any:
        """Return the next event of a subscription."""
        while not self.events.get(subscription):
            message = await self.message()
            assert "id" not in message, message
            self._keep(message)
        return self.events[subscription].pop(0)

    async def settled(self, subscription: str) -> list[Any]:
        """Return all events of a subscription that have been sent so far."""
        await self.call("system_chain")
        return self.events.pop(subscription, [])

    def _keep(self, message: dict[str, Any]) -> None:
        params = message["params"]
        self.events.setdefault(params["subscription"], []).append(params["result"])


@dataclass
class Running:
    """A node that serves."""

    server: Server
    urls: dict[Chain, str]
    http: aiohttp.ClientSession
    opened: list[aiohttp.ClientWebSocketResponse] = field(default_factory=list)
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    async def connect(self, chain: int | None = None, **options: Any) -> Client:
        """Open a new connection to a chain."""
        socket = await self.http.ws_connect(self.urls[chain], max_msg_size=0, **options)
        self.opened.append(socket)
        return Client(socket)

    async def post(self, body: Any, chain: int | None = None) -> Any:
        """Send a POST request and return its answer."""
        async with self.http.post(self.http_url(chain), json=body) as response:
            return await response.json()

    @property
    def port(self) -> int:
        """The port of the relay chain's path."""
        return int(self.urls[None].split(":")[2].rstrip("/"))

    def http_url(self, chain: int | None = None) -> str:
        """Return the URL for POST requests."""
        return self.urls[chain].replace("ws:", "http:")

    async def step(self, count: int = 1) -> None:
        """Build relay blocks."""
        for _ in range(count):
            await self.server.producer.build()


@asynccontextmanager
async def serving(
    scenario: Scenario | None = None,
    observers: Observers | None = None,
    journal: Writer | None = None,
    **options: Any,
) -> AsyncIterator[Running]:
    """Run a node, by default with manual building and development methods."""
    given = {"port": 0, "dev": True, "build": Build.MANUAL, **options}
    live = LiveNetwork(Simulation(scenario or load_bundled("node"), accounts=True), observers)
    server = Server(live, Options(**given), journal)
    async with server.serving() as places, aiohttp.ClientSession() as http:
        running = Running(server, {place.chain: place.url for place in reversed(places)}, http)
        try:
            yield running
        finally:
            for socket in running.opened:
                await socket.close()


def served(chain: int | None = None, **options: Any) -> Callable[[Told], Callable[..., None]]:
    """Return a decorator for coroutines that get a `node` and a `client`.

    The client is connected to `chain`, or to the value of the test's parameter `chain`.
    """

    def decorate(what: Told) -> Callable[..., None]:
        named = signature(what)

        @wraps(what)
        async def opened(**given: Any) -> None:
            async with serving(**options) as node:
                if "client" in named.parameters:
                    given["client"] = await node.connect(given.get("chain", chain))
                if "node" in named.parameters:
                    given["node"] = node
                await what(**given)

        test = story(opened)
        rest = [each for name, each in named.parameters.items() if name not in {"node", "client"}]
        test.__dict__["__signature__"] = named.replace(parameters=rest)
        return test

    return decorate


def serving_beside(
    scenario: Scenario | None = None, **options: Any
) -> AbstractContextManager[Running]:
    """Run a node like `serving`, in a thread with a loop of its own."""
    return beside(lambda: serving(scenario, **options))


def transfer(node: Running, chain: int | None, amount: int = 5, **more: Any) -> str:
    """Return a signed transfer from Alice to Bob, in hexadecimal."""
    net = node.server.live.network
    what = call(net, chain, "Balances", "transfer_keep_alive", BOB.account, amount)
    return f"0x{signed(net, chain, what, ALICE, **more).hex()}"

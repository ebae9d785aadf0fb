"""The server of a node: HTTP and WebSocket on the paths of the chains, start and orderly end."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final, Protocol, cast

from aiohttp import WSCloseCode, web

from pubsub_emulator.emulator.network.records import BlockRecord
from pubsub_emulator.node.chain.block import RELAY, Chain, Moment
from pubsub_emulator.node.chain.live import LiveNetwork
from pubsub_emulator.node.chain.timeline import Advance, Timeline
from pubsub_emulator.node.pool import Pool
from pubsub_emulator.node.rpc.dispatch import Dispatcher, RpcAnswer
from pubsub_emulator.node.rpc.errors import request_too_big
from pubsub_emulator.node.rpc.methods import all_methods
from pubsub_emulator.node.rpc.node import RpcNode
from pubsub_emulator.node.rpc.session import compact
from pubsub_emulator.node.rpc.transactions import Watches
from pubsub_emulator.node.server.connection import Connection
from pubsub_emulator.node.server.metrics import NodeMetrics
from pubsub_emulator.node.server.options import Options
from pubsub_emulator.node.server.producer import Producer, Writer
from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.serving.body import read_body
from pubsub_emulator.serving.guard import guard
from pubsub_emulator.serving.listening import CannotListen, http_log

_SPEAK: Final = 1.0
"""The maximum time in seconds between two checks for silent follows."""
_SWITCH_SECONDS: Final = 0.0001
"""The interpreter's switch interval while the node serves. The event loop waits at most that long
for a computing thread after each message that it sends.
"""
_LINGER: Final = 10.0
"""The time in seconds for which the rest of a refused request is read. Clients read the answer only
after they have sent the whole request.
"""
_CORS: Final = {
    "Access-Control-Allow-Methods": "POST, GET, OPTIONS",
    "Access-Control-Allow-Headers": "Content-Type",
    "Access-Control-Max-Age": "600",
}
_OF_PAGE: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
"""Headers of pages: they may only load and call what this server provides."""


class Pages(Protocol):
    """Functions that render pages.

    They are passed to the server because the package that renders pages imports this one.
    """

    def live(self) -> Mapping[str, tuple[bytes, str]]:
        """Return the files of the live page by path, with their media types.

        The page itself is at `/`.
        """

    def explain(
        self, node: RpcNode, before: Moment, moment: Moment, record: BlockRecord
    ) -> dict[str, object]:
        """Return a candidate in the form of `pubsub_explained`.

        `moment` is the candidate's moment, and `before` is the one before it.
        """

    def difference(self, title: str, shown: Mapping[str, object]) -> str:
        """Return the page of a dry run. `shown` is the answer of `dev_dryRun`."""

    def explore(self, node: RpcNode, moments: Sequence[Moment]) -> str:
        """Return the page of some moments, which are in ascending order."""


@dataclass(frozen=True, slots=True)
class ChainAddress:
    """The address of a chain."""

    chain: Chain
    url: str


class Server:
    """A node that serves a network."""

    def __init__(
        self,
        live: LiveNetwork,
        options: Options,
        journal: Writer | None = None,
        pages: Pages | None = None,
    ) -> None:
        """Connect the parts of the node.

        Raises `BadOption` or `ImpossibleTimeline` if options contradict each other.
        """
        options.check()
        self.options = options
        self.live = live
        self.timeline = Timeline(live.genesis, options.history, options.finality)
        pools: dict[Chain, Pool] = {chain: Pool() for chain in live.genesis.heads}
        self.producer = Producer(
            live,
            self.timeline,
            options,
            announce=self._announce,
            pools=pools,
            reject=self._reject,
            journal=journal,
        )
        self.node = RpcNode(
            live.simulation.scenario.name,
            self.timeline,
            live,
            control=self.producer,
            pools=pools,
            watches=Watches(pools),
            methods=all_methods(unsafe=options.dev),
            dev=options.dev,
            draw=None if pages is None else pages.difference,
            explain=None if pages is None else pages.explain,
        )
        self.metrics = NodeMetrics(live.network.rules)
        self.dispatcher = Dispatcher(self.node, options.serving.request, self.metrics)
        self._pages = pages
        self._files: Mapping[str, tuple[bytes, str]] = {} if pages is None else pages.live()
        self.connections: dict[Connection, None] = {}
        self.places: tuple[ChainAddress, ...] = ()
        self._count = 0
        """The number of connections so far, for their names."""
        self._posts = 0
        """The number of POST requests that are being answered."""
        self._joining = 0
        """The number of WebSocket handshakes under way."""
        self._listeners: list[asyncio.Server] = []
        self._drawing: tuple[Moment, asyncio.Future[str]] | None = None
        """The last rendered page of stored blocks, with the newest moment on it."""
        self._chains = {"/": RELAY, **{f"/{para}": para for para in live.network.parachains}}

    # Life

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[tuple[ChainAddress, ...]]:
        """Build the first blocks, listen, and yield the addresses of the chains.

        At the end, close all connections in order. Raises `CannotListen` or `BadOption`.
        """
        before = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_SECONDS)
        await self.producer.start()
        self.node.floor = self.producer.floor
        runners: list[web.AppRunner] = []
        tasks: list[asyncio.Task[None]] = []
        try:
            self.places = await self._listen(runners)
            tasks = [asyncio.create_task(self.producer.run()), asyncio.create_task(self._speak())]
            yield self.places
        finally:
            for listener in self._listeners:
                listener.close()
            for task in tasks:
                task.cancel()
            for task in tasks:
                with suppress(asyncio.CancelledError):
                    await task
            await self.producer.close()
            for connection in list(self.connections):
                connection.close(WSCloseCode.GOING_AWAY)
            for runner in runners:
                await runner.cleanup()
            sys.setswitchinterval(before)

    async def _listen(self, runners: list[web.AppRunner]) -> tuple[ChainAddress, ...]:
        """Listen on all ports and return the addresses of the chains."""
        places: list[ChainAddress] = []
        main = await self._site(runners, self._chains, self.options.port)
        shown = f"[{self.options.host}]" if ":" in self.options.host else self.options.host
        places += [
            ChainAddress(chain, f"ws://{shown}:{main}{path}")
            for path, chain in self._chains.items()
        ]
        if self.options.port_per_chain:
            for offset, para in enumerate(sorted(self.live.network.parachains), 1):
                wanted = main + offset if self.options.port else 0
                port = await self._site(runners, {"/": para}, wanted)
                places.append(ChainAddress(para, f"ws://{shown}:{port}/"))
        return tuple(places)

    async def _site(
        self, runners: list[web.AppRunner], chains: Mapping[str, Chain], port: int
    ) -> int:
        """Listen on one port and return its number.

        `chains` are the chains by path. Only the relay chain's site has metrics and pages.
        """
        app = web.Application(
            client_max_size=self.options.serving.request.bytes,
            middlewares=[guard(self.options.names)],
        )
        for path, chain in chains.items():
            app.router.add_route("*", path, self._handler(chain))
        if chains.get("/", 0) is RELAY:
            app.router.add_get("/metrics", self._metrics)
            app.router.add_get("/explorer", self._explorer)
            for path in self._files:
                if path != "/":
                    app.router.add_get(path, self._file)
        patience = self.options.serving.patience
        runner = web.AppRunner(
            app,
            access_log=None,
            logger=http_log,
            handle_signals=False,
            shutdown_timeout=2.0,
            keepalive_timeout=patience,
            lingering_time=min(_LINGER, patience),
        )
        await runner.setup()
        runners.append(runner)
        server = runner.server
        max_sockets = self.options.serving.sockets
        if server is None:
            raise DefensiveFailure("a runner that is set up has no server")

        # aiohttp does not limit sockets, so those beyond the limit get a protocol of our own.
        def new_protocol() -> asyncio.BaseProtocol:
            return _Full() if len(server.connections) >= max_sockets else server()

        try:
            listener = await asyncio.get_running_loop().create_server(
                new_protocol, self.options.host, port
            )
        except OSError as error:
            raise CannotListen.at(self.options.host, port, error) from None
        self._listeners.append(listener)
        bound: int = listener.sockets[0].getsockname()[1]
        return bound

    def _announce(self, advance: Advance) -> None:
        """Count a step or rewind, and tell all subscriptions of it."""
        self.metrics.noted(advance)
        self.node.announce(advance)

    def _reject(self, chain: Chain, extrinsics: Iterable[bytes]) -> None:
        self.node.reject(chain, extrinsics)

    async def _speak(self) -> None:
        """Let subscriptions that have been silent for a while send an event, again and again."""
        while True:
            await asyncio.sleep(min(_SPEAK, self.options.serving.silence / 4))
            for connection in list(self.connections):
                connection.speak()

    # Requests

    def _handler(self, chain: Chain) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """Return the HTTP handler of a chain's path."""

        async def handle(request: web.Request) -> web.StreamResponse:
            # The guard has already refused the origins that may not call.
            origin = request.headers.get("Origin")
            cors = (
                {} if origin is None else {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}
            )
            if request.method == "OPTIONS":
                return web.Response(status=204, headers={**cors, **_CORS})
            if request.method == "POST":
                response = await self._post(request, chain)
            elif (
                request.method == "GET"
                and request.headers.get("Upgrade", "").lower() == "websocket"
            ):
                return await self._socket(request, chain)
            elif request.method == "GET":
                response = await self._page(request, chain)
            else:
                response = web.Response(status=405, headers={"Allow": "GET, POST, OPTIONS"})
            response.headers.update(cors)
            return response

        return handle

    def _is_full(self) -> bool:
        """Return whether there are as many connections and POST requests as allowed."""
        return (
            len(self.connections) + self._joining + self._posts >= self.options.serving.connections
        )

    async def _post(self, request: web.Request, chain: Chain) -> web.Response:
        """Answer a JSON-RPC request over POST."""
        if self._is_full():
            return web.Response(status=503, text="too many connections\n")
        self._posts += 1
        try:
            try:
                body = await read_body(request, self.options.serving.patience)
            except web.HTTPRequestEntityTooLarge:
                error = request_too_big(self.options.serving.request.bytes)
                text = compact({"jsonrpc": "2.0", "id": None, "error": error.document()})
                return web.Response(status=413, text=text, content_type="application/json")
            result = self.dispatcher.handle(body, chain, None)
            answer = result if isinstance(result, RpcAnswer) else await result.work
        finally:
            self._posts -= 1
        if answer.text is None:
            return web.Response(status=204)
        return web.Response(text=answer.text, content_type="application/json")

    async def _socket(self, request: web.Request, chain: Chain) -> web.StreamResponse:
        """Serve a WebSocket connection."""
        if self._is_full():
            return web.Response(status=503, text="too many connections\n")
        # Messages up to twice the limit of requests are received, so that they can be answered with
        # an error. aiohttp closes the connection for a larger one.
        socket = web.WebSocketResponse(
            compress=False, max_msg_size=2 * self.options.serving.request.bytes
        )
        self._joining += 1
        try:
            await socket.prepare(request)
        finally:
            self._joining -= 1
        self._count += 1
        connection = Connection(
            f"c{self._count}",
            socket,
            request,
            node=self.node,
            chain=chain,
            dispatcher=self.dispatcher,
            serving=self.options.serving,
        )
        self.connections[connection] = None
        try:
            await connection.run()
        finally:
            self.connections.pop(connection, None)
        return socket

    async def _page(self, request: web.Request, chain: Chain) -> web.Response:
        if chain is not RELAY or not self._files:
            return web.Response(
                text=f"{self.node.chain_name(chain)}: connect by WebSocket or POST\n"
            )
        return await self._file(request)

    async def _file(self, request: web.Request) -> web.Response:
        content, kind = self._files[request.path]
        return web.Response(body=content, content_type=kind, charset="utf-8", headers=_OF_PAGE)

    async def _explorer(self, _request: web.Request) -> web.Response:
        """Return the page of the stored blocks.

        The page is rendered once for all requests that arrive until it is done.
        """
        pages = self._pages
        newest = self.timeline.newest
        if pages is None:
            return web.Response(status=404)
        if self._drawing is None or (self._drawing[0] is not newest and self._drawing[1].done()):
            rendering = asyncio.ensure_future(
                asyncio.to_thread(pages.explore, self.node, self.timeline.moments())
            )
            self._drawing = newest, rendering
        try:
            text = await asyncio.shield(self._drawing[1])
        except Exception:
            self._drawing = None
            raise
        return web.Response(text=text, content_type="text/html", charset="utf-8")

    async def _metrics(self, _request: web.Request) -> web.Response:
        return web.Response(
            text=self.metrics.text(self.node), content_type="text/plain", charset="utf-8"
        )


_FULL: Final = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class _Full(asyncio.Protocol):
    """The protocol of a socket beyond the limit (ND-29)."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Answer with status 503 at once, without reading the request."""
        leaving = cast("asyncio.Transport", transport)
        leaving.write(_FULL)
        leaving.close()

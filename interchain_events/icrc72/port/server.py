"""The HTTP interface of a running scenario.

  GET  /api/v2/status                               CBOR with the root key
  POST /api/v4|v3|v2/canister/ID/call               a certificate when the call has ended;
                                                    v2: status 202 at once, then use read_state
  POST /api/v3|v2/canister/ID/query                 the answer, signed by the subnet's node
  POST /api/v3|v2/canister/ID|subnet/ID/read_state  a certificate

Certificates have this machine's time. The network runs a round each second. A call that waits for
its answer runs more rounds at once; the canisters' time is then ahead until this machine's time
catches up.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final

from aiohttp import hdrs, web

from interchain_events.icrc72.ic.canister import REFUSED, SECOND, Answer
from interchain_events.icrc72.ic.errors import IcError, PrincipalError
from interchain_events.icrc72.ic.principal import MANAGEMENT, Principal
from interchain_events.icrc72.port.authority import Authority, cbor
from interchain_events.icrc72.port.envelope import (
    MOST_BODY,
    BadRequest,
    Request,
    check_expiry,
    read_request,
)
from interchain_events.icrc72.port.hash_tree import Path, State
from interchain_events.icrc72.port.kept_tree import LENGTH
from interchain_events.icrc72.port.proxy import Proxy
from interchain_events.icrc72.port.requests import Requests, rejection
from interchain_events.icrc72.scenario import Run
from pubsub_emulator.serving.body import read_body
from pubsub_emulator.serving.guard import Names, guard
from pubsub_emulator.serving.listening import listening

CBOR: Final = "application/cbor"
MOST_ROUNDS: Final = 100
"""How many rounds a call waits for its answer. Then the caller has to ask again."""
_CATCHING_UP: Final = 10
"""How many rounds are run at a time when the canisters' time is behind."""
_TICK: Final = 0.1
"""The seconds between two looks at the time."""
_CORS: Final = {
    "Access-Control-Allow-Methods": "POST, GET, OPTIONS",
    "Access-Control-Allow-Headers": "Content-Type",
    "Access-Control-Max-Age": "600",
}
_PROVED: Final = {b"certified_data", b"controllers", b"metadata", b"module_hash"}
"""The parts of a canister's state that anybody may read."""


class Port:
    """The HTTP interface of one run."""

    def __init__(self, run: Run, names: Names, clock: Callable[[], int] = time.time_ns) -> None:
        """Prepare the routes, and add a proxy canister to the run."""
        self.run = run
        self.network = run.network
        self.authority = Authority(self.network.seed, self.network.subnets)
        self.proxy = self.network.create(0, Proxy())
        run.who["proxy"] = self.proxy
        self._names = names
        self._clock = clock
        self._latest = 0
        self._requests = Requests(self.network.subnets)

    def application(self) -> web.Application:
        """Return the aiohttp application."""
        app = web.Application(
            client_max_size=MOST_BODY, middlewares=[_told, guard(self._names, CBOR)]
        )
        app.router.add_get("/api/v2/status", self._status)
        app.router.add_route("OPTIONS", "/api/{rest:.*}", self._options)
        canister = "/api/{version:v[234]}/canister/{id}"
        app.router.add_post(f"{canister}/call", self._call)
        app.router.add_post(f"{canister}/query", self._query)
        app.router.add_post(
            "/api/{version:v[234]}/{place:canister|subnet}/{id}/read_state", self._read_state
        )
        return app

    async def tick(self, ended: asyncio.Event) -> None:
        """Run rounds as time passes, until `ended` is set.

        Raises `Icrc72Error` if a fault that the scenario plans cannot be caused.
        """
        while not ended.is_set():
            for _ in range(_CATCHING_UP):
                if self.network.time(0) + SECOND > self._clock():
                    break
                self.run.step()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), _TICK)

    async def _status(self, _request: web.Request) -> web.Response:
        return _answered({"replica_health_status": "healthy", "root_key": self.authority.root_key})

    async def _options(self, _request: web.Request) -> web.Response:
        return web.Response(status=204, headers=_CORS)

    async def _call(self, http: web.Request) -> web.Response:
        """Submit a call and wait for its answer. A request that is known is not submitted again."""
        request = await self._read(http, "call")
        subnet = self._subnet(http, request)
        if self._requests.get(request.id) is None and not await self._has_room(request.size):
            return _refused("too many calls are under way")
        # The same request may have come again while this one waited for room.
        known = self._requests.get(request.id)
        if known is None:
            check_expiry(request.expiry, self._now())
            if self._requests.is_full():
                return _refused("the table of requests is full until some of them expire")
            ticket = self.network.submit(
                request.sender, request.canister, request.method, request.arg
            )
            if ticket.answer is not None:
                answer = self._with_proxy(ticket.answer)
                return _answered({"status": "non_replicated_rejection", **rejection(answer)})
            known = self._requests.add(request, _principal(http), subnet, ticket)
        if http.match_info["version"] == "v2":
            return web.Response(status=202)
        for _ in range(MOST_ROUNDS):
            self._requests.settle()
            if known.ticket is None:
                paths = [(b"request_status", request.id)]
                certificate = self._certify(subnet, paths)
                return _answered({"status": "replied", "certificate": certificate})
            self.run.step()
            # Let other requests be served.
            await asyncio.sleep(0)
        return web.Response(status=202)

    def _with_proxy(self, answer: Answer) -> Answer:
        """Return the rejection of a call, which names the proxy if the canister admits no users."""
        if answer.message != REFUSED:
            return answer
        words = f"{REFUSED}; the canister {self.proxy.text} (proxy) calls it for users: `forward`"
        return answer._replace(message=words)

    async def _has_room(self, size: int) -> bool:
        """Run rounds until the calls under way leave room for one of `size` bytes.

        Returns false if they still do not after `MOST_ROUNDS` rounds.
        """
        for _ in range(MOST_ROUNDS):
            self._requests.settle()
            if not self._requests.is_busy(size):
                return True
            self.run.step()
            await asyncio.sleep(0)
        return False

    async def _query(self, http: web.Request) -> web.Response:
        request = await self._read(http, "query")
        subnet = self._subnet(http, request)
        answer = self.network.query(request.sender, request.canister, request.method, request.arg)
        reply: dict[str, object] = {"status": "replied", "reply": {"arg": answer.data}}
        if not answer.ok:
            reply = {"status": "rejected", **rejection(answer)}
        signed = self.authority.subnets[subnet].vouch(reply, request.id, self._now())
        return _answered({**reply, "signatures": [signed]})

    async def _read_state(self, http: web.Request) -> web.Response:
        """Certify paths of a subnet's state. The address names the subnet or a canister on it."""
        request = await self._read(http, "read_state")
        named = _principal(http)
        canister = named if http.match_info["place"] == "canister" else None
        subnet = (
            self.authority.numbered(named) if canister is None else self.network.host(named).subnet
        )
        if subnet is None:
            raise BadRequest(f"there is no subnet {named.text}")
        for path in request.paths:
            self._check_path(path, canister, request)
        return _answered({"certificate": self._certify(subnet, request.paths)})

    async def _read(self, http: web.Request, kind: str) -> Request:
        """Read and check a request, and forget those that have expired."""
        request = read_request(await read_body(http), kind, self._now())
        self._requests.forget(self._now())
        return request

    def _now(self) -> int:
        """Return the time (ns).

        It never goes back: a request that was forgotten would otherwise be valid again.
        """
        self._latest = max(self._latest, self._clock())
        return self._latest

    def _certify(self, subnet: int, paths: Sequence[Path]) -> bytes:
        """Return a certificate that shows paths of a subnet's state."""
        self._requests.settle()
        return self.authority.certify(subnet, self._now(), self._state(subnet), paths)

    def _subnet(self, http: web.Request, request: Request) -> int:
        """Return the subnet of the canister in the address.

        The request must be for this canister or the management canister. Raises `BadRequest`.
        """
        named = _principal(http)
        if request.canister not in {named, MANAGEMENT}:
            raise BadRequest(
                f"the request is for {request.canister.text}, the address for {named.text}"
            )
        return self.network.host(named).subnet

    def _check_path(self, path: Path, canister: Principal | None, reader: Request) -> None:
        """Check that the sender of a request may read a path. Raises `BadRequest`.

        The status of a call is only for its sender, at the address to which it was sent. A session
        reads it only if its delegations reach to the canister that was called.
        """
        head = path[0] if path else b""
        if head in {b"time", b"subnet", b"canister_ranges"}:
            return
        if head == b"request_status" and len(path) > 1 and canister is not None:
            known = self._requests.get(path[1])
            if known is None:
                # The certificate then proves that there is no such call.
                if len(path[1]) == LENGTH:
                    return
            elif (
                known.sender == reader.sender
                and known.effective == canister
                and reader.is_for(known.canister)
            ):
                return
        if head == b"canister" and len(path) > 2 and canister == path[1] and path[2] in _PROVED:
            return
        raise BadRequest(
            f"the path {[part.decode(errors='backslashreplace') for part in path]} is not read here"
        )

    def _state(self, subnet: int) -> dict[bytes, State]:
        """Return the state of a subnet that certificates can show: canisters and calls of users."""
        canisters: dict[bytes, State] = {}
        for host in self.network.hosts():
            if host.subnet != subnet or host.code is None:
                continue
            about: dict[bytes, State | None] = {
                b"controllers": cbor(list(map(bytes, host.controllers))),
                b"metadata": {name.encode(): data for name, data in host.code.metadata.items()},
                b"module_hash": host.code.module_hash,
                b"certified_data": host.code.certified,
            }
            canisters[host.id] = {name: content for name, content in about.items() if content}
        return {b"canister": canisters, b"request_status": self._requests.tree(subnet)}


def serve(port: Port, names: Names, number: int) -> AbstractAsyncContextManager[tuple[str, int]]:
    """Serve the interface at a port (0 for any). The context manager yields host and port."""
    return listening(port.application(), names.host, number, 2.0)


def _principal(http: web.Request) -> Principal:
    """Return the principal in the address. Raises `BadRequest`."""
    try:
        return Principal.from_text(http.match_info["id"])
    except PrincipalError as error:
        raise BadRequest(str(error)) from None


def _answered(value: object) -> web.Response:
    return web.Response(body=cbor(value), content_type=CBOR)


def _refused(words: str) -> web.Response:
    """Refuse a call for now."""
    return web.Response(status=503, text=f"{words}\n", headers={hdrs.RETRY_AFTER: "1"})


@web.middleware
async def _told(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer expected failures with a line of text.

    Pages whose requests the guard admits may also read the answers (CORS).
    """
    try:
        response = await handler(request)
    except IcError as error:
        response = web.Response(status=400, text=f"{error}\n")
    origin = request.headers.get(hdrs.ORIGIN)
    if origin is not None:
        response.headers.update({"Access-Control-Allow-Origin": origin, "Vary": hdrs.ORIGIN})
    return response

"""A distributor over two adapters and a subscriber, all over HTTP on this machine."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
import jwt
import pytest
from aiohttp import web
from support.plumbing.told import Told, told

from interchain_events.distributor.adapter.http import AdapterHttp
from interchain_events.distributor.adapter.ledger import SimulatedLedger
from interchain_events.distributor.once import MemoryStore
from interchain_events.distributor.service.access import AccessRights
from interchain_events.distributor.service.config import Config
from interchain_events.distributor.service.engine import Engine
from interchain_events.distributor.service.serve import Running, running, served
from interchain_events.distributor.simulation.network import SimulatedNetwork
from interchain_events.distributor.simulation.stories import event_of

Json = dict[str, Any]
NODE = "ws://node.example:9944"
"""The node of every adapter's chain."""


@dataclass
class Inbox:
    """A subscriber over HTTP."""

    status: int = 200
    got: list[tuple[dict[str, str], Json]] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def post(self, request: web.Request) -> web.Response:
        self.got.append((dict(request.headers), await request.json()))
        self.arrived.set()
        return web.Response(status=self.status)


@dataclass
class Stage:
    """A distributor over two adapters, all over HTTP."""

    url: str
    ledgers: dict[str, SimulatedLedger]
    inbox: Inbox
    inbox_url: str
    http: aiohttp.ClientSession
    adapters: dict[str, str]
    engine: Engine

    async def ask(self, method: str, path: str, **how: Any) -> tuple[int, Any, Any]:
        async with self.http.request(method, self.url + path, **how) as response:
            text = await response.text()
            is_json = text != "" and text[0] in "[{0123456789"
            body = json.loads(text) if is_json else text
            return response.status, body, response.headers

    async def publish(self, number: int = 1, entity: int = 0) -> int:
        """Publish as a client and return the status of the answer."""
        return (
            await self.ask("POST", "/api/v2/publishEvent", json=event_of(number, entity)[1].body())
        )[0]

    async def subscribe(self, endpoint: str = "", **wish: Any) -> tuple[int, Any]:
        """Subscribe a client to all events, and return status and body of the answer.

        Events are sent to the inbox if `endpoint` is empty.
        """
        asked = {"eventTypes": ["*"], "notificationEndpoint": endpoint or self.inbox_url, **wish}
        return (await self.ask("POST", "/api/v2/subscribe", json=asked))[:2]

    def counts(self, number: int) -> list[int]:
        """Return how often each network has an event."""
        return [ledger.network.count(event_of(number)[0]) for ledger in self.ledgers.values()]

    async def subscribed(self) -> None:
        """Wait until each adapter has this distributor's subscription: events are notified from
        then on.
        """
        for url in self.adapters.values():
            listed: Json = {}
            while not listed:
                async with self.http.get(f"{url}/api/v2/subscribe") as response:
                    listed = await response.json()
                await asyncio.sleep(0.01)


async def until(holds: Callable[[], bool], seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110  # what is waited for does not tell of itself
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def stage(
    tmp_path: Path, networks: tuple[SimulatedNetwork, ...] | None = None, **more: Any
) -> AsyncIterator[Stage]:
    """Run a distributor with its adapters, and wait for the networks that are up.

    The networks are `a` and `b` by default.
    """
    async with contextlib.AsyncExitStack() as stack:
        ledgers = {
            each.name: SimulatedLedger(each)
            for each in networks or (SimulatedNetwork("a"), SimulatedNetwork("b"))
        }
        adapters = {}
        for name, ledger in ledgers.items():
            app = AdapterHttp(
                name, ledger, MemoryStore(), AccessRights(everyone=True), node=NODE
            ).application()
            adapters[name] = {"url": await stack.enter_async_context(served(app, "127.0.0.1", 0))}
        inbox = Inbox()
        app = web.Application()
        app.router.add_post("/in", inbox.post)
        inbox_url = await stack.enter_async_context(served(app, "127.0.0.1", 0)) + "/in"
        urls = {name: str(each["url"]) for name, each in adapters.items()}
        more = {"store": f"sqlite:{tmp_path / 'ied.db'}", **more}
        made = await stack.enter_async_context(another(tmp_path, urls, **more))
        http = await stack.enter_async_context(aiohttp.ClientSession())
        up = [name for name, ledger in ledgers.items() if ledger.network.up]
        await until(lambda: all(made.engine.reached[name].answered_at for name in up))
        yield Stage(
            made.url,
            ledgers,
            inbox,
            inbox_url=inbox_url,
            http=http,
            adapters=urls,
            engine=made.engine,
        )


@contextlib.asynccontextmanager
async def another(folder: Path, urls: dict[str, str], /, **more: Any) -> AsyncIterator[Running]:
    """Run one more distributor on adapters, given by network as URLs.

    It has a store of its own by default.
    """
    port = free_port()
    fields = {
        "public_url": f"http://127.0.0.1:{port}",
        "port": port,
        "store": f"sqlite:{folder / 'another.db'}",
        "adapters": {name: {"url": url} for name, url in urls.items()},
        "private_endpoints": True,
        **more,
    }
    async with running(Config.model_validate(fields), folder) as made:
        yield made


@contextlib.contextmanager
def changed_rules(changes: dict[str, int]) -> Iterator[None]:
    """Give every distributor other rules of the state machine, mostly shorter times."""
    made = Config.rules
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Config, "rules", lambda config, owner: replace(made(config, owner), **changes)
        )  # type: ignore[arg-type]
        yield


def key_set(*keys: tuple[str, str, Any]) -> str:
    """Return the public halves of keys as a JWK set. Each key has a name and an algorithm."""
    public = [
        {
            **json.loads(jwt.get_algorithm_by_name(algorithm).to_jwk(key.public_key())),
            "kid": name,
            "alg": algorithm,
        }
        for name, algorithm, key in keys
    ]
    return json.dumps({"keys": public})


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


def play(
    tmp_path: Path,
    what: Callable[[Stage], Awaitable[None]],
    rules: dict[str, int] | None = None,
    files: dict[str, str] | None = None,
    **more: Any,
) -> None:
    """Play on a stage with these settings, with changed rules, and with files beside the
    settings.
    """

    async def run() -> None:
        async with stage(tmp_path, **more) as made:
            await what(made)

    for name, text in (files or {}).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with changed_rules(rules or {}):
        asyncio.run(run())


def played(**more: Any) -> Callable[[Told], Callable[..., None]]:
    """Return a decorator for tests that are run by `play` with these settings."""
    return told(lambda tmp_path, what: play(tmp_path, what, **more), "tmp_path")

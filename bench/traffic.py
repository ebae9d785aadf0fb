"""Traffic with killed processes: `python -m bench.traffic [--minutes 60] [--kill-every 60]`.

Two replicas of a distributor (`pubsub distributor serve`) share a store; two adapters and a
subscriber live here. Events are published through the replicas and, by strangers, on either
network, `--rate` a second. Every so often one replica is killed and started again. `--how roll`
terminates it instead and waits for its end, as an upgrade does, and `both` alternates. At the end
nothing may be lost: each event that was accepted or is on a network is on both, and the subscriber
acknowledged each. Network `a` refuses a duplicate id. Network `b` accepts it, and its duplicates
are counted: there may be one for each call that was in progress in a killed process.
"""

import argparse
import asyncio
import contextlib
import os
import random
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp
from aiohttp import web

from bench.distributor import redis_server
from bench.events import postgres
from interchain_events.distributor.adapter.http import AdapterHttp
from interchain_events.distributor.adapter.ledger import SimulatedLedger
from interchain_events.distributor.once import MemoryStore
from interchain_events.distributor.service.access import AccessRights
from interchain_events.distributor.service.serve import served
from interchain_events.distributor.simulation.network import SimulatedNetwork
from interchain_events.distributor.simulation.stories import event_of

REPLICAS: Final = 2
SETTLE_SECONDS: Final = 300


@dataclass
class Traffic:
    """The replicas, the networks, and the events that were published, accepted and received."""

    folder: Path
    ledgers: dict[str, SimulatedLedger]
    got: Counter[str] = field(default_factory=Counter)
    accepted: set[str] = field(default_factory=set)
    published: int = 0
    kills: int = 0
    ends: list[int] = field(default_factory=list)
    """The exit codes of replicas that were terminated."""
    ports: tuple[int, ...] = ()
    front: str = ""
    """The URL of the balancer."""
    replicas: dict[int, "asyncio.subprocess.Process"] = field(default_factory=dict)

    async def take(self, request: web.Request) -> web.Response:
        """Count a notification that the subscriber receives."""
        self.got[(await request.json())["dataLocation"].partition("?hl=")[2]] += 1
        return web.Response()

    async def start(self, port: int) -> None:
        """Start a replica."""
        self.replicas[port] = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-m",
                "pubsub_emulator",
                "distributor",
                "serve",
                str(self.folder / f"{port}.toml"),
            ),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )

    async def kill(self, port: int, how: int = signal.SIGKILL) -> None:
        """Stop a replica. With SIGTERM, wait first until it serves."""
        if how == signal.SIGTERM:
            await self._serves(port)
        replica = self.replicas.pop(port)
        with contextlib.suppress(ProcessLookupError):
            replica.send_signal(how)
        code = await replica.wait()
        if how == signal.SIGTERM:
            self.ends.append(code)

    async def _serves(self, port: int) -> None:
        """Return once a replica answers."""
        async with aiohttp.ClientSession() as session, asyncio.timeout(SETTLE_SECONDS):
            while True:
                with contextlib.suppress(aiohttp.ClientError, OSError):
                    async with session.get(f"http://127.0.0.1:{port}/livez") as answer:
                        if answer.status == 200:
                            return
                await asyncio.sleep(0.05)

    async def forward(self, request: web.Request) -> web.Response:
        """Forward a request to a replica that answers, as a balancer does.

        Answer with status 503 if no replica answers.
        """
        body = await request.read()
        for port in random.sample(self.ports, len(self.ports)):  # not a secret
            with contextlib.suppress(aiohttp.ClientError, OSError, asyncio.TimeoutError):
                url = f"http://127.0.0.1:{port}{request.raw_path}"
                headers = {"Content-Type": request.headers.get("Content-Type", "application/json")}
                async with (
                    aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=40)) as session,
                    session.request(request.method, url, data=body, headers=headers) as answer,
                ):
                    content = await answer.read()
                    return web.Response(
                        status=answer.status, body=content, content_type=answer.content_type
                    )
        return web.Response(status=503)

    async def publish(self, session: aiohttp.ClientSession, number: int) -> None:
        """Publish one event.

        Two of three go through the distributor. A stranger publishes the third one on a network.
        """
        event_id, event = event_of(number, number % 50)
        self.published += 1
        if number % 3 == 0:
            self.ledgers[random.choice("ab")].append(event)  # not a secret
            return
        with contextlib.suppress(aiohttp.ClientError, OSError, asyncio.TimeoutError):
            url = f"{self.front}/api/v2/publishEvent"
            async with session.post(url, json=event.body()) as answer:
                if answer.status in {200, 201, 202}:
                    self.accepted.add(event_id)

    def lost(self) -> dict[str, list[str]]:
        """Return the ids of the events that a network or the subscriber lacks, by its name."""
        logs = {
            name: {notice.id or "" for notice in ledger.network.log}
            for name, ledger in self.ledgers.items()
        }
        wanted = self.accepted.union(*logs.values())
        missing = {name: sorted(wanted - log) for name, log in logs.items()}
        return {**missing, "subscriber": sorted(wanted - {*self.got})}


def free_ports(count: int) -> tuple[int, ...]:
    """Return ports that are not in use."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener in sockets:
            listener.bind(("127.0.0.1", 0))
        return tuple(listener.getsockname()[1] for listener in sockets)


def write_settings(traffic: Traffic, store: str, urls: dict[str, str]) -> None:
    """Write a settings file for each replica. Webhooks go to the balancer."""
    for port in traffic.ports:
        lines = [f'public_url = "{traffic.front}"', f"port = {port}", f'store = "{store}"']
        lines += ["private_endpoints = true", "call_timeout = 3"]
        for name, url in urls.items():
            lines += [f"[adapters.{name}]", f'url = "{url}"']
        (traffic.folder / f"{port}.toml").write_text("\n".join(lines), encoding="utf-8")


async def run(folder: Path, store: str, wish: argparse.Namespace) -> bool:
    """Run the traffic, and return whether all events arrived and none was duplicated."""
    networks = SimulatedNetwork("a"), SimulatedNetwork("b", unique=False)
    traffic = Traffic(folder, {network.name: SimulatedLedger(network) for network in networks})
    front = web.Application()
    front.router.add_post("/in", traffic.take)
    front.router.add_route("*", "/{path:.*}", traffic.forward)
    async with contextlib.AsyncExitStack() as stack:
        urls = {}
        for name, ledger in traffic.ledgers.items():
            app = AdapterHttp(
                name, ledger, MemoryStore(), AccessRights(everyone=True)
            ).application()
            urls[name] = await stack.enter_async_context(served(app, "127.0.0.1", 0))
        traffic.front = await stack.enter_async_context(served(front, "127.0.0.1", 0))
        traffic.ports = free_ports(REPLICAS)
        write_settings(traffic, store, urls)
        for port in traffic.ports:
            await traffic.start(port)
        session = await stack.enter_async_context(
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60))
        )
        await _subscribe(session, traffic.front)
        await _send(traffic, session, wish)
        settled = await _settle(traffic)
        for port in traffic.ports:
            await traffic.kill(port, signal.SIGTERM)
    return _report(traffic, settled=settled)


async def _subscribe(session: aiohttp.ClientSession, base: str) -> None:
    wish = {"eventTypes": ["*"], "notificationEndpoint": f"{base}/in"}
    for _ in range(600):
        async with session.post(f"{base}/api/v2/subscribe", json=wish) as answer:
            if answer.status in {200, 201}:
                return
        await asyncio.sleep(0.1)
    raise TimeoutError("no replica answers")


async def _send(traffic: Traffic, session: aiohttp.ClientSession, wish: argparse.Namespace) -> None:
    begun = time.monotonic()
    end = begun + wish.minutes * 60
    next_kill = begun + wish.kill_every
    number = 0
    tasks: set[asyncio.Task[None]] = set()
    while time.monotonic() < end:
        number += 1
        tasks.add(asyncio.create_task(traffic.publish(session, number)))
        tasks -= {task for task in tasks if task.done()}
        if time.monotonic() > next_kill:
            port = traffic.ports[traffic.kills % len(traffic.ports)]
            gently = wish.how == "roll" or (wish.how == "both" and traffic.kills % 2 == 1)
            await traffic.kill(port, signal.SIGTERM if gently else signal.SIGKILL)
            traffic.kills += 1
            await traffic.start(port)
            next_kill += wish.kill_every
        await asyncio.sleep(1 / wish.rate)
    await asyncio.gather(*tasks)


async def _settle(traffic: Traffic) -> bool:
    """Wait until all events have arrived. Return `False` after `SETTLE_SECONDS`."""
    end = time.monotonic() + SETTLE_SECONDS
    while any(traffic.lost().values()):
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.5)
    await asyncio.sleep(5)
    return True


def _report(traffic: Traffic, *, settled: bool) -> bool:
    """Print the totals and return whether the run succeeded."""
    lost: dict[str, Any] = {name: len(ids) for name, ids in traffic.lost().items()}
    logs = {
        name: Counter(notice.id for notice in ledger.network.log)
        for name, ledger in traffic.ledgers.items()
    }
    doubles = {name: counts.total() - len(counts) for name, counts in logs.items()}
    repeated = traffic.got.total() - len(traffic.got)
    print(
        f"{traffic.published} events published, {len(traffic.accepted)} accepted, {traffic.kills}"
        " processes ended"
    )
    print(f"lost: {lost}; doubled on a network: {doubles}; notifications repeated: {repeated}")
    if any(traffic.ends):
        print(f"exit codes of terminated processes: {traffic.ends}")
    return settled and not any(lost.values()) and doubles["a"] == 0 and not any(traffic.ends)


@contextlib.contextmanager
def store_of(kind: str, folder: Path) -> Iterator[str]:
    """Yield the address of a new store.

    The servers of Redis and PostgreSQL come from their wheels.
    """
    if kind == "sqlite":
        yield f"sqlite:{folder}/ied.db"
    elif kind == "redis":
        with redis_server() as url:
            yield url
    else:
        with postgres() as url:
            if url is None:
                raise SystemExit(1)
            yield url


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.traffic", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--kill-every", type=float, default=60, help="seconds")
    parser.add_argument("--rate", type=float, default=20, help="events per second")
    parser.add_argument(
        "--how", choices=["kill", "roll", "both"], default="kill", help="how a process is ended"
    )
    parser.add_argument("--store", choices=["redis", "sqlite", "postgresql"], default="redis")
    wish = parser.parse_args()
    os.environ.setdefault("PYTHONPATH", ":".join(filter(None, sys.path)))
    with (
        tempfile.TemporaryDirectory(prefix="traffic-") as folder,
        store_of(wish.store, Path(folder)) as store,
    ):
        sys.exit(0 if asyncio.run(run(Path(folder), store, wish)) else 1)

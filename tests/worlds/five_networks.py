"""The demonstration of all kinds: one distributor over five networks, two programs killed, and
nothing lost or doubled.

    PYTHONPATH=tests python tests/worlds/five_networks.py

    alastria   a public adapter in front of its own chain, profile `legacy`: its model, or a real
               one with `--public` or `--checkout`
    hashnet    a Substrate chain with pallet `DomeEvents`, behind a node
    fabric     the same in the process of its adapter
    besu       an EVM chain whose transactions are free
    polygon    an EVM chain with a market of fees and a block a second, by WebSocket

Somebody publishes at each network, and a client at the distributor. Each event must come to every
network once, and to a subscriber of everything. `python tests/worlds/install.py` brings the EVM
chains from npm.

With `--losses` the distributor's store is emptied while it runs, and later becomes the copy of an
earlier time. The subscription is lost with it then, so the subscriber is not waited for.
"""

import argparse
import asyncio
import contextlib
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from support.distributor.checkout import adapter_of_dome
from support.distributor.ganache import Ganache, ganache
from support.distributor.public_adapter import PublicAdapter
from support.distributor.stage import free_port
from support.distributor.worlds import Program, adapter_of, distributor_over

from interchain_events.distributor.event import Event
from interchain_events.distributor.once import open_store
from interchain_events.distributor.service.serve import served

EACH = 4
"""Events that are published at each network, and at the distributor."""
SECONDS = 600
LOG_LINES = 20
"""The number of lines of each log that a failure shows."""
KINDS = {
    "alastria": "public adapter",
    "hashnet": "Substrate, node",
    "fabric": "Substrate, inside",
    "besu": "EVM, free",
    "polygon": "EVM, fees",
}
ORIGIN = "0x" + "0d" * 32


@dataclass
class Seen:
    """How often each id is on each network, and came to the subscriber."""

    on: dict[str, Counter[str]] = field(default_factory=dict)
    told: Counter[str] = field(default_factory=Counter)
    published: list[str] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    """What happened to the distributor's store."""

    def is_whole(self) -> bool:
        """Whether every event is everywhere, at least once."""
        waited_for = [*self.on.values(), *([] if self.lost else [self.told])]
        return bool(self.on) and all(set(self.published) <= set(counts) for counts in waited_for)

    def missing(self) -> list[str]:
        """Return the events that are not everywhere, each behind the name of the place."""
        found: list[str] = []
        for name, counts in {**self.on, "subscriber": self.told}.items():
            found += [f"{name}: {wanted}" for wanted in self.published if wanted not in counts]
        return found

    def doubled(self) -> list[str]:
        """What is anywhere twice; the subscriber knows repeated deliveries by their
        `webhook-id`.
        """
        return [
            f"{name}: {each}"
            for name, counts in self.on.items()
            for each, count in counts.items()
            if count > 1
        ]

    def lines(self) -> list[str]:
        """A table."""
        found = [f"{'network':<10}{'kind':<20}{'events':>7}{'twice':>7}"]
        for name, counts in self.on.items():
            twice = sum(count > 1 for count in counts.values())
            found.append(f"{name:<10}{KINDS[name]:<20}{len(counts):>7}{twice:>7}")
        repeated = sum(count > 1 for count in self.told.values())
        found.append(f"{'':<10}{'a subscriber':<20}{len(self.told):>7}{repeated:>7}")
        found.append(f"killed meanwhile: {', '.join(self.killed)}")
        if self.lost:
            found.append(f"the store was {', '.join(self.lost)}")
        return found


def _event(name: str, number: int, run: str) -> Event:
    place = f"{name}-{number}-{run}"
    entity = "0x" + place.encode().hex().rjust(64, "0")[-64:]
    return Event(
        "ProductOffering", f"https://node.example/e?hl={place}", ("sbx",), entity, entity, ORIGIN
    )


@contextlib.asynccontextmanager
async def _networks(
    folder: Path, besu: Ganache, polygon: Ganache
) -> AsyncIterator[dict[str, Program]]:
    """Start the node and the adapters; yields the adapters, whose last word is their port."""
    node = free_port()
    chosen = {
        "hashnet": ("--node", f"ws://127.0.0.1:{node}"),
        "fabric": (),
        "besu": ("--evm", besu.url, "--key-env", "EVM_KEY", "--finality", "0", "--gas-price", "0"),
        "polygon": ("--evm", polygon.ws, "--key-env", "EVM_KEY", "--finality", "1"),
    }
    chain = Program(
        folder / "node.log", "serve", "--dome-events", "hashnet", "--dev", "--port", str(node)
    )
    found = {name: adapter_of(folder, name, *options) for name, options in chosen.items()}
    try:
        await chain.start()
        await asyncio.gather(*(each.start() for each in found.values()))
        yield found
    finally:
        for each in (*found.values(), chain):
            await each.kill()


def _empty(store: Path) -> None:
    """Remove a store under the program that has it open."""
    for each in (store, *store.parent.glob(f"{store.name}-*")):
        each.unlink(missing_ok=True)


def _copy(store: Path, copy: Path) -> None:
    """Copy a store while a program writes to it."""
    with (
        contextlib.closing(sqlite3.connect(store)) as there,
        contextlib.closing(sqlite3.connect(copy)) as here,
    ):
        there.backup(here)


async def demonstrate(
    folder: Path, public_url: str | None = None, chain_id: str = "2020", *, losses: bool = False
) -> Seen:
    """Play the story and return the counts.

    Raises `TimeoutError` if an event is not everywhere in time. Its text has the events that are
    missing and the last lines of the programs' logs.
    """
    seen = Seen()
    try:
        await _play(folder, seen, public_url, chain_id, losses=losses)
    except TimeoutError:
        report = [f"killed: {', '.join(seen.killed)}", *seen.missing(), *_ends_of_logs(folder)]
        raise TimeoutError("\n".join(report)) from None
    return seen


def _ends_of_logs(folder: Path) -> list[str]:
    """Return the last lines of each program's log, behind the file's name."""
    found: list[str] = []
    for log in sorted(folder.glob("*.log")):
        lines = log.read_text(encoding="utf-8").splitlines()
        found += [f"{log.name}: {line}" for line in lines[-LOG_LINES:]]
    return found


async def _play(
    folder: Path, seen: Seen, public_url: str | None, chain_id: str, *, losses: bool
) -> None:
    """Play the story, and count in `seen`. Raises `TimeoutError`."""
    model = PublicAdapter("alastria", "")

    async def told(request: web.Request) -> web.Response:
        body: dict[str, Any] = await request.json()
        seen.told[body["dataLocation"].partition("hl=")[2]] += 1
        return web.Response()

    inbox = web.Application()
    inbox.router.add_post("/in", told)
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        await enter(asyncio.timeout(SECONDS))
        besu = stack.enter_context(ganache("--miner.defaultGasPrice", "0", "--hardfork", "berlin"))
        polygon = stack.enter_context(ganache("--miner.blockTime", "1"))
        adapters = await enter(_networks(folder, besu, polygon))
        urls = {
            "alastria": public_url or await enter(served(model.application(), "127.0.0.1", 0)),
            **{name: each.url for name, each in adapters.items()},
        }
        inbox_url = await enter(served(inbox, "127.0.0.1", 0)) + "/in"
        http = await enter(aiohttp.ClientSession())
        settings = {
            "private_endpoints": True,
            "call_timeout": 20,
            "replication_delay": 0.5,
        }
        distributor = distributor_over(folder, urls, {"alastria": chain_id}, **settings)
        url = distributor.url
        stack.push_async_callback(distributor.kill)
        await distributor.start()
        wish = {"eventTypes": ["*"], "notificationEndpoint": inbox_url}
        await _ok(http, f"{url}/api/v2/subscribe", wish)
        run = f"{time.time_ns() // 1_000_000:x}"
        store = folder / "d.db"
        # A subscriber is told of an event of a history only if its block is not older than the
        # subscription. The clock of hashnet's chain is decades behind.
        while await asyncio.to_thread(_histories_read, store) < len(urls):  # noqa: ASYNC110  # of another process
            await asyncio.sleep(0.5)
        others = [place for name, place in urls.items() if name != "alastria"]
        for number in range(EACH):
            for name, place in (*urls.items(), ("client", url)):
                event = _event(name, number, run)
                seen.published.append(event.data_location.partition("hl=")[2])
                url_of = f"{place}/api/v2/publishEvent"
                # A public adapter may refuse a publication that it has sent to its chain.
                is_public = name == "alastria"
                await _published(http, url_of, event, is_public=is_public)
            victim = (distributor, adapters["polygon"], distributor, adapters["hashnet"])[number]
            await victim.kill()
            await victim.start()
            seen.killed.append(victim.log.stem)
            if losses:
                # An event that no network has would be lost with the store.
                await _somewhere(http, others, seen.published[-1])
                await asyncio.to_thread(_lose, number, store, seen)
        while not seen.is_whole():
            await asyncio.sleep(1)
            for name, place in urls.items():
                seen.on[name] = await _on(http, place, seen.published, is_public=name == "alastria")


async def _published(
    http: aiohttp.ClientSession, url: str, event: Event, *, is_public: bool
) -> None:
    """Publish until it is taken, or a public network has it."""
    place = url.removesuffix("/api/v2/publishEvent")
    name = event.data_location.partition("hl=")[2]
    while not await _is_taken(http, url, event.body()):
        if is_public and await _on(http, place, [name], is_public=True):
            return
        await asyncio.sleep(0.5)


async def _is_taken(http: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> bool:
    """Post once. Returns whether it is taken."""
    with contextlib.suppress(aiohttp.ClientError):
        async with http.post(url, json=body) as answer:
            return answer.status in {200, 201, 202}
    return False


async def _ok(http: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> None:
    """Post until it is taken."""
    while not await _is_taken(http, url, body):  # noqa: ASYNC110  # it asks again
        await asyncio.sleep(0.5)


async def _somewhere(http: aiohttp.ClientSession, places: list[str], event: str) -> None:
    """Wait until one of the networks has an event."""
    while True:
        for place in places:
            if await _on(http, place, [event]):
                return
        await asyncio.sleep(0.5)


def _histories_read(store: Path) -> int:
    """Return the number of networks whose histories have been read."""
    with contextlib.closing(open_store(f"sqlite:{store}")) as opened:
        return len(opened.rows("states"))


def _lose(number: int, store: Path, seen: Seen) -> None:
    """Do to the store what belongs to a round."""
    copy = store.with_name("copy.db")
    match number:
        case 0:
            _copy(store, copy)
        case 1:
            _empty(store)
            seen.lost.append("emptied")
        case 2:
            _empty(store)
            copy.rename(store)
            seen.lost.append("restored from a copy of the first round")
        case _:
            pass


async def _on(
    http: aiohttp.ClientSession, url: str, wanted: list[str], *, is_public: bool = False
) -> Counter[str]:
    """How often a network has each of the ids, by its adapter; a public one wants dates."""
    now = int(time.time())
    dates = {"startDate": f"{now - 600}000", "endDate": f"{now + 60}000", "envM": "sbx"}
    with contextlib.suppress(aiohttp.ClientError, ValueError):
        async with http.get(
            f"{url}/api/v2/events", params=dates if is_public else {"all": "true"}
        ) as answer:
            found = [each["dataLocation"].partition("hl=")[2] for each in await answer.json()]
            return Counter(each for each in found if each in wanted)
    return Counter()


def main() -> int:
    """Play it and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--public", metavar="URL", help="a real public adapter, instead of its model"
    )
    parser.add_argument(
        "--checkout",
        metavar="FOLDER",
        type=Path,
        help="a built checkout of DOME's public adapter, which is run on a chain of its own",
    )
    parser.add_argument("--chain-id", default="2020", help="of the public adapter's chain")
    parser.add_argument("--losses", action="store_true", help="lose the distributor's store, too")
    given = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="five-"))
        place = Path(folder)
        url = given.public
        if given.checkout is not None:
            log = place / "adapter.log"
            url = stack.enter_context(adapter_of_dome(given.checkout, log, given.chain_id))
        seen = asyncio.run(demonstrate(place, url, given.chain_id, losses=given.losses))
    sys.stdout.write("\n".join(seen.lines()) + "\n")
    return 1 if seen.doubled() else 0


if __name__ == "__main__":
    sys.exit(main())

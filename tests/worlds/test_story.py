"""A public adapter and two EVM chains under one distributor: a thousand events, kills,
reorganisations (ID-30 to 37).

Events come from a client of the distributor, from a stranger at the public adapter and from a
stranger's transactions. Afterwards each network has each event once, in the order of its entity.
"""

import asyncio
import contextlib
import json
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from support.distributor.evm import STRANGER, ids, ledger_on
from support.distributor.ganache import Ganache, ganache
from support.distributor.public_adapter import PublicAdapter
from support.distributor.worlds import adapter_of, distributor_over
from worlds.five_networks import EACH, KINDS, demonstrate

from interchain_events.distributor.adapter.evm.account import usual_fees
from interchain_events.distributor.adapter.evm.contract import call_data, gas_of
from interchain_events.distributor.adapter.evm.ledger import EvmSettings
from interchain_events.distributor.adapter.evm.node import EvmNode
from interchain_events.distributor.event import Event
from interchain_events.distributor.service.serve import served
from interchain_events.pallets.dome_events.global_id import global_id
from pubsub_emulator.client.errors import ClientError
from pubsub_emulator.client.rpc import connect

EVENTS = 1_000
OF_ONE_ENTITY = 5
KILLS = 6
BLOCK_SECONDS = 1
FINALITY = 1
SECONDS = 900
_BRIEF = aiohttp.ClientTimeout(total=3)


@pytest.fixture
def slow() -> Iterator[Ganache]:
    """Blocks at intervals, which are taken back."""
    with ganache("--miner.blockTime", str(BLOCK_SECONDS)) as made:
        yield made


@pytest.fixture
def quick() -> Iterator[Ganache]:
    """A block for each transaction, and no fees."""
    with ganache("--miner.defaultGasPrice", "0", "--hardfork", "berlin") as made:
        yield made


def _event(number: int, source: int) -> Event:
    """An event of a client (0), of the public adapter's stranger (1) or of a transaction's (2)."""
    # the public adapter shows only the newest of an entity: each of its own events has one
    entity = number if source == 1 else number // (3 * OF_ONE_ENTITY) * 3 + source + 1_000_000
    name = f"0x{entity:064x}"
    return Event(
        "ProductOffering",
        f"https://node.example/e?hl=e{number}",
        ("sbx",),
        name,
        f"0x{number:064x}",
        name,
    )


async def _contract(chain: Ganache, finality: int, price: int | None) -> str:
    async with ledger_on(chain.url, EvmSettings(finality=finality, price=price)) as ledger:
        return ledger.contract


async def _by_transaction(chain: Ganache, contract: str, events: list[Event]) -> None:
    """Publish past every adapter."""
    async with connect(chain.url) as rpc:
        node = EvmNode(rpc)
        for nonce, event in enumerate(events):
            data = call_data(event, STRANGER.address)
            fees = await usual_fees(node, 0)
            await node.send(STRANGER.signed(1337, nonce, gas_of(data), fees, (contract, data)))
            await asyncio.sleep(0.02)


async def _by_client(http: aiohttp.ClientSession, url: str, events: list[Event]) -> None:
    """Publish through the distributor, an entity's events in order, until each is stored."""
    of_entity: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        of_entity[event.order].append(event)

    async def one(entity: list[Event]) -> None:
        for event in entity:
            while not await _is_stored(http, url, event):  # noqa: ASYNC110  # it asks again
                await asyncio.sleep(0.3)

    await asyncio.gather(*map(one, of_entity.values()))


async def _is_stored(http: aiohttp.ClientSession, url: str, event: Event) -> bool:
    """Publish; what is stored is not waited for until all networks have it."""
    with contextlib.suppress(aiohttp.ClientError, TimeoutError):
        async with http.post(
            f"{url}/api/v2/publishEvent", json=event.body(), timeout=_BRIEF
        ) as answer:
            return answer.status in {200, 201, 202}
    with contextlib.suppress(aiohttp.ClientError, TimeoutError):
        async with http.get(
            f"{url}/api/v2/publications/{global_id(event.data_location)}", timeout=_BRIEF
        ) as answer:
            return answer.status == 200
    return False


async def _at_public(adapter: PublicAdapter, events: list[Event]) -> None:
    for event in events:
        adapter.add(event.body(), event.iss)
        await asyncio.sleep(0.05)


async def _take_back(chain: Ganache, ends: asyncio.Event, draw: random.Random) -> int:
    """Take back up to as many blocks as are not final, again and again."""
    times = 0
    while not ends.is_set():
        snapshot = await asyncio.to_thread(chain.call, "evm_snapshot")
        await asyncio.sleep(BLOCK_SECONDS * draw.uniform(0.3, FINALITY - 0.2))
        times += bool(await asyncio.to_thread(chain.call, "evm_revert", snapshot))
        await asyncio.sleep(8)
    return times


async def _ids(chain: Ganache, contract: str) -> list[str | None]:
    async with ledger_on(chain.url, EvmSettings(contract=contract, finality=0)) as ledger:
        found = await ids(ledger)
        assert found is not None
        return found


def test_five_networks_of_each_kind_have_every_event_once(tmp_path: Path) -> None:
    """The demonstration."""
    seen = asyncio.run(demonstrate(tmp_path))
    assert seen.on.keys() == KINDS.keys()
    assert {name: sum(counts.values()) for name, counts in seen.on.items()} == dict.fromkeys(
        KINDS, 6 * EACH
    )
    assert not seen.doubled()
    assert seen.told.keys() == set(seen.published)


def test_five_networks_have_every_event_once_though_the_store_is_lost(tmp_path: Path) -> None:
    seen = asyncio.run(demonstrate(tmp_path, losses=True))
    assert len(seen.lost) == 2
    assert {name: len(counts) for name, counts in seen.on.items()} == dict.fromkeys(KINDS, 6 * EACH)
    assert not seen.doubled()


def test_a_thousand_events_are_once_in_order_on_three_networks(
    slow: Ganache, quick: Ganache, tmp_path: Path
) -> None:
    asyncio.run(_story(slow, quick, tmp_path))


async def _story(slow: Ganache, quick: Ganache, folder: Path) -> None:
    draw = random.Random(1)
    events = [_event(number, number % 3) for number in range(EVENTS)]
    contracts = {
        "slow": await _contract(slow, FINALITY, None),
        "quick": await _contract(quick, 0, 0),
    }
    public = PublicAdapter("public")
    chosen = {
        "slow": ("--evm", slow.ws, "--finality", str(FINALITY), "--stuck", "3"),
        "quick": ("--evm", quick.url, "--finality", "0", "--gas-price", "0"),
    }
    programs = {
        name: adapter_of(
            folder, name, "--contract", contracts[name], "--key-env", "EVM_KEY", *options
        )
        for name, options in chosen.items()
    }
    async with (
        asyncio.timeout(SECONDS),
        served(public.application(), "127.0.0.1", 0) as public_url,
        aiohttp.ClientSession() as http,
    ):
        urls = {**{name: each.url for name, each in programs.items()}, "public": public_url}
        legacy = {"public": public.chain_id}
        programs["distributor"] = distributor_over(
            folder, urls, legacy, call_timeout=6, replication_delay=0.5
        )
        url = programs["distributor"].url
        ends = asyncio.Event()
        reorganising = None
        try:
            for program in programs.values():
                await program.start()
            writing = asyncio.gather(
                _by_client(http, url, events[0::3]),
                _at_public(public, events[1::3]),
                _by_transaction(quick, contracts["quick"], events[2::3]),
            )
            reorganising = asyncio.create_task(_take_back(slow, ends, draw))
            for _ in range(KILLS):
                await asyncio.sleep(draw.uniform(2, 4))
                program = draw.choice(list(programs.values()))
                await program.kill()
                await asyncio.sleep(draw.uniform(0, 1))
                await program.start()
            await writing
            ends.set()
            taken_back = await reorganising
            logs: dict[str, list[str | None]] = {}
            while min(map(len, logs.values()), default=0) < EVENTS:
                await asyncio.sleep(2)
                try:
                    logs = {
                        name: await _ids(chain, contracts[name])
                        for name, chain in (("slow", slow), ("quick", quick))
                    }
                except ClientError:
                    continue
                logs["public"] = [notice.id for notice in public.network.log]
        finally:
            ends.set()
            for program in programs.values():
                await program.kill()
            counts = {
                "public": len(public.network.log),
                "kills": {name: each.kills for name, each in programs.items()},
            }
            (folder / "counts.json").write_text(json.dumps(counts))
    order: dict[str, list[str]] = defaultdict(list)
    for number, event in enumerate(events):
        order[event.order].append(f"e{number}")
    for name, log in logs.items():
        assert sorted(map(str, log)) == sorted(f"e{number}" for number in range(EVENTS)), name
        place = {event_id: at for at, event_id in enumerate(log)}
        for each in order.values():
            assert each == sorted(each, key=place.__getitem__), name
    assert taken_back > 0

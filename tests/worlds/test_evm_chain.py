"""The contract and a ledger on an EVM of another maker: ids, gas, bytecode; blocks taken back,
sockets cut.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest
from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as st
from support.distributor.evm import ACCOUNT, ids, ledger_on, opened, publishing
from support.distributor.ganache import Ganache, anvil, ganache
from support.plumbing.told import alone
from worlds import install

from interchain_events.distributor.adapter.evm.account import keccak256
from interchain_events.distributor.adapter.evm.contract import _selector, call_data, gas_of, refusal
from interchain_events.distributor.adapter.evm.ledger import EvmLedger, EvmSettings
from interchain_events.distributor.adapter.evm.node import EvmNode
from interchain_events.distributor.adapter.http import AdapterHttp
from interchain_events.distributor.adapter.ledger import Published
from interchain_events.distributor.core.messages import No, Yes
from interchain_events.distributor.once import MemoryStore
from interchain_events.distributor.service.access import AccessRights
from interchain_events.distributor.service.adapters import HttpAdapter, ProbeAnswer, Profile
from interchain_events.distributor.service.serve import served
from interchain_events.distributor.simulation.stories import event_of
from interchain_events.pallets.dome_events.global_id import NoGlobalIdError, global_id
from pubsub_emulator.client.errors import NodeRefused
from pubsub_emulator.client.rpc import connect

CUTS = 30
_PIECES = [
    "hl",
    "=",
    "&",
    "#",
    "?",
    "%68",
    "%6C",
    "%",
    "%2",
    "%2F",
    "%zz",
    "a",
    "0xAB",
    "/",
    "+",
    "~",
    "é",
    "hl=x",
]


@pytest.fixture(scope="module", params=[ganache, anvil])
def chain(request: pytest.FixtureRequest) -> Iterator[Ganache]:
    """A block for each transaction."""
    with request.param() as made:
        yield made


HOURLY = [(ganache, "--miner.blockTime"), (anvil, "--block-time")]


@pytest.fixture(scope="module", params=HOURLY, ids=lambda each: each[0].__name__)
def slow(request: pytest.FixtureRequest) -> Iterator[Ganache]:
    """A block is mined when a test says so, in practice."""
    make, option = request.param
    with make(option, "3600") as made:
        yield made


@pytest.fixture(scope="module")
def contract(chain: Ganache) -> str:
    async def make() -> str:
        async with ledger_on(chain.url, EvmSettings()) as ledger:
            return ledger.contract

    return asyncio.run(make())


def _asked(chain: Ganache, contract: str, location: str) -> bytes | str:
    """The contract's key of a location, or the name of its refusal."""

    async def ask() -> bytes | str:
        data = _selector("globalId(string)") + encode(("string",), (location,))
        async with connect(chain.url) as rpc:
            try:
                return await EvmNode(rpc).call(contract, data)
            except NodeRefused as error:
                return refusal(error.data)

    return asyncio.run(ask())


def test_the_package_holds_what_the_compiler_makes() -> None:
    assert install.compiled() == json.loads(install.CONTRACT.with_suffix(".json").read_text())


@given(st.lists(st.sampled_from((*_PIECES, " ")), max_size=10).map("".join))
def test_the_contract_and_the_package_find_the_same_id_id20(
    chain: Ganache, contract: str, rest: str
) -> None:
    location = f"https://a.example/{rest}"
    found = _asked(chain, contract, location)
    assert found == _key_of(location) or _key_of(location) == "not-a-url", location


def _key_of(location: str) -> bytes | str:
    try:
        return keccak256(global_id(location).encode())
    except NoGlobalIdError as error:
        return "not-a-url" if str(error) == "not-a-url" else "BadGlobalId"


@pytest.mark.parametrize("length", [256, 257])
def test_the_longest_id_is_taken_and_a_longer_one_refused(
    chain: Ganache, contract: str, length: int
) -> None:
    assert (_asked(chain, contract, f"https://a?hl={'x' * length}") == "TooLong") == (length == 257)


@alone
async def test_id20_ids_that_a_path_would_lose_are_probed_and_published_once(
    chain: Ganache, contract: str
) -> None:
    names = [".", "..", "...", "a/../b", "a/.", "a//b", "a+b", "a@b:c", "~"]

    async with (
        ledger_on(chain.url, EvmSettings(contract, finality=0)) as ledger,
        aiohttp.ClientSession() as http,
    ):
        app = AdapterHttp("a", ledger, MemoryStore(), AccessRights(everyone=True)).application()
        async with served(app, "127.0.0.1", 0) as url:
            adapter = HttpAdapter(url, Profile(), http)
            for name in names:
                event = event_of(1)[1]._replace(data_location=f"https://a.example/e?hl={name}")
                assert await adapter.probe(name, 0, "") == ProbeAnswer(there=False)
                for _ in range(3):
                    assert isinstance(await adapter.publish(event), Yes)
                assert await adapter.probe(name, 0, "") == ProbeAnswer(there=True)
            found = await ids(ledger)
            assert found is not None  # other tests' publications may come first
            assert found[-len(names) :] == names


@alone
async def test_the_largest_publication_fits_its_gas_and_a_second_is_refused(
    chain: Ganache, contract: str
) -> None:
    location = "https://a.example/".ljust(2048 - 270, "x") + "?hl=" + "%61" * 80
    event = event_of(1)[1]._replace(
        event_type="t" * 255,
        data_location=location,
        metadata=tuple("é" * 255 + str(n % 10) for n in range(32)),
    )

    async with (
        ledger_on(chain.url, EvmSettings(contract, finality=0)) as ledger,
        connect(chain.url) as rpc,
    ):
        assert isinstance(await ledger.publish(event), Published)
        page = await ledger.read(0, 100)
        assert page is not None
        assert page.notices[-1].event == event
        used = int(chain.call("eth_getBlockByNumber", "latest", False)["gasUsed"], 16)
        assert used < gas_of(call_data(event, ACCOUNT.address)) * 3 // 4
        with pytest.raises(NodeRefused) as refused:
            await EvmNode(rpc).call(contract, call_data(event, ACCOUNT.address))
        assert refusal(refused.value.data) == "AlreadyPublished"
        assert await ledger.publish(event_of(2)[1]._replace(event_type="t" * 2000)) == No("TooLong")


# Blocks are mined and taken back by the test


async def _made(chain: Ganache, settings: EvmSettings, store: MemoryStore) -> EvmLedger:
    """A ledger with a contract of its own; blocks are mined until there is one."""
    making = asyncio.create_task(opened(chain.url, settings, store))
    while not making.done():  # it mines
        chain.mine()
        await asyncio.sleep(0.3)
    return making.result()


@contextlib.asynccontextmanager
async def _played(chain: Ganache, *, finality: int, stuck: float = 30) -> AsyncIterator[EvmLedger]:
    """A ledger with a contract of its own, told of blocks by WebSocket."""
    store, settings = MemoryStore(), EvmSettings(finality=finality, stuck=stuck)
    await (await _made(chain, settings, store)).close()
    async with ledger_on(chain.ws, settings, store) as ledger:
        yield ledger


async def _waits(chain: Ganache, count: int = 1) -> None:
    """Until transactions wait for a block."""
    while sum(map(len, chain.call("txpool_content")["pending"].values())) < count:  # noqa: ASYNC110
        await asyncio.sleep(0.05)


async def _mined(chain: Ganache, ledger: EvmLedger, number: int) -> None:
    """Publish with a block."""
    done = publishing(ledger, number)
    await _waits(chain)
    chain.mine()
    assert isinstance(await done, Published)


def _wanted(count: int) -> list[str]:
    return [event_of(number)[0] for number in range(1, count + 1)]


@alone
async def test_a_block_reverted_before_finality_costs_a_repeated_transaction(
    slow: Ganache,
) -> None:
    async with _played(slow, finality=3, stuck=0.5) as ledger:
        snapshot = slow.call("evm_snapshot")
        done = publishing(ledger, 1)
        await _waits(slow)
        slow.mine(2)
        assert not done.done()
        assert slow.call("evm_revert", snapshot)
        await _waits(slow)
        slow.mine(4)
        assert isinstance(await done, Published)
        assert await ids(ledger) == _wanted(1)


@alone
async def test_a_reverted_final_block_loses_its_events_until_published_again(
    slow: Ganache,
) -> None:
    async with _played(slow, finality=0) as ledger:
        await _mined(slow, ledger, 1)
        snapshot = slow.call("evm_snapshot")
        await _mined(slow, ledger, 2)
        assert await ids(ledger) == _wanted(2)
        assert slow.call("evm_revert", snapshot)
        slow.mine()
        assert await ids(ledger) == _wanted(1)
        await _mined(slow, ledger, 2)
        assert await ids(ledger) == _wanted(2)


@alone
async def test_a_stuck_transaction_is_replaced_in_the_nodes_pool(slow: Ganache) -> None:
    async with _played(slow, finality=0, stuck=0.5) as ledger:
        done = publishing(ledger, 1)
        prices: set[str] = set()
        while len(prices) < 3:
            await asyncio.sleep(0.1)
            of_account = next(iter(slow.call("txpool_content")["pending"].values()), {})
            assert len(of_account) <= 1
            prices |= {each["maxFeePerGas"] for each in of_account.values()}
        slow.mine()
        assert isinstance(await done, Published)


@alone
async def test_an_adapter_that_died_before_the_block_goes_on_and_publishes_once(
    slow: Ganache,
) -> None:
    async with asyncio.timeout(60):
        store, settings = MemoryStore(), EvmSettings(finality=0, stuck=1)
        first = await _made(slow, settings, store)
        lost = publishing(first, 1)
        await _waits(slow)
        await first.close()
        lost.cancel()
        async with ledger_on(slow.url, settings, store) as second:
            again, other = publishing(second, 1), publishing(second, 2)
            await _waits(slow, 2)
            slow.mine()
            assert all(isinstance(each, Published) for each in await asyncio.gather(again, other))
            assert sorted(map(str, await ids(second) or ())) == sorted(_wanted(2))


# A chain by WebSocket that is killed, and a socket that is cut, in the middle of an answer


async def _publish(ledger: EvmLedger, number: int) -> None:
    """Publish as a distributor does: until it is a yes."""
    while not isinstance(await ledger.publish(event_of(number)[1]), Published):  # noqa: ASYNC110  # it asks again
        await asyncio.sleep(0.1)


@alone
async def test_a_chain_that_is_killed_and_started_again_is_gone_on_with(tmp_path: Path) -> None:
    kept = contextlib.ExitStack()
    first = kept.enter_context(ganache("--database.dbPath", str(tmp_path)))
    async with ledger_on(first.ws, EvmSettings(finality=0, stuck=1)) as ledger:
        await _publish(ledger, 1)
        under_way = [asyncio.create_task(ids(ledger)) for _ in range(20)]
        publication = asyncio.create_task(_publish(ledger, 2))
        await asyncio.sleep(0.01)
        await asyncio.to_thread(kept.close)
        assert await ids(ledger) is None
        with ganache("--database.dbPath", str(tmp_path), port=first.port):
            await asyncio.gather(publication, *under_way)
            await _publish(ledger, 3)
            assert await ids(ledger) == _wanted(3)


class _Cutting:
    """A relay before a server, which cuts a connection after `left` bytes of answers."""

    def __init__(self, port: int) -> None:
        self._to = port
        self.left: int | None = None
        self.cuts = 0
        self.open = 0

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        asking = asyncio.create_task(self._ask(reader, back))
        self.open += 1
        try:
            while data := await there.read(4096):
                if self.left is not None:
                    data, self.left = data[: self.left], self.left - len(data)
                writer.write(data)
                if self.left is not None and self.left <= 0:
                    self.left = None
                    self.cuts += 1
                    break
        finally:
            asking.cancel()
            for each in (writer, back):
                each.close()
                with contextlib.suppress(ConnectionError):
                    await each.wait_closed()
            self.open -= 1

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(4096):
            writer.write(data)
        writer.close()


@alone
async def test_a_socket_that_is_cut_in_an_answer_loses_and_doubles_nothing(chain: Ganache) -> None:
    relay = _Cutting(chain.port)
    async with await asyncio.start_server(relay.connected, "127.0.0.1", 0) as server:
        url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with ledger_on(url, EvmSettings(finality=0, stuck=1)) as ledger:
            for number in range(1, CUTS + 1):
                relay.left = 37 * number
                await _publish(ledger, number)
                assert await ids(ledger) in (None, _wanted(number))
            relay.left = None
            assert await ids(ledger) == _wanted(CUTS)
            assert relay.cuts > CUTS // 2
        while relay.open:  # noqa: ASYNC110  # nothing tells of it
            await asyncio.sleep(0.01)

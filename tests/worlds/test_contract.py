"""The contract in the package on an EVM of another maker: its id rule, its uniqueness, its gas, its bytecode."""

import asyncio
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as st
from support.ganache import KEYS, Ganache, ganache

from pubsub_emulator.client.errors import NodeRefused
from pubsub_emulator.client.rpc import connect
from pubsub_emulator.distributor.adapter.evm.account import Account, keccak256
from pubsub_emulator.distributor.adapter.evm.contract import _selector, call_data, gas_of, refusal
from pubsub_emulator.distributor.adapter.evm.ledger import EvmSettings, open_ledger
from pubsub_emulator.distributor.adapter.evm.node import EvmNode
from pubsub_emulator.distributor.adapter.http import AdapterHttp
from pubsub_emulator.distributor.adapter.ledger import Published
from pubsub_emulator.distributor.core.messages import No, Yes
from pubsub_emulator.distributor.once import MemoryStore
from pubsub_emulator.distributor.service.access import Access
from pubsub_emulator.distributor.service.adapters import HttpAdapter, Place, Profile
from pubsub_emulator.distributor.service.serve import served
from pubsub_emulator.distributor.simulation.stories import event_of
from pubsub_emulator.runtime.pallet_dome_events.global_id import NoGlobalIdError, global_id

HERE = Path(__file__).parent
_PIECES = (
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
    " ",
    "~",
    "é",
    "hl=x",
)


@pytest.fixture(scope="module")
def chain() -> Iterator[Ganache]:
    with ganache() as made:
        yield made


@pytest.fixture(scope="module")
def contract(chain: Ganache) -> str:
    async def make() -> str:
        async with connect(chain.url) as rpc:
            ledger = await open_ledger("a", EvmNode(rpc), Account(bytes.fromhex(KEYS[0])), EvmSettings(), MemoryStore())
            await ledger.close()
            return ledger.contract

    return asyncio.run(make())


def _asked(chain: Ganache, contract: str, location: str) -> bytes | str:
    """The contract's key of a location, or the name of its refusal."""

    async def ask() -> bytes | str:
        async with connect(chain.url) as rpc:
            try:
                return await EvmNode(rpc).call(
                    contract, _selector("globalId(string)") + encode(("string",), (location,))
                )
            except NodeRefused as error:
                return refusal(error.data)

    return asyncio.run(ask())


def test_the_package_holds_what_the_compiler_makes() -> None:
    spec = importlib.util.spec_from_file_location("worlds_install", HERE / "install.py")
    assert spec is not None
    assert spec.loader is not None
    install = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(install)
    assert install.compiled() == json.loads(install.CONTRACT.with_suffix(".json").read_text())


@given(st.lists(st.sampled_from(_PIECES), max_size=10).map("".join))
def test_the_contract_and_the_package_find_the_same_id_id20(chain: Ganache, contract: str, rest: str) -> None:
    location = f"https://a.example/{rest}"
    found = _asked(chain, contract, location)
    assert found == _wanted(location) or _wanted(location) == "not-a-url", location


def _wanted(location: str) -> bytes | str:
    try:
        return keccak256(global_id(location).encode())
    except NoGlobalIdError as error:
        return "not-a-url" if str(error) == "not-a-url" else "BadGlobalId"


@pytest.mark.parametrize("length", [256, 257])
def test_the_longest_id_is_taken_and_a_longer_one_refused(chain: Ganache, contract: str, length: int) -> None:
    assert (_asked(chain, contract, f"https://a?hl={'x' * length}") == "TooLong") == (length == 257)


def test_id20_ids_that_a_path_would_lose_are_probed_as_they_are_and_published_once(
    chain: Ganache, contract: str
) -> None:
    names = [".", "..", "...", "a/../b", "a/.", "a//b", "a+b", "a@b:c", "~"]

    async def run() -> None:
        async with connect(chain.url) as rpc, aiohttp.ClientSession() as session:
            settings, account = EvmSettings(contract, finality=0), Account(bytes.fromhex(KEYS[0]))
            ledger = await open_ledger("a", EvmNode(rpc), account, settings, MemoryStore())
            app = AdapterHttp("a", ledger, MemoryStore(), Access(everyone=True)).application()
            async with served(app, "127.0.0.1", 0) as url:
                adapter = HttpAdapter(url, Profile(), session)
                for name in names:
                    event = event_of(1)[1]._replace(data_location=f"https://a.example/e?hl={name}")
                    assert await adapter.probe(name, 0, "") == Place(there=False)
                    for _ in range(3):
                        assert isinstance(await adapter.publish(event), Yes)
                    assert await adapter.probe(name, 0, "") == Place(there=True)
                page = await ledger.read(0, 100)
                assert page is not None  # other tests' publications may come first
                assert [notice.id for notice in page.notices][-len(names) :] == names

    asyncio.run(run())


def test_the_largest_publication_fits_its_gas_and_a_second_one_is_refused_by_the_contract(
    chain: Ganache, contract: str
) -> None:
    location = "https://a.example/".ljust(2048 - 270, "x") + "?hl=" + "%61" * 80
    event = event_of(1)[1]._replace(
        event_type="t" * 255, data_location=location, metadata=tuple("é" * 255 + str(n % 10) for n in range(32))
    )

    async def run() -> None:
        async with connect(chain.url) as rpc:
            node, account = EvmNode(rpc), Account(bytes.fromhex(KEYS[0]))
            ledger = await open_ledger("a", node, account, EvmSettings(contract, finality=0), MemoryStore())
            assert isinstance(await ledger.publish(event), Published)
            page = await ledger.read(0, 10)
            assert page is not None
            assert page.notices[-1].event == event
            used = max(int(each["gasUsed"], 16) for each in [chain.call("eth_getBlockByNumber", "latest", False)])
            assert used < gas_of(call_data(event, account.address)) * 3 // 4
            with pytest.raises(NodeRefused) as refused:
                await node.call(contract, call_data(event, account.address))
            assert refusal(refused.value.data) == "AlreadyPublished"
            long = event_of(2)[1]._replace(event_type="t" * 2000)
            assert await ledger.publish(long) == No("TooLong")
            await ledger.close()

    asyncio.run(run())

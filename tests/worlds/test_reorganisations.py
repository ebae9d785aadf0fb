"""A ledger on a chain of another maker, whose blocks are mined and taken back by the test."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest
from support.ganache import KEYS, Ganache, ganache

from pubsub_emulator.client.rpc import connect
from pubsub_emulator.distributor.adapter.evm.account import Account
from pubsub_emulator.distributor.adapter.evm.ledger import EvmLedger, EvmSettings, open_ledger
from pubsub_emulator.distributor.adapter.evm.node import EvmNode
from pubsub_emulator.distributor.adapter.ledger import Published
from pubsub_emulator.distributor.core.messages import No, Unknown
from pubsub_emulator.distributor.once import MemoryStore
from pubsub_emulator.distributor.simulation.stories import event_of

ACCOUNT = Account(bytes.fromhex(KEYS[0]))


@pytest.fixture(scope="module")
def chain() -> Iterator[Ganache]:
    """A block is mined when a test says so, in practice."""
    with ganache("--miner.blockTime", "3600") as made:
        yield made


@contextlib.asynccontextmanager
async def ledger_of(url: str, settings: EvmSettings, store: MemoryStore) -> AsyncIterator[EvmLedger]:
    found = await open_ledger("a", EvmNode(await connect(url).__aenter__()), ACCOUNT, settings, store)
    try:
        yield found
    finally:
        await found.close()


async def made(chain: Ganache, settings: EvmSettings, store: MemoryStore) -> EvmLedger:
    """A ledger with a contract of its own; blocks are mined until there is one."""
    node = EvmNode(await connect(chain.url).__aenter__())
    making = asyncio.create_task(open_ledger("a", node, ACCOUNT, settings, store))
    while not making.done():  # it mines
        chain.mine()
        await asyncio.sleep(0.3)
    return making.result()


def play(chain: Ganache, what: Callable[[EvmLedger], Awaitable[None]], *, finality: int, stuck: float = 30) -> None:
    """Make a contract and play over its ledger, told of blocks by WebSocket."""

    async def run() -> None:
        async with asyncio.timeout(60):
            store = MemoryStore()
            settings = EvmSettings(finality=finality, stuck=stuck)
            await (await made(chain, settings, store)).close()
            async with ledger_of(chain.ws, settings, store) as ledger:
                await what(ledger)

    asyncio.run(run())


async def _waits(chain: Ganache, count: int) -> None:
    """Until transactions wait for a block."""
    while sum(map(len, chain.call("txpool_content")["pending"].values())) < count:  # noqa: ASYNC110
        await asyncio.sleep(0.05)


async def _ids(ledger: EvmLedger) -> list[str | None]:
    page = await ledger.read(0, 100)
    assert page is not None
    return [notice.id for notice in page.notices]


def publishing(ledger: EvmLedger, number: int) -> asyncio.Task[Published | No | Unknown]:
    return asyncio.create_task(ledger.publish(event_of(number)[1]))


def test_a_block_that_is_taken_back_before_it_is_final_costs_a_transaction_sent_again(chain: Ganache) -> None:
    async def what(ledger: EvmLedger) -> None:
        snapshot = chain.call("evm_snapshot")
        done = publishing(ledger, 1)
        await _waits(chain, 1)
        chain.mine(2)
        assert not done.done()
        assert chain.call("evm_revert", snapshot)
        await _waits(chain, 1)
        chain.mine(4)
        assert isinstance(await done, Published)
        assert await _ids(ledger) == [event_of(1)[0]]

    play(chain, what, finality=3, stuck=0.5)


def test_a_final_block_that_is_taken_back_takes_its_events_from_the_log_and_they_can_be_published_again(
    chain: Ganache,
) -> None:
    async def what(ledger: EvmLedger) -> None:
        first = publishing(ledger, 1)
        await _waits(chain, 1)
        chain.mine()
        await first
        snapshot = chain.call("evm_snapshot")
        second = publishing(ledger, 2)
        await _waits(chain, 1)
        chain.mine()
        await second
        assert await _ids(ledger) == [event_of(1)[0], event_of(2)[0]]
        assert chain.call("evm_revert", snapshot)
        chain.mine()
        assert await _ids(ledger) == [event_of(1)[0]]
        again = publishing(ledger, 2)
        await _waits(chain, 1)
        chain.mine()
        assert isinstance(await again, Published)
        assert await _ids(ledger) == [event_of(1)[0], event_of(2)[0]]

    play(chain, what, finality=0)


def test_a_stuck_transaction_is_replaced_in_the_nodes_pool(chain: Ganache) -> None:
    async def what(ledger: EvmLedger) -> None:
        done = publishing(ledger, 1)
        prices: set[str] = set()
        while len(prices) < 3:
            await asyncio.sleep(0.1)
            of_account = next(iter(chain.call("txpool_content")["pending"].values()), {})
            assert len(of_account) <= 1
            prices |= {each["maxFeePerGas"] for each in of_account.values()}
        chain.mine()
        assert isinstance(await done, Published)

    play(chain, what, finality=0, stuck=0.5)


def test_an_adapter_that_died_before_the_block_goes_on_and_publishes_once(chain: Ganache) -> None:
    async def run() -> None:
        async with asyncio.timeout(60):
            store, settings = MemoryStore(), EvmSettings(finality=0, stuck=1)
            first = await made(chain, settings, store)
            lost = publishing(first, 1)
            await _waits(chain, 1)
            await first.close()
            lost.cancel()
            async with ledger_of(chain.url, settings, store) as second:
                again, other = publishing(second, 1), publishing(second, 2)
                await _waits(chain, 2)
                chain.mine()
                assert all(isinstance(each, Published) for each in await asyncio.gather(again, other))
                assert sorted(map(str, await _ids(second))) == sorted([event_of(1)[0], event_of(2)[0]])

    asyncio.run(run())

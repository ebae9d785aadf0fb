"""The log by JSON-RPC from the project's own node (EV-3, EV-4)."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from support.node import Running, serving, story

from pubsub_emulator.client.errors import NodeUnavailable, UnknownBlock
from pubsub_emulator.events.errors import AnotherChain
from pubsub_emulator.events.log.memory import MemoryStore
from pubsub_emulator.events.log.sources.network import NetworkLog
from pubsub_emulator.events.log.sources.rpc import RpcSource
from pubsub_emulator.events.log.store import Store
from pubsub_emulator.prism.service.chain import NodeChain
from pubsub_emulator.prism.tables.processor import Source


def source(node: Running, *, http: bool = False) -> RpcSource:
    paras = {int(chain): url for chain, url in node.urls.items() if chain is not None}
    if http:
        return RpcSource(node.http_url(None), {para: node.http_url(para) for para in paras}, poll_seconds=0.05)
    return RpcSource(node.urls[None], paras, poll_seconds=2)


def same(one: Store, other: Store) -> bool:
    return one.read(0, 10**6).rows == other.read(0, 10**6).rows and one.head().hash == other.head().hash


@pytest.mark.parametrize("http", [False, True])
@story
async def test_ev_4_the_log_by_rpc_equals_the_observers(http: bool) -> None:
    observed, fetched = MemoryStore("net"), MemoryStore("net")
    async with serving() as node:
        log = NetworkLog(node.server.live.network, observed)
        first = node.server.live.network.number + 1
        await node.step(25)
        log.flush()
        async with source(node, http=http) as rpc:
            assert await rpc.catch_up(fetched, first) == 25
            assert await rpc.catch_up(fetched, first) == 0
    assert len(observed.read(0, 10**6).rows) > 50
    assert {row.chain for row in fetched.read(0, 10**6).rows} == {None, 2000}
    assert same(observed, fetched)


@story
async def test_ev_4_following_fetches_what_comes_and_what_was_missed() -> None:
    fetched = MemoryStore("net")
    async with serving() as node:
        first = node.server.live.network.number + 1
        async with source(node) as rpc:
            following = asyncio.create_task(rpc.follow(fetched, first, until=first + 5))
            await _grown(fetched, lambda: node.step(2))
            await node.step(4)
            await following
        assert fetched.head().anchor == first + 5
        await node.step(7)  # nobody follows now
        async with source(node) as rpc:
            assert await rpc.catch_up(fetched) == node.server.live.network.number - (first + 5)


@story
async def test_ev_3_blocks_that_a_node_took_back_are_taken_back_in_the_log() -> None:
    observed, fetched = MemoryStore("net"), MemoryStore("net")
    async with serving() as node:
        network = node.server.live.network
        log = NetworkLog(network, observed)
        first = network.number + 1
        await node.step(6)
        log.flush()
        async with source(node) as rpc:
            await rpc.catch_up(fetched, first)
            client = await node.connect()
            await client.call("dev_setHead", first + 2)
            assert await rpc.catch_up(fetched) == 0
            assert (fetched.head().anchor, fetched.head().epoch) == (first + 2, 1)
            log = NetworkLog(network, observed)  # a rewind dismisses observers
            await client.call("pubsub_publish", 1000, "0x" + "11" * 32, "0x22", 5)
            await node.step(3)
            log.flush()
            await rpc.catch_up(fetched)
        assert same(observed, fetched)
        assert observed.head().epoch == fetched.head().epoch == 1


@story
async def test_ev_3_a_node_that_is_behind_the_log_takes_nothing_back() -> None:
    fetched = MemoryStore("net")
    async with serving() as ahead, serving(dev=False) as behind:
        first = ahead.server.live.network.number + 1
        await ahead.step(6)
        await behind.step(3)
        async with source(ahead) as rpc:
            await rpc.catch_up(fetched, first)
        async with source(behind) as rpc:
            with pytest.raises(
                UnknownBlock, match=f"newest final block is {first + 2}, and the log ends at {first + 5}"
            ):
                await rpc.catch_up(fetched)
            assert (fetched.head().anchor, fetched.head().epoch) == (first + 5, 0)
            following = asyncio.create_task(rpc.follow(fetched, until=first + 7))
            await behind.step(5)
            await following
    assert (fetched.head().anchor, fetched.head().epoch) == (first + 7, 0)


@story
async def test_a_chain_that_is_not_the_logs_is_refused() -> None:
    fetched = MemoryStore("net")
    fetched.bind(b"x" * 32)
    async with serving() as node, source(node) as rpc:
        with pytest.raises(AnotherChain, match="genesis"):
            await rpc.follow(fetched)
        async with NodeChain(node.urls[None], Source(), bytes(32)) as chain:
            with pytest.raises(AnotherChain, match="genesis"):
                await chain.catch_up(fetched)
    assert fetched.head().anchor is None


@story
async def test_a_node_that_is_away_is_said_so_and_asked_again() -> None:
    async with RpcSource("ws://127.0.0.1:9", {}) as rpc:
        with pytest.raises(NodeUnavailable, match=r"nobody listens at ws://127.0.0.1:9"):
            await rpc.catch_up(MemoryStore("net"))
        following = asyncio.create_task(rpc.follow(MemoryStore("net")))
        await asyncio.sleep(0.2)
        assert not following.done()
        following.cancel()


async def _grown(store: MemoryStore, step: Callable[[], Awaitable[None]]) -> None:
    """Step until the follower has noticed."""
    while store.head().anchor is None:
        await step()
        await asyncio.sleep(0.05)

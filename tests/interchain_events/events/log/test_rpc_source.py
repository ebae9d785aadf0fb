"""The log by JSON-RPC from the project's own node, and which blocks a real relay chain included
(EV-1, EV-3, EV-4).
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from support.node.nodes import Running, serving, story

from interchain_events.events.errors import AnotherChain, SourceError
from interchain_events.events.log.memory import MemoryStore
from interchain_events.events.log.sources.network import NetworkLog
from interchain_events.events.log.sources.rpc import RpcSource
from interchain_events.events.log.store import Store
from interchain_events.events.rows import Block, event_id
from interchain_events.prism.service.chain import NodeChain
from interchain_events.prism.tables.processor import Source
from pubsub_emulator.client.errors import NodeUnavailable, UnknownBlock
from pubsub_emulator.client.node import BlockHeader, DecodedEvent
from pubsub_emulator.primitives.hashing import blake2_256


def source(node: Running, *, http: bool = False) -> RpcSource:
    paras = {int(chain): url for chain, url in node.urls.items() if chain is not None}
    if http:
        return RpcSource(
            node.http_url(None), {para: node.http_url(para) for para in paras}, poll_seconds=0.05
        )
    return RpcSource(node.urls[None], paras, poll_seconds=2)


def same(one: Store, other: Store) -> bool:
    return (
        one.read(0, 10**6).rows == other.read(0, 10**6).rows
        and one.head().hash == other.head().hash
    )


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
async def test_an_end_before_the_first_block_is_refused_instead_of_waited_for() -> None:
    """An empty log begins at the newest block, which can be after the wanted end."""
    fetched = MemoryStore("net")
    async with serving() as node:
        await node.step(4)
        newest = node.server.live.network.number
        async with source(node) as rpc:
            async with asyncio.timeout(60):
                with pytest.raises(SourceError, match=rf"begin at block {newest}, .*asked for, 1;"):
                    await rpc.follow(fetched, until=1)
                with pytest.raises(SourceError, match=r"begin at block 3, .*asked for, 2;"):
                    await rpc.follow(fetched, 3, until=2)
                await rpc.follow(fetched, 1, until=1)
    assert fetched.head().anchor == 1


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
                UnknownBlock,
                match=f"newest final block is {first + 2}, and the log ends at {first + 5}",
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


HEADS = {name: f"head {name}".encode() for name in "abc"}
RELAY = b"\1" * 32


def hash_of(name: str) -> bytes:
    return bytes(blake2_256(HEADS[name]))


def included(para: int, head: bytes) -> DecodedEvent:
    """The event with its fields by place, as metadata without names has them."""
    receipt = {"descriptor": {"para_id": para, "relay_parent": "0x00"}, "commitments_hash": "0x00"}
    return DecodedEvent(
        "ParaInclusion", "CandidateIncluded", {"0": receipt, "1": head, "2": 5, "3": 0}
    )


class FakeNode:
    """One chain: headers and events by block hash."""

    def __init__(
        self, blocks: dict[bytes, tuple[int, list[DecodedEvent]]], time: int | None
    ) -> None:
        self._blocks = blocks
        self._time = time

    async def block_hash(self, number: int) -> bytes | None:
        return next(
            (found for found, (height, _) in self._blocks.items() if height == number), None
        )

    async def header(self, block: bytes) -> BlockHeader:
        if block not in self._blocks:
            raise UnknownBlock("no such block")
        return BlockHeader(block, self._blocks[block][0], bytes(32), ())

    async def events(self, block: bytes, _parent: bytes) -> list[DecodedEvent]:
        return self._blocks[block][1]

    async def timestamp(self, _block: bytes) -> int | None:
        return self._time


def read(events: list[DecodedEvent]) -> Block:
    source = RpcSource("ws://relay", {2000: "ws://one", 2001: "ws://two"})
    nodes: Any = source
    nodes.node = FakeNode({RELAY: (7, events)}, 42_000)
    first = {hash_of("a"): (70, [DecodedEvent("A", "One", {"n": 1})]), hash_of("b"): (71, [])}
    nodes._paras = {
        2000: FakeNode(first, None),
        2001: FakeNode(
            {hash_of("c"): (90, [DecodedEvent("C", "Two", {}), DecodedEvent("C", "Three", {})])},
            41_000,
        ),
    }
    return asyncio.run(source.block(7))


def test_ev_1_blocks_come_in_the_order_of_inclusion() -> None:
    events = [
        included(2001, HEADS["c"]),
        included(1999, b"of a chain that nobody follows"),
        DecodedEvent(
            "Paras", "NewHeadNoted", {"0": 2000}
        ),  # says nothing where candidates are told
        included(2000, HEADS["a"]),
        included(2000, HEADS["b"]),
    ]
    block = read(events)
    found = [
        (entry.chain, entry.block, entry[4], entry.kind, entry.time)
        for entry in block.entries[len(events) :]
    ]
    assert found == [
        (2001, 90, 0, "C.Two", 41_000),
        (2001, 90, 1, "C.Three", 41_000),
        (2000, 70, 0, "A.One", 42_000),  # without a clock of its own it has the anchor's time
    ]
    assert block.entries[len(events) + 2].id == event_id(hash_of("a"), 0)
    assert [entry.chain for entry in block.entries[: len(events)]] == [None] * len(events)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(
            {"0": {}, "1": b""},
            id="no descriptor",
        ),
        pytest.param(
            {"0": {"descriptor": {"para_id": "x"}}, "1": b""},
            id="para id is text",
        ),
        pytest.param(
            {"0": 1, "1": 2},
            id="descriptor is a number",
        ),
        pytest.param(
            {"0": 1},
            id="no head",
        ),
        pytest.param(
            {},
            id="no fields",
        ),
    ],
)
def test_ev_4_a_candidate_that_says_nothing_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(SourceError, match="without para id or head data"):
        read([DecodedEvent("ParaInclusion", "CandidateIncluded", fields)])


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(
            {},
            id="no fields",
        ),
        pytest.param(
            {"0": "2000"},
            id="para id is text",
        ),
        pytest.param(
            {"0": None, "1": 2000},
            id="no para id",
        ),
    ],
)
def test_ev_4_a_new_head_of_no_parachain_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(SourceError, match="without para id"):
        read([DecodedEvent("Paras", "NewHeadNoted", fields)])


def test_ev_4_a_block_missing_at_the_parachains_node_is_not_skipped() -> None:
    with pytest.raises(UnknownBlock):
        read([included(2000, b"unknown")])

"""ID-50: an adapter over the JSON-RPC of a node whose relay chain has pallet `DomeEvents`, signed
and decoded.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from support.plumbing.served import Served
from support.plumbing.told import alone

from interchain_events.distributor.adapter.ledger import Published
from interchain_events.distributor.adapter.rpc import RpcLedger, _including_block
from interchain_events.distributor.core.messages import No, Unknown
from interchain_events.distributor.simulation.stories import event_of
from pubsub_emulator.client.extrinsics import development_seed
from pubsub_emulator.client.rpc import connect
from pubsub_emulator.primitives import ed25519
from pubsub_emulator.runtime.accounts.endowed import ED25519


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A node in a process of its own."""
    made = Served("--dome-events", "alastria", "--dev")
    yield made.url.replace("http", "ws")
    made.end()


def test_the_development_account_is_the_endowed_one() -> None:
    assert ed25519.public_key(development_seed("Alice")) == ED25519[0]


@alone
async def test_events_are_published_once_and_read_back(url: str) -> None:
    async with connect(url) as rpc:
        ledger = RpcLedger("alastria", rpc, development_seed("Alice"))
        first, second = event_of(1)[1], event_of(2)[1]
        done = await ledger.publish(first)
        assert isinstance(done, Published)
        assert done.new
        both = await asyncio.gather(ledger.publish(second), ledger.publish(second))
        assert sorted(each.new for each in both if isinstance(each, Published)) == [False, True]
        assert await ledger.publish(first) == Published(done.time, new=False)
        page = await ledger.read(0, 10)
        assert page is not None
        assert page.complete
        assert [(notice.number, notice.event) for notice in page.notices] == [
            (1, first),
            (2, second),
        ]
        assert page.notices[0].time == done.time
        blocks = {await rpc.call("chain_getBlockHash", number) for number in range(1, 20)}
        assert {notice.block for notice in page.notices} <= blocks - {None}
        refused = await ledger.publish(event_of(3)[1]._replace(event_type="x" * 2000))
        assert refused == No("DomeEvents::TooLong")
        other = RpcLedger("hashnet", rpc, development_seed("Alice"))
        assert await other.publish(event_of(4)[1]) == No("DomeEvents::WrongNetwork")
        poor = RpcLedger("alastria", rpc, bytes(32))
        assert isinstance(await poor.publish(event_of(5)[1]), Unknown)


@alone
@pytest.mark.parametrize(
    ("last", "block"),
    [
        ({"inBlock": "0x07"}, b"\x07"),
        ({"usurped": "0x08"}, None),
        ("dropped", None),
    ],
)
async def test_updates_are_skipped_until_the_extrinsic_is_in_a_block_or_lost(
    last: object, block: bytes | None
) -> None:
    async def updates() -> AsyncIterator[object]:
        for each in ("ready", {"broadcast": ["a peer"]}, last, {"finalized": "0x09"}):
            yield each

    assert await _including_block(updates()) == block


@alone
async def test_a_node_that_is_away_is_a_doubt() -> None:
    async with connect("ws://127.0.0.1:1") as rpc:
        ledger = RpcLedger("alastria", rpc, development_seed("Alice"))
        assert isinstance(await ledger.publish(event_of(1)[1]), Unknown)
        assert await ledger.read(0, 10) is None

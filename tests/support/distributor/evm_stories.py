"""Stories of publishers, an adapter's ledger and a chain that this project did not make.

A hundred stories share one contract.

    PYTHONPATH=tests python -m support.plumbing.story_campaign evm --count 10000 --kept evm.jsonl

A story is an entity with one to four events. Its publisher acts like a distributor: until all
events are in the log, it publishes the first one that the log lacks, perhaps twice at once, and
does not always wait for the answer. Strangers publish some events without the adapter. Meanwhile
blocks are taken back, and the adapter is killed. At the end, the chain has each event once, the
ledger shows the same log as a new one, and an entity's events are in order unless final blocks were
taken back.
"""

import asyncio
import contextlib
import random
from collections.abc import Iterator, Sequence
from typing import Any

from support.distributor.evm import STRANGER, opened
from support.distributor.ganache import Ganache, ganache

from interchain_events.distributor.adapter.evm.account import usual_fees
from interchain_events.distributor.adapter.evm.contract import call_data, gas_of
from interchain_events.distributor.adapter.evm.ledger import EvmLedger, EvmSettings
from interchain_events.distributor.adapter.evm.node import EvmNode
from interchain_events.distributor.event import Event
from interchain_events.distributor.once import MemoryStore
from interchain_events.pallets.dome_events.global_id import global_id
from pubsub_emulator.client.errors import ClientError, NodeRefused
from pubsub_emulator.client.rpc import connect

TOGETHER = 100
REORGANISATIONS = 5
KILLS = 3
SECONDS = 600


@contextlib.contextmanager
def evm_player() -> Iterator[Any]:
    """Return a player that runs a hundred stories when it is asked for the first of them."""

    def play(seed: int) -> None:
        if seed % TOGETHER == 0:
            with ganache("--miner.blockTime", "3600") as chain:
                asyncio.run(_Life(chain, seed).live())

    yield play


def events_of(seed: int) -> list[Event]:
    """Return the events of a story, in order."""
    entity = f"0x{seed:064x}"
    return [
        Event(
            "Offer",
            f"https://a.example/{seed}?hl=s{seed}-{at}",
            ("sbx",),
            entity,
            f"0x{at:064x}",
            entity,
        )
        for at in range(random.Random(seed).randrange(1, 5))
    ]


class _Life:
    def __init__(self, chain: Ganache, seed: int) -> None:
        self.chain = chain
        self.draw = random.Random(seed)
        self.stories = [events_of(each) for each in range(seed, seed + TOGETHER)]
        self.is_deep = seed // TOGETHER % 2 == 1
        """Whether blocks are taken back that are final."""
        self.settings = EvmSettings(
            finality=0 if self.is_deep else self.draw.randrange(1, 4), stuck=1
        )
        self.store = MemoryStore()
        self.ledger: EvmLedger | None = None
        self.log: list[str | None] = []
        self.looked = asyncio.Condition()
        """Notified when the log was read."""
        self.is_over = False
        """Whether nothing is killed or taken back any more."""
        self.highest: int | None = None
        """The block that may be mined at most while a shorter chain is kept."""

    async def live(self) -> None:
        """Play all stories of this life, from deploying the contract to the last comparison."""
        async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as group:
            always = [group.create_task(each) for each in (self._mine(), self._follow())]
            await self._open()
            publishers = [group.create_task(self._publish(each)) for each in self.stories]
            trouble = [self._take_back(), self._kill(), self._strangers(self.stories[::10])]
            await asyncio.gather(*(group.create_task(each) for each in trouble))
            await self._look()  # until the log is told without what was taken back
            self.is_over = True
            await asyncio.gather(*publishers)
            await self._look()  # what was sent twice would be there now
            for each in always:
                each.cancel()
        assert self.ledger is not None
        await self.ledger.read(0, 1)
        lived = await _ids(self.ledger)
        await self.ledger.close()
        self.store = MemoryStore()
        self.settings = EvmSettings(self.ledger.contract, finality=self.settings.finality)
        await self._open()
        assert lived == await _ids(self.ledger), "the log that was read anew is another one"
        await self.ledger.close()
        wanted = [global_id(each.data_location) for story in self.stories for each in story]
        odd = {each: lived.count(each) for each in {*wanted, *lived} if lived.count(each) != 1}
        assert not odd, f"missing, or there twice: {odd}"
        for story in self.stories if not self.is_deep else ():
            places = [lived.index(global_id(each.data_location)) for each in story]
            assert places == sorted(places), f"{story[0].entity}: out of order"

    async def _open(self) -> None:
        url = self.chain.url if self.draw.random() < 0.5 else self.chain.ws
        self.ledger = await opened(url, self.settings, self.store)

    async def _publish(self, story: Sequence[Event]) -> None:
        draw = random.Random(story[0].entity)
        left = list(story)
        while left or not self.is_over:
            if left and self.ledger is not None:
                done = [
                    asyncio.create_task(self.ledger.publish(left[0]))
                    for _ in range(draw.choice((1, 1, 2)))
                ]
                await asyncio.wait(done, timeout=draw.choice((0.05, 1, 5)))
                for each in done:
                    each.cancel()
                await asyncio.gather(*done, return_exceptions=True)
            await asyncio.sleep(draw.uniform(0.2, 0.5))
            left = [each for each in story if global_id(each.data_location) not in self.log]

    async def _follow(self) -> None:
        """Follow the log that the adapter shows."""
        while True:
            if self.ledger is not None:
                self.log = await _ids(self.ledger)
                async with self.looked:
                    self.looked.notify_all()
            await asyncio.sleep(0.15)

    async def _look(self) -> None:
        """Wait two seconds, and then until the log has been read from its beginning to its end."""
        await asyncio.sleep(2)
        async with self.looked:
            await self.looked.wait()
            await self.looked.wait()

    async def _strangers(self, stories: Sequence[Sequence[Event]]) -> None:
        async with connect(self.chain.url) as rpc:
            node = EvmNode(rpc)
            contract = self.ledger.contract if self.ledger is not None else ""
            for story in stories:
                data = call_data(story[0], STRANGER.address)
                with contextlib.suppress(NodeRefused):
                    nonce = await node.nonce(STRANGER.address, "pending")
                    fees = await usual_fees(node, None)
                    await node.send(
                        STRANGER.signed(1337, nonce, gas_of(data), fees, (contract, data))
                    )
                await asyncio.sleep(self.draw.uniform(0, 0.3))

    async def _mine(self) -> None:
        while True:
            height = int(await asyncio.to_thread(self.chain.call, "eth_blockNumber"), 16)
            if self.highest is None or height < self.highest:
                await asyncio.to_thread(self.chain.mine)
            await asyncio.sleep(self.draw.uniform(0.05, 0.3))

    async def _take_back(self) -> None:
        for _ in range(REORGANISATIONS):
            self.highest = 0  # no block between what is kept and its number
            await asyncio.sleep(0.1)
            height = int(await asyncio.to_thread(self.chain.call, "eth_blockNumber"), 16)
            snapshot = await asyncio.to_thread(self.chain.call, "evm_snapshot")
            self.highest = None if self.is_deep else height + int(self.settings.finality)
            await asyncio.sleep(self.draw.uniform(0.2, 1.2))
            assert await asyncio.to_thread(self.chain.call, "evm_revert", snapshot)
            self.highest = None
            await asyncio.sleep(self.draw.uniform(0.2, 0.8))

    async def _kill(self) -> None:
        for _ in range(KILLS):
            await asyncio.sleep(self.draw.uniform(0.5, 2))
            dead, self.ledger = self.ledger, None
            if dead is not None:
                await dead.close()
            await asyncio.sleep(self.draw.uniform(0, 0.3))
            await self._open()


async def _ids(ledger: EvmLedger) -> list[str | None]:
    """Return the ids in the log, empty if the node does not answer or the ledger is closed."""
    with contextlib.suppress(ClientError, RuntimeError):
        page = await ledger.read(0, 1_000_000)
        if page is not None:
            return [each.id for each in page.notices]
    return []

"""A chain in this process for a PRISM node: blocks, branches, a pool; and a node that serves it
over gRPC.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from support.plumbing.told import Told, told
from support.prism.prism_log import anchoring

from interchain_events.events.log.store import Store, put
from interchain_events.events.rows import Block
from interchain_events.events.subscriptions.callers import EVERYBODY, Callers
from interchain_events.events.subscriptions.grpc_server import Tls
from interchain_events.events.subscriptions.service import StreamRecorder
from interchain_events.prism.client import ClientSubscription, NodeError, PrismClient
from interchain_events.prism.core.status import BestBlock, best_block
from interchain_events.prism.make import atala_object
from interchain_events.prism.protocol import prism_pb2 as pb
from interchain_events.prism.service.node import PrismNode
from interchain_events.prism.service.rpc import serve_prism
from interchain_events.prism.service.service import PrismLimits, PrismService, StatusRecorder
from interchain_events.prism.tables.processor import Processor, Source
from pubsub_emulator.client.errors import NodeUnavailable, UnknownBlock


@dataclass
class _Head:
    number: int
    hash: bytes


@dataclass
class Branches:
    """A `Chain` whose best branch the test writes. Blocks `lag` below the best one are final."""

    lag: int = 0
    blocks: list[tuple[Block, list[bytes]]] = field(default_factory=list)
    pool: list[bytes] = field(default_factory=list)
    is_away: bool = False
    _branch: int = 0
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.build()

    def build(self, *objects: bytes) -> int:
        """Append a block with these objects, and return its number."""
        number = len(self.blocks) + 1
        parent = self.blocks[-1][0].hash if self.blocks else bytes(32)
        block = anchoring(number, self._branch, parent, objects)
        self.blocks.append((block, list(objects)))
        self._changed.set()
        return number

    def anchor_now(self, *signed: Any) -> int:
        """Append a block with one object of these operations, and return its number."""
        return self.build(atala_object([each.raw for each in signed]))

    def build_pool(self) -> int:
        """Append a block with all waiting objects, and return its number."""
        waiting, self.pool = self.pool, []
        return self.build(*waiting)

    def drop_to(self, number: int) -> None:
        """Remove the blocks after `number` in a reorganisation. Their objects wait again."""
        self.pool = [raw for _, objects in self.blocks[number:] for raw in objects] + self.pool
        del self.blocks[number:]
        self._branch += 1

    # A `Chain`

    async def catch_up(self, log: Store) -> None:
        self._check()
        final = [block for block, _ in self.blocks[: len(self.blocks) - self.lag]]
        head = log.head()
        if head.anchor is not None:
            common = max(
                (each.number for each in final if log.hash_at(each.number) == each.hash), default=0
            )
            if common < head.anchor and common:
                log.rewind(common)
            final = final[common:]
        for each in final:
            put(log, [each])

    async def best(self) -> _Head:
        self._check()
        block = self.blocks[-1][0]
        return _Head(block.number, block.hash)

    async def hash_at(self, number: int) -> bytes | None:
        self._check()
        return self.blocks[number - 1][0].hash if 1 <= number <= len(self.blocks) else None

    async def block(self, number: int) -> BestBlock:
        self._check()
        if number > len(self.blocks):
            raise UnknownBlock(f"there is no block {number}")
        block, objects = self.blocks[number - 1]
        return best_block(number, block.hash, number * 6_000, objects)

    async def wait(self, known: bytes) -> None:
        if not self.blocks or self.blocks[-1][0].hash != known:
            return
        self._changed.clear()
        await self._changed.wait()

    async def anchor(self, content: bytes) -> None:
        self._check()
        self.pool.append(content)

    def settled(self, _number: int) -> int:
        return -1

    def _check(self) -> None:
        if self.is_away:
            raise NodeUnavailable("the chain is away")


@dataclass
class Running:
    """A node that serves a chain."""

    chain: Branches
    service: PrismService
    client: PrismClient
    address: str

    async def processed(self, number: int) -> None:
        """Wait until block `number` is processed."""
        await until(lambda: self.service.processor.processed >= number)

    async def seen(
        self, subscription: ClientSubscription
    ) -> tuple[list[pb.SubscriptionEvent], ClientSubscription]:
        """Return all events up to the seam, and the subscription to continue from."""
        events: list[pb.SubscriptionEvent] = []
        async with aclosing(self.client.events(subscription, reconnect=False)) as messages:
            async for message in messages:
                events += message.events
                subscription = message.subscription
                if message.live:
                    break
        return events, subscription

    def watch(
        self, operation: bytes, of: Callable[[Any], Any] = lambda each: each.status
    ) -> tuple[list[Any], Any]:
        """Follow the statuses of an operation in a task.

        Returns a list to which the result of `of` for each status is appended, and the task, which
        ends with the statuses.
        """
        found: list[Any] = []

        async def watch() -> None:
            async with aclosing(self.client.statuses(operation)) as updates:
                async for each in updates:
                    found.append(of(each))  # noqa: PERF401  # seen while it grows

        return found, asyncio.create_task(watch())


async def refused(action: Any, code: grpc.StatusCode, words: str | None = None) -> None:
    """Assert that a node refuses a request with this code and a message that matches `words`."""
    with pytest.raises(NodeError, match=words) as found:
        await action
    assert found.value.code is code


async def until(holds: Any) -> None:
    """Wait for something, a minute at most."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110  # state of several tasks and threads
            await asyncio.sleep(0.01)


def play(
    log: Any,
    story: Callable[[Running], Coroutine[Any, Any, None]],
    chain: Branches | None = None,
    **options: Any,
) -> None:
    """Run a story of a node over a log, at most two minutes."""

    async def what() -> None:
        async with asyncio.timeout(120), running(log, chain or Branches(), **options) as node:
            await story(node)

    asyncio.run(what())


def played(
    *, on: str = "log", chain: Callable[[], Branches] = Branches, **options: Any
) -> Callable[[Told], Callable[..., None]]:
    """Return a decorator for tests of a node over the log of a fixture, with a chain of its own."""
    return told(lambda log, story: play(log, story, chain(), **options), on)


@asynccontextmanager
async def running(
    log: Any,
    chain: Any,
    *,
    depth: int = 0,
    source: Source | None = None,
    anchors: bool = True,
    limits: PrismLimits | None = None,
    recorder: StreamRecorder | None = None,
    status_recorder: StatusRecorder | None = None,
    callers: Callers = EVERYBODY,
    tls: Tls | None = None,
    **given: Any,
) -> AsyncIterator[Running]:
    """Serve a chain over gRPC, with log and tables in one database; `given` is for the client."""
    async with AsyncExitStack() as stack:
        processor = Processor(log.database, log, source, depth)
        service = PrismService(processor, limits, recorder, status_recorder, anchors=anchors)
        port = await stack.enter_async_context(serve_prism(service, "127.0.0.1", 0, callers, tls))
        await stack.enter_async_context(PrismNode(service, log, chain))
        address = f"127.0.0.1:{port}"
        client = await stack.enter_async_context(PrismClient(address, **given))
        yield Running(chain, service, client, address)

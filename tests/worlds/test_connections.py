"""A ledger by WebSocket whose chain is killed, and whose socket is cut, in the middle of an answer."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from support.ganache import KEYS, Ganache, ganache

from pubsub_emulator.client.rpc import connect
from pubsub_emulator.distributor.adapter.evm.account import Account
from pubsub_emulator.distributor.adapter.evm.ledger import EvmLedger, EvmSettings, open_ledger
from pubsub_emulator.distributor.adapter.evm.node import EvmNode
from pubsub_emulator.distributor.adapter.ledger import Published
from pubsub_emulator.distributor.once import MemoryStore
from pubsub_emulator.distributor.simulation.stories import event_of

ACCOUNT = Account(bytes.fromhex(KEYS[0]))
CUTS = 30


@contextlib.asynccontextmanager
async def _ledger(url: str, settings: EvmSettings, store: MemoryStore) -> AsyncIterator[EvmLedger]:
    made = await open_ledger("a", EvmNode(await connect(url).__aenter__()), ACCOUNT, settings, store)
    try:
        yield made
    finally:
        await made.close()


async def _publish(ledger: EvmLedger, number: int) -> None:
    """Publish as a distributor does: until it is a yes."""
    while not isinstance(await ledger.publish(event_of(number)[1]), Published):  # noqa: ASYNC110  # it asks again
        await asyncio.sleep(0.1)


async def _ids(ledger: EvmLedger) -> list[str | None] | None:
    page = await ledger.read(0, 1000)
    return None if page is None else [notice.id for notice in page.notices]


def _wanted(count: int) -> list[str]:
    return [event_of(number)[0] for number in range(1, count + 1)]


def test_a_chain_that_is_killed_and_started_again_is_gone_on_with(tmp_path: Path) -> None:
    async def run(first: Ganache, kept: contextlib.ExitStack) -> None:
        async with asyncio.timeout(240), _ledger(first.ws, EvmSettings(finality=0, stuck=1), MemoryStore()) as ledger:
            await _publish(ledger, 1)
            under_way = [asyncio.create_task(_ids(ledger)) for _ in range(20)]
            under_way.append(asyncio.create_task(_publish(ledger, 2)))
            await asyncio.sleep(0.01)
            await asyncio.to_thread(kept.close)
            assert await _ids(ledger) is None
            with ganache("--database.dbPath", str(tmp_path), port=first.port):
                await asyncio.gather(*under_way)
                await _publish(ledger, 3)
                assert await _ids(ledger) == _wanted(3)

    with contextlib.ExitStack() as kept:
        asyncio.run(run(kept.enter_context(ganache("--database.dbPath", str(tmp_path))), kept))


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


def test_a_socket_that_is_cut_in_an_answer_loses_and_doubles_nothing() -> None:
    async def run(chain: Ganache) -> None:
        relay = _Cutting(chain.port)
        async with asyncio.timeout(240), await asyncio.start_server(relay.connected, "127.0.0.1", 0) as server:
            url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            async with _ledger(url, EvmSettings(finality=0, stuck=1), MemoryStore()) as ledger:
                for number in range(1, CUTS + 1):
                    relay.left = 37 * number
                    await _publish(ledger, number)
                    assert await _ids(ledger) in (None, _wanted(number))
                relay.left = None
                assert await _ids(ledger) == _wanted(CUTS)
                assert relay.cuts > CUTS // 2
            while relay.open:  # noqa: ASYNC110  # nothing tells of it
                await asyncio.sleep(0.01)

    with ganache() as chain:
        asyncio.run(run(chain))

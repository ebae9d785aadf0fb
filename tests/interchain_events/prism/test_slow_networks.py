"""Networks that vanish, connections that never finish, clients that read nothing: over TLS as
without it (PR-54).
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.plumbing.certificates import certificate
from support.plumbing.told import alone
from support.prism.prism_chain import Branches, running, until
from support.prism.wallet import ANY

from interchain_events.events.log.sql_store import SqlStore
from interchain_events.prism.client import PrismClient

SERVER = "interchain_events.events.subscriptions.grpc_server"


class Network:
    """A network between a client and a node that can vanish: connections stay open, and nothing
    arrives any more.
    """

    def __init__(self, target: str) -> None:
        self._host, _, port = target.partition(":")
        self._port = int(port)
        self.vanished = asyncio.Event()

    async def join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection."""
        there, back = await asyncio.open_connection(self._host, self._port)
        try:
            await asyncio.gather(self._carry(reader, back), self._carry(there, writer))
        finally:
            for each in (back, writer):
                each.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            if self.vanished.is_set():
                await asyncio.Event().wait()
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def network(target: str) -> AsyncIterator[tuple[Network, str]]:
    """A network in front of an address, and the address to call instead."""
    made = Network(target)
    async with asyncio.TaskGroup() as tasks:
        joined: list[asyncio.Task[None]] = []
        server = await asyncio.start_server(
            lambda *ends: joined.append(tasks.create_task(made.join(*ends))), "127.0.0.1", 0
        )
        yield made, f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        server.close()
        for each in joined:
            each.cancel()


@pytest.mark.parametrize("with_tls", [False, True])
@alone
async def test_a_stream_whose_network_vanished_leaves_its_place(
    log: SqlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, with_tls: bool
) -> None:
    monkeypatch.setattr(f"{SERVER}.KEEPALIVE_SECONDS", 1)
    monkeypatch.setattr(f"{SERVER}.PING_SECONDS", 1)
    tls = certificate(tmp_path) if with_tls else None
    roots = None if tls is None else tls.certificate.read_bytes()
    async with (
        asyncio.timeout(90),
        running(log, Branches(), tls=tls, roots=roots) as node,
        network(node.address) as (between, address),
        PrismClient(address, roots=roots) as client,
    ):
        stream = client.events(await client.subscribe([ANY]))
        assert (await anext(stream)).live
        await asyncio.sleep(3)  # longer than silence and ping together: who answers pings stays
        assert node.service.events.open_streams == 1
        between.vanished.set()
        async with asyncio.timeout(30):  # gRPC's own time for a ping is 60 s
            await until(lambda: node.service.events.open_streams == 0)
        await stream.aclose()


@pytest.mark.parametrize("with_tls", [False, True])
@alone
async def test_connections_that_never_begin_are_closed_and_keep_nobody_out(
    log: SqlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, with_tls: bool
) -> None:
    """Nothing at all, half a greeting of HTTP/2, the head of a TLS record and then one byte at a
    time.
    """
    monkeypatch.setattr(f"{SERVER}.HANDSHAKE_SECONDS", 1)
    tls = certificate(tmp_path) if with_tls else None
    roots = None if tls is None else tls.certificate.read_bytes()
    beginnings = (b"", b"PRI * HTTP/2.0\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")

    async def ended(port: int, data: bytes) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(data)
            while not reader.at_eof():
                writer.write(data[:1])
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(reader.read(1 << 16), 0.2)
        except ConnectionError:
            pass
        finally:
            writer.transport.abort()

    async with asyncio.timeout(60), running(log, Branches(), tls=tls, roots=roots) as node:
        port = int(node.address.rpartition(":")[2])
        slow = asyncio.gather(*(ended(port, data) for data in beginnings * 50))
        async with PrismClient(node.address, roots=roots) as other:
            await other.subscribe([ANY])
        await slow

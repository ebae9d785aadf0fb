"""Ledgers on EVM chains, and the accounts that `ganache --wallet.deterministic` endows."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from interchain_events.distributor.adapter.evm.account import EvmAccount
from interchain_events.distributor.adapter.evm.ledger import EvmLedger, EvmSettings, open_ledger
from interchain_events.distributor.adapter.evm.node import EvmNode
from interchain_events.distributor.adapter.ledger import Published
from interchain_events.distributor.core.messages import No, Unknown
from interchain_events.distributor.once import MemoryStore
from interchain_events.distributor.simulation.stories import event_of
from pubsub_emulator.client.rpc import connect

KEYS = (
    "4f3edf983ac636a65a842ce7c78d9aa706d3b113bce9c46f30d7d21715b23b1d",
    "6cbed15c793ce57650b9877cf6fa156fbef513c4e6134f022a85b1ffdd59b2a1",
)
ACCOUNT, STRANGER = (EvmAccount(bytes.fromhex(key)) for key in KEYS)
Told = Published | No | Unknown


async def opened(place: Any, settings: EvmSettings, store: MemoryStore | None = None) -> EvmLedger:
    """Return a ledger on a node.

    `place` is the node's URL, or an object that answers as a connection does.
    """
    rpc = await connect(place).__aenter__() if isinstance(place, str) else place
    return await open_ledger("a", EvmNode(rpc), ACCOUNT, settings, store or MemoryStore())


@contextlib.asynccontextmanager
async def ledger_on(
    place: Any, settings: EvmSettings, store: MemoryStore | None = None
) -> AsyncIterator[EvmLedger]:
    """Open a ledger, and close it at the end of the context."""
    made = await opened(place, settings, store)
    try:
        yield made
    finally:
        await made.close()


async def ids(ledger: EvmLedger) -> list[str | None] | None:
    """Return the ids in the log, or `None` if the node does not answer."""
    page = await ledger.read(0, 1_000_000)
    return None if page is None else [notice.id for notice in page.notices]


def publishing(ledger: EvmLedger, number: int) -> asyncio.Task[Told]:
    """Start a publication and return its task."""
    return asyncio.create_task(ledger.publish(event_of(number)[1]))

"""A PRISM node and a client in processes of their own, which a story kills and starts again."""

import asyncio
import time
from pathlib import Path
from typing import Final

from support.plumbing import processes
from support.prism.wallet import ANY, Wallet, add

from interchain_events.prism.client import ClientSubscription, NodeError, PrismClient

PATIENCE: Final = 90.0
"""Seconds without any progress."""


class Cast(processes.Cast):
    """The node and the client of one story.

    `chain` is the option that names the chain that the node follows.
    """

    tended = ("node",)

    def __init__(self, chain: tuple[str, ...], place: str, folder: Path) -> None:
        super().__init__(folder)
        self.address = f"127.0.0.1:{self.port}"
        self.at = ClientSubscription("", "")
        serve = [
            "pubsub_emulator",
            "prism",
            "serve",
            *chain,
            "--db",
            place,
            "--port",
            str(self.port),
        ]
        self._serve = [*serve, "--depth", "1", "--heartbeat", "0.3"]

    def arguments(self, who: str) -> list[str]:
        client = [
            "support.prism.prism_story_client",
            self.address,
            self.at.token,
            self.at.cursor,
            str(self.kept),
        ]
        return self._serve if who == "node" else client

    async def subscribe(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while not self.at.token:
            try:
                async with PrismClient(self.address) as client:
                    self.at = await client.subscribe([ANY], batches=True, everything=True)
            except NodeError:
                if time.monotonic() > deadline:
                    raise
                self.tend()
                await asyncio.sleep(0.2)


def operations(seed: int) -> list[bytes]:
    wallets = [Wallet(f"{seed} {at}") for at in range(8)]
    found = [each.created.raw for each in wallets]
    for each in wallets:
        batch = each.issue(each.created.hash)
        found += [each.update(add(name)).raw for name in "xy"]
        found += [
            batch.signed.raw,
            each.revoke(batch, each.created.hash).raw,
            each.deactivate().raw,
        ]
    return found

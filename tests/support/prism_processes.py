"""A PRISM node and a client in processes of their own, which a story kills and starts again."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from support.prism import Wallet

from pubsub_emulator.prism.client import ClientSubscription, NodeError, PrismClient
from pubsub_emulator.prism.core.filters import Filter, FilterType
from pubsub_emulator.prism.core.messages import AddService, Service

TESTS: Final = Path(__file__).resolve().parents[1]
PATIENCE: Final = 90.0
"""Seconds without any progress."""
TOLD: Final = 3_000
"""Bytes of each process's output that a failure shows."""
ENVIRONMENT: Final = {**os.environ, "PYTHONPATH": f"{TESTS.parent}{os.pathsep}{TESTS}", "PYTHONUNBUFFERED": "1"}


class Cast:
    """The node and the client of one story; `chain` is the option that says what the node follows."""

    def __init__(self, chain: tuple[str, ...], place: str, folder: Path) -> None:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.folder = folder
        self.kept = folder / "client"
        self.at = ClientSubscription("", "")
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        serve = ["pubsub_emulator", "prism", "serve", *chain, "--db", place, "--port", str(self.port)]
        self._serve = [*serve, "--depth", "1", "--heartbeat", "0.3"]

    def start(self, who: str) -> None:
        client = ["support.prism_story_client", self.address, self.at.token, self.at.cursor, str(self.kept)]
        arguments = self._serve if who == "node" else client
        with self._log(who).open("ab") as written:
            written.write(f"--- {who} starts\n".encode())
            self.running[who] = subprocess.Popen(
                [sys.executable, "-m", *arguments], env=ENVIRONMENT, stdout=written, stderr=written
            )

    def tend(self) -> None:
        """Start a node that has ended by itself, as a supervisor does: it may begin while its database is away."""
        if self.running["node"].poll() is not None:
            self.start("node")

    def kill(self, who: str) -> None:
        self.running[who].send_signal(signal.SIGKILL)
        self.running[who].wait()

    def _log(self, who: str) -> Path:
        return self.folder / f"{who}.log"

    def told(self) -> str:
        """The end of what each process wrote, and how it ended if it did."""
        return "\n".join(
            f"{who} (exit status {process.poll()}) wrote:\n"
            + self._log(who).read_bytes()[-TOLD:].decode("utf-8", "replace")
            for who, process in self.running.items()
        )

    def end(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()

    async def subscribe(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while not self.at.token:
            try:
                async with PrismClient(self.address) as client:
                    everything = [Filter(FilterType.ANONYMOUS_ANY_FILTER)]
                    self.at = await client.subscribe(everything, batches=True, everything=True)
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
        found += [each.update(AddService(Service(name, "T", "a:b"))).raw for name in "xy"]
        found += [batch.signed.raw, each.revoke(batch, each.created.hash).raw, each.deactivate().raw]
    return found

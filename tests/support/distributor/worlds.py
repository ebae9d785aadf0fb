"""Adapters and distributors as processes of their own, which a story kills and starts again."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path

from support.distributor.evm import KEYS
from support.distributor.stage import free_port

ENVIRONMENT = {**os.environ, "PYTHONUNBUFFERED": "1"}


class Program:
    """A process that runs `pubsub …`. `log` is a file with its output."""

    def __init__(self, log: Path, *arguments: str, **environment: str) -> None:
        self.log = log
        self.arguments = arguments
        self.environment = {**ENVIRONMENT, **environment}
        self.kills = 0
        self.url = f"http://127.0.0.1:{arguments[-1]}"
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the process, and wait until it prints its address."""
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "pubsub_emulator", *self.arguments),
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=self.environment,
            )
        assert self._process.stdout is not None
        async with asyncio.timeout(60):
            while b"://127.0.0.1" not in (line := await self._process.stdout.readline()):
                assert line, self.log.read_text()

    async def kill(self) -> None:
        """Kill the process."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGKILL)
            await self._process.wait()
            self.kills += 1


def adapter_of(folder: Path, name: str, *options: str) -> Program:
    """Return the program of an adapter with a store in the folder. It is not started yet."""
    place = ("--store", f"sqlite:{folder / name}.db", *options, "--port", str(free_port()))
    return Program(folder / f"{name}.log", "distributor", "adapter", name, *place, EVM_KEY=KEYS[0])


def distributor_over(
    folder: Path, adapters: dict[str, str], legacy: dict[str, str], **settings: object
) -> Program:
    """Return the program of a distributor over adapters, given by URL. It is not started yet.

    `legacy` has the chain ids of public adapters.
    """
    port = free_port()
    fields = {
        "public_url": f"http://127.0.0.1:{port}",
        "port": port,
        "store": f"sqlite:{folder / 'd.db'}",
        **settings,
    }
    lines = [f"{name} = {json.dumps(value)}\n" for name, value in fields.items()]
    for name, url in adapters.items():
        lines.append(f"[adapters.{name}]\nurl = '{url}'\n")
        if name in legacy:
            lines.append(f"profile = 'legacy'\nchain_id = '{legacy[name]}'\n")
    config = folder / "distributor.toml"
    config.write_text("".join(lines), encoding="utf-8")
    program = Program(folder / "distributor.log", "distributor", "serve", str(config))
    program.url = str(fields["public_url"])
    return program

"""Adapters and distributors as processes of their own, which a story kills and starts again."""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

ENVIRONMENT = {**os.environ, "PYTHONUNBUFFERED": "1"}


class Program:
    """`pubsub …` in a process; `log` is a file with all that it says."""

    def __init__(self, log: Path, *arguments: str, **environment: str) -> None:
        self.log = log
        self.arguments = arguments
        self.environment = {**ENVIRONMENT, **environment}
        self.kills = 0
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it, and wait until it says where it listens."""
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
        """Kill it without a word."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGKILL)
            await self._process.wait()
            self.kills += 1

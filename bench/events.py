"""Events: append, catch-up and matching beside their floors, and a thousand live clients.

`python -m bench --only events` measures the ratios. `python -m bench.events` measures live clients
(`--clients`, `--blocks`): a process of its own serves them, and this one reads.
"""

import argparse
import asyncio
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.measure import Race
from interchain_events.events.filters.algebra import ANY, All, Field, Kind
from interchain_events.events.filters.index import FilterIndex
from interchain_events.events.log.sql_store import SqlStore, open_store
from interchain_events.events.rows import Block, ChainBlock, Row, assemble
from pubsub_emulator.primitives.hashing import blake2_256

EVENTS_A_BLOCK: Final = 20
BLOCKS: Final = 200
_INSERT: Final = "INSERT INTO log_rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_SELECT: Final = (
    "SELECT seq, anchor, chain, block, idx, kind, id, time, body FROM log_rows WHERE seq > {} ORDER"
    " BY seq LIMIT 1000"
)


def _hash(number: int) -> bytes:
    return blake2_256(str(number).encode())


def _block(number: int, events: int = EVENTS_A_BLOCK) -> Block:
    fields = [
        (
            "Balances.Transfer",
            {
                "from": _hash(index),
                "to": _hash(number * 1_000 + index),
                "amount": number * 10**10 + index,
            },
        )
        for index in range(events)
    ]
    return assemble(
        ChainBlock(None, number, _hash(number), number * 6_000, fields),
        (),
        parent=_hash(number - 1),
    )


def races() -> Iterator[Race]:
    """Yield races against the bare drivers of the databases, and of matching.

    They compare times: a ratio of 2 is half the speed of the bare driver.
    """
    folder = Path(tempfile.mkdtemp(prefix="bench-events-"))
    yield _append(folder)
    yield _catch_up(folder)
    yield _matching()
    with postgres() as url:
        if url is not None:
            yield _catch_up_postgres(url)


def _append(folder: Path) -> Race:
    """Return a race between appending blocks to the log and inserting the same rows directly.

    The rows go into the same table of another file. Both use one transaction per block.
    """
    store = open_store(str(folder / "append.db"), "bench")
    bare_file = str(folder / "bare.db")
    open_store(bare_file, "bench").close()
    bare = sqlite3.connect(bare_file, isolation_level=None)
    bare.execute("PRAGMA synchronous = FULL")
    turns = count()
    bare_turns = count()

    def append() -> None:
        store.append(prepared[next(turns)])

    def insert() -> None:
        turn = next(bare_turns)
        bare.execute("BEGIN IMMEDIATE")
        bare.executemany(_INSERT, rows[turn])
        bare.execute("COMMIT")

    pairs = 15
    prepared = [
        [_block(1 + turn * BLOCKS + index) for index in range(BLOCKS)] for turn in range(pairs)
    ]
    size = BLOCKS * EVENTS_A_BLOCK
    rows: list[list[Row]] = []
    for turn, blocks in enumerate(prepared):
        starts = range(turn * size, (turn + 1) * size, EVENTS_A_BLOCK)
        of_turn: list[Row] = []
        for seq, block in zip(starts, blocks, strict=True):
            of_turn += block.rows(seq)
        rows.append(of_turn)
    return Race(f"events: append {size:,}", append, "bare executemany", insert, pairs, target=2.0)


def _catch_up(folder: Path) -> Race:
    store = _filled(str(folder / "read.db"))
    bare = sqlite3.connect(str(folder / "read.db"))
    return _beside_select(
        "", store, lambda after: bare.execute(_SELECT.format("?"), (after,)).fetchall()
    )


def _catch_up_postgres(url: str) -> Race:
    import psycopg  # noqa: PLC0415  # beside the server
    from psycopg.sql import SQL  # noqa: PLC0415

    store = _filled(url)
    bare = psycopg.connect(url, autocommit=True)
    select = SQL(_SELECT.format("%s"))
    return _beside_select(
        ", PostgreSQL", store, lambda after: bare.execute(select, (after,)).fetchall()
    )


def _beside_select(where: str, store: SqlStore, page: Callable[[int], list[Any]]) -> Race:
    name = f"events: catch up 20,000{where}"
    return Race(name, lambda: _read(store), "bare SELECT", lambda: _select(page), 15, target=2.0)


@contextmanager
def postgres() -> Iterator[str | None]:
    """Run the PostgreSQL server of the tests and yield its URL.

    If PostgreSQL is not installed, print a message and yield `None`.
    """
    from tests.support.plumbing.postgres import (  # noqa: PLC0415  # a test dependency
        packaged_programs,
        running_server,
    )

    if packaged_programs() is None:
        print("no PostgreSQL here: the dependency group `test` is not installed", file=sys.stderr)
        yield None
        return
    with running_server() as server:
        yield server.url()


def _filled(place: str) -> SqlStore:
    store = open_store(place, "bench")
    store.append([_block(number) for number in range(1, 1_001)])
    return store


def _read(store: SqlStore) -> int:
    after = 0
    count = 0
    while True:
        page = store.read(after, 1_000, ANY)
        count += len(page.rows)
        after = page.through
        if page.is_last:
            return count


def _select(page: Callable[[int], list[Any]]) -> int:
    after = 0
    count = 0
    while rows := page(after):
        count += len(rows)
        after = rows[-1][0]
    return count


def _matching() -> Race:
    """Return a race between matching events with many subscriptions and with few.

    The same hundred subscriptions match in both.
    """
    rows = _block(7, 500).rows(0)

    def index(size: int) -> FilterIndex[int]:
        filters: FilterIndex[int] = FilterIndex()
        for number in range(size):
            account = f"0x{_hash(7_000 + number if number < 100 else 10**6 + number).hex()}"
            filters.add(number, (All(Kind("Balances.*"), Field("to", "=", account)),))
        return filters

    few = index(100)
    many = index(100_000)

    def match(against: FilterIndex[int]) -> int:
        return sum(len(against.match(row)) for row in rows)

    if match(few) != 100 or match(many) != 100:
        raise RuntimeError("the index does not match a hundred subscriptions")
    name = "events: match 500 against 100,000"
    return Race(name, lambda: match(many), "against 100", lambda: match(few), 15, target=5.0)


# Live: one server, many clients


async def fan_out(clients: int, blocks: int) -> None:
    """Append ten blocks per second and print when every client has every event.

    The server runs in a second process.
    """
    folder = Path(tempfile.mkdtemp(prefix="bench-events-"))
    store = open_store(str(folder / "live.db"), "bench")
    arguments = [
        "events",
        "serve",
        "--log",
        str(folder / "live.db"),
        "--port",
        "0",
        "--streams",
        str(clients),
    ]
    server = subprocess.Popen(  # noqa: ASYNC220, S603  # this program; no other task runs yet
        [sys.executable, "-m", "pubsub_emulator", *arguments, "--streams-per-client", str(clients)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        if server.stdout is None:
            return
        url = server.stdout.readline().split(": ")[0]
        body = b'{"filters":[{"any":true}]}'
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{url}/subscriptions", body, headers)  # noqa: S310
        with urllib.request.urlopen(request) as answer:  # noqa: ASYNC210, S310
            token = json.load(answer)["token"]
        port = int(url.rpartition(":")[2])
        opened = asyncio.Barrier(clients + 1)
        tasks = [asyncio.create_task(_client(port, token, blocks, opened)) for _ in range(clients)]
        await opened.wait()
        appended = await _appender(store, blocks)
        lags = [
            [seen - appended[index] for index, seen in enumerate(times)]
            for times in await asyncio.gather(*tasks)
        ]
    finally:
        server.terminate()
        server.wait()
    all_lags = list(chain.from_iterable(lags))
    last = max(of_client[-1] for of_client in lags)
    print(
        f"| {clients:,} clients, {blocks:,} events at ten a second | every client has every event,"
        " in order |"
    )
    middle = median(all_lags) * 1e3
    largest = max(all_lags) * 1e3
    print(f"| lag, median and largest | {middle:,.0f} ms, {largest:,.0f} ms |")
    print(f"| lag of the last event at the slowest client | {last * 1e3:,.0f} ms |")


async def _appender(store: SqlStore, blocks: int) -> list[float]:
    appended: list[float] = []
    for number in range(1, blocks + 1):
        await asyncio.to_thread(store.append, [_block(number, 1)])
        appended.append(time.monotonic())
        await asyncio.sleep(0.1)
    return appended


async def _client(port: int, token: str, events: int, opened: asyncio.Barrier) -> list[float]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        f"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    )
    while await reader.readline() != b": open\n":
        pass
    await opened.wait()
    seen: list[float] = []
    while len(seen) < events:
        line = await reader.readline()
        if line.startswith(b"data: "):
            if json.loads(line[6:])["seq"] != len(seen) + 1:
                raise RuntimeError("an event is missing, doubled or out of order")
            seen.append(time.monotonic())
    writer.close()
    return seen


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.events", description=__doc__)
    parser.add_argument("--clients", type=int, default=1_000)
    parser.add_argument("--blocks", type=int, default=100)
    given = parser.parse_args()
    asyncio.run(fan_out(given.clients, given.blocks))

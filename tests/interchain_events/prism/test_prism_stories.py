"""Real processes killed with SIGKILL, a chain that takes blocks back, both databases (PR-3, PR-5,
PR-52, PR-53).

Node, client and PostgreSQL are killed. SQLite has no process of its own: it is killed with the
node, in mid-commit too. At the end the client has exactly the rows, and the rows are those of a
fresh run over the log. `PRISM_STORIES=25` is the campaign: so many longer stories on each database.
A story that fails shows the end of what its processes wrote; all of it is in the test's folder.
"""

import asyncio
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from support.plumbing.postgres import MortalServer
from support.plumbing.processes import environment
from support.prism.prism_log import dump
from support.prism.prism_processes import PATIENCE, Cast, operations
from support.prism.prism_story_client import seen

from interchain_events.database.opening import open_database
from interchain_events.events.log.sql_store import open_store
from interchain_events.prism.make import atala_object
from interchain_events.prism.service.chain import NodeChain
from interchain_events.prism.tables.processor import Processor, Source
from pubsub_emulator.client.extrinsics import development_seed
from pubsub_emulator.client.rpc import connect

pytestmark = pytest.mark.slow
STORIES: Final = int(os.environ.get("PRISM_STORIES", "1"))
ROUNDS: Final = 5 if STORIES == 1 else 14


@pytest.fixture
def chain_url(tmp_path: Path) -> Iterator[str]:
    """A chain that builds and takes back when it is told to; each story has its own, without the
    others' blocks.
    """
    written = (tmp_path / "chain.log").open("wb")
    command = [
        sys.executable,
        "-m",
        "pubsub_emulator",
        "serve",
        "--prism",
        "--dev",
        "--port",
        "0",
        "--build",
        "manual",
    ]
    made = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=written,
        text=True,
        env=environment(PYTHONUNBUFFERED="1"),
    )
    assert made.stdout is not None
    line = made.stdout.readline()
    assert "ws://" in line
    yield line.partition(": ")[2].strip()
    made.kill()
    made.wait()
    made.stdout.close()
    written.close()


async def story(
    seed: int, url: str, place: str, folder: Path, kill_database: Callable[[], None] | None = None
) -> None:
    draw = random.Random(seed)
    killed = ("node", "client", *(("database",) if kill_database else ()))
    cast = Cast(("--chain", url), place, folder)
    pool = operations(seed)
    try:
        cast.start("node")
        await cast.subscribe()
        cast.start("client")
        async with (
            connect(url) as rpc,
            NodeChain(url, Source(), development_seed("Alice")) as chain,
        ):
            for _ in range(ROUNDS):
                for _ in range(draw.randrange(3)):
                    await chain.anchor(atala_object(draw.sample(pool, draw.randrange(1, 4))))
                await rpc.call("dev_newBlock", {"count": 1})
                what = draw.random()
                if what < 0.3:
                    best = (await chain.best()).number
                    await rpc.call("dev_setHead", max(best - draw.randrange(1, 6), 1))
                    await rpc.call("dev_newBlock", {"count": 1})
                elif what < 0.6:
                    who = draw.choice(killed)
                    if who == "database" and kill_database is not None:
                        await asyncio.to_thread(kill_database)
                    else:
                        await asyncio.sleep(draw.choice((0, 0.05, 0.3)))
                        cast.kill(who)
                        cast.start(who)
                await asyncio.sleep(draw.uniform(0, 0.6))
            await chain.anchor(
                atala_object(pool[:1])
            )  # whatever was anchored before may have been taken back
            await rpc.call("dev_newBlock", {"count": 3})
            best = await chain.best()
        await asyncio.to_thread(_compare, cast, place, folder, best.hash)
    except Exception as error:
        error.add_note(cast.told())
        raise
    finally:
        cast.end()


def _compare(cast: Cast, place: str, folder: Path, best: bytes) -> None:
    """Wait until tables and client have the rows of a fresh run over the whole log; what moves on
    is waited for.
    """
    log, before, deadline = open_store(place, "prism"), None, 0.0
    while True:
        cast.tend()
        assert cast.running["client"].poll() is None, "the client ended by itself"
        fresh = open_database(str(folder / f"fresh-{time.monotonic_ns()}.db"))
        Processor(fresh, log, depth=1).run()
        due = _in(fresh)
        fresh.close()
        there = (log.head().hash, _in(log.database), seen(cast.kept))
        if there == (best, due, due) and due:
            break
        if there != before:
            before, deadline = there, time.monotonic() + PATIENCE
        assert time.monotonic() < deadline, (
            f"{log.head()}, {len(there[1])} and {len(there[2])} of {len(due)} rows"
        )
        time.sleep(0.3)
    log.close()


def _in(database: Any) -> list[list[Any]]:
    found = dump(database, ["atala_operations"])["atala_operations"]
    return [[row[7], row[0].hex(), 1 if row[1] == "APPLIED" else 2] for row in found]


@pytest.mark.parametrize("seed", range(STORIES))
def test_pr_3_on_sqlite(seed: int, chain_url: str, tmp_path: Path) -> None:
    asyncio.run(story(seed, chain_url, str(tmp_path / "prism.db"), tmp_path))


@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize("seed", range(STORIES))
def test_pr_3_on_postgresql(
    seed: int, chain_url: str, mortal_postgres: MortalServer, tmp_path: Path
) -> None:
    asyncio.run(
        story(1_000 + seed, chain_url, mortal_postgres.database(), tmp_path, mortal_postgres.kill)
    )

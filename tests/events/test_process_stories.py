"""Real processes killed, blocks taken back, both databases: the client has every row, in order, once (EV-2, EV-21).

`PROCESS_STORIES=50` is the campaign: so many stories on each database.
"""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from support.postgres import MortalServer, mortal_server
from support.story_client import seen as seen_by

from pubsub_emulator.database.errors import StoreUnavailable
from pubsub_emulator.events.filters.algebra import Kind
from pubsub_emulator.events.log.sql_store import open_store

pytestmark = pytest.mark.slow
STORIES: Final = int(os.environ.get("PROCESS_STORIES", "1"))
TESTS: Final = Path(__file__).resolve().parent.parent
BLOCKS: Final = 150
KILLS: Final = 5
PATIENCE: Final = 90.0


class Cast:
    """The processes of one story."""

    def __init__(self, place: str, folder: Path) -> None:
        self.place = place
        self.kept = folder / "client"
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.token = ""

    def start(self, who: str) -> None:
        python = [sys.executable]
        options = ("--log", self.place, "--port", str(self.port), "--heartbeat", "0.2")
        arguments = {
            "writer": [*python, "-m", "support.story_writer", self.place, str(BLOCKS)],
            "server": [*python, "-m", "pubsub_emulator", "events", "serve", *options],
            "client": [*python, "-m", "support.story_client", self.url, self.token, str(self.kept)],
        }[who]
        environment = {**os.environ, "PYTHONPATH": f"{TESTS.parent}{os.pathsep}{TESTS}"}
        self.running[who] = subprocess.Popen(
            arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def tend(self) -> None:
        """Start who has ended by itself, as a supervisor does: a server may begin while its database is away."""
        for who in ("server", "client"):
            if who in self.running and self.running[who].poll() is not None:
                self.start(who)

    def kill(self, who: str) -> None:
        self.running[who].send_signal(signal.SIGKILL)
        self.running[who].wait()

    def subscribe(self) -> None:
        body = json.dumps({"filters": [{"kind": "A.*"}], "after": "start"}).encode()
        kind = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/subscriptions", body, kind)  # noqa: S310  # of the test's server
        deadline = time.monotonic() + PATIENCE
        while not self.token:
            try:
                with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310
                    self.token = json.load(answer)["token"]
            except OSError:
                if time.monotonic() > deadline:
                    raise
                self.tend()
                time.sleep(0.1)

    def end(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()


def play(seed: int, place: str, folder: Path, kill_database: Callable[[], None] | None) -> None:
    draw = random.Random(seed)
    open_store(place, "story").close()
    cast = Cast(place, folder)
    try:
        cast.start("server")
        cast.subscribe()
        cast.start("client")
        cast.start("writer")
        for _ in range(KILLS):
            time.sleep(draw.uniform(0.05, 0.8))
            who = draw.choice(("writer", "server", "client", *(("database",) if kill_database else ())))
            if who == "database" and kill_database is not None:
                kill_database()
                continue
            cast.kill(who)
            time.sleep(draw.uniform(0, 0.2))
            cast.start(who)
        _compare(cast)
    finally:
        cast.end()


def _compare(cast: Cast) -> None:
    deadline = time.monotonic() + PATIENCE
    assert cast.running["writer"].wait(PATIENCE) == 0
    due: list[list[str]] = []
    while not due:
        try:
            store = open_store(cast.place, "story")
            assert store.head().anchor == BLOCKS
            due = [[str(row.seq), f"0x{row.id.hex()}"] for row in store.read(0, 10**6, Kind("A.*")).rows]
            store.close()
        except StoreUnavailable:
            time.sleep(0.2)
    seen: list[list[str]] = []
    while seen != due and time.monotonic() < deadline:
        time.sleep(0.1)
        cast.tend()
        seen = seen_by(cast.kept)
    assert seen == due


@pytest.mark.parametrize("seed", range(STORIES))
def test_ev_21_on_sqlite(seed: int, tmp_path: Path) -> None:
    play(seed, str(tmp_path / "events.db"), tmp_path, None)


@pytest.fixture(scope="module")
def mortal_postgres() -> Iterator[MortalServer]:
    """A server of its own, which is killed."""
    with mortal_server() as server:
        yield server


@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize("seed", range(STORIES))
def test_ev_21_on_postgresql(seed: int, mortal_postgres: MortalServer, tmp_path: Path) -> None:
    play(seed, mortal_postgres.database(), tmp_path, mortal_postgres.kill)

"""Real processes killed, blocks taken back, both databases: the client has every row, in order,
once (EV-2, EV-21).

`PROCESS_STORIES=50` is the campaign: so many stories on each database.
"""

import json
import os
import random
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from support.events.story_client import seen as seen_by
from support.plumbing.postgres import MortalServer
from support.plumbing.processes import Cast

from interchain_events.database.errors import StoreUnavailable
from interchain_events.events import Kind, open_store

pytestmark = pytest.mark.slow
STORIES: Final = int(os.environ.get("PROCESS_STORIES", "1"))
BLOCKS: Final = 150
KILLS: Final = 5
PATIENCE: Final = 90.0


class Story(Cast):
    """The processes of one story."""

    tended = ("server", "client")

    def __init__(self, place: str, folder: Path) -> None:
        super().__init__(folder)
        self.place = place
        self.url = f"http://127.0.0.1:{self.port}"
        self.token = ""

    def arguments(self, who: str) -> list[str]:
        options = ("--log", self.place, "--port", str(self.port), "--heartbeat", "0.2")
        return {
            "writer": ["support.events.story_writer", self.place, str(BLOCKS)],
            "server": ["pubsub_emulator", "events", "serve", *options],
            "client": ["support.events.story_client", self.url, self.token, str(self.kept)],
        }[who]

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


def play(seed: int, place: str, folder: Path, kill_database: Callable[[], None] | None) -> None:
    draw = random.Random(seed)
    open_store(place, "story").close()
    cast = Story(place, folder)
    try:
        cast.start("server")
        cast.subscribe()
        cast.start("client")
        cast.start("writer")
        for _ in range(KILLS):
            time.sleep(draw.uniform(0.05, 0.8))
            who = draw.choice(
                ("writer", "server", "client", *(("database",) if kill_database else ()))
            )
            if who == "database" and kill_database is not None:
                kill_database()
                continue
            cast.kill(who)
            time.sleep(draw.uniform(0, 0.2))
            cast.start(who)
        _compare(cast)
    finally:
        cast.end()


def _compare(cast: Story) -> None:
    deadline = time.monotonic() + PATIENCE
    assert cast.running["writer"].wait(PATIENCE) == 0
    due: list[list[str]] = []
    while not due:
        try:
            store = open_store(cast.place, "story")
            assert store.head().anchor == BLOCKS
            due = [
                [str(row.seq), f"0x{row.id.hex()}"]
                for row in store.read(0, 10**6, Kind("A.*")).rows
            ]
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


@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize("seed", range(STORIES))
def test_ev_21_on_postgresql(seed: int, mortal_postgres: MortalServer, tmp_path: Path) -> None:
    play(seed, mortal_postgres.database(), tmp_path, mortal_postgres.kill)

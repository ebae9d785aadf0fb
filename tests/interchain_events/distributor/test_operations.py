"""Operations: replicas that are killed and rolled under traffic, alarms that end, and logs without
secrets.
"""

import asyncio
import json
import logging
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.distributor.stage import Stage, play, played, until

from interchain_events.distributor.core import rows
from interchain_events.distributor.once import open_store
from interchain_events.distributor.service.access import hash_token
from interchain_events.distributor.service.serve import JsonLines
from interchain_events.distributor.simulation.stories import event_of

ROOT = Path(__file__).parents[3]


def test_replicas_that_are_killed_and_rolled_lose_and_double_nothing() -> None:
    """EV-31, an hour of traffic in short: two processes on one store, ended in turn by SIGKILL and
    SIGTERM.
    """
    done = subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "bench.traffic",
                "--minutes",
                "0.15",
                "--kill-every",
                "3",
                "--rate",
                "4",
            ),
            *("--how", "both"),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=420,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"[1-9]\d* accepted, [1-9]\d* processes ended", done.stdout)
    assert "lost: {'a': 0, 'b': 0, 'subscriber': 0}; doubled on a network: {'a': 0," in done.stdout


@pytest.fixture
def logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> pytest.LogCaptureFixture:
    """All that the program logs from its start, as it is written."""
    monkeypatch.setattr(caplog.handler, "formatter", JsonLines())
    caplog.set_level(logging.DEBUG, "pubsub")
    return caplog


SECRET, TOKEN = "whsec_" + "A" * 32, "bearer-" + "t" * 20
EVERYTHING = [
    {
        "name": "all",
        "sha256": hash_token(TOKEN),
        "rights": ["publish", "subscribe", "read", "admin"],
    }
]


@played(
    rules={"silence": 300, "check_after": 300, "patience": 300, "most_failures": 1},
    access={"tokens": EVERYTHING},
    call_timeout=1,
)
async def test_logs_have_no_key_secret_or_body(
    made: Stage, logged: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything that is logged goes wrong here: refusals, failures, wrong keys, a lie, a rewind, a
    defect.
    """
    how: dict[str, Any] = {"headers": {"Authorization": f"Bearer {TOKEN}"}}
    wish = {
        "eventTypes": ["*"],
        "notificationEndpoint": made.inbox_url + "?user=hidden",
        "secret": SECRET,
    }
    assert (await made.ask("POST", "/api/v2/subscribe", json=wish, **how))[0] == 201
    made.inbox.status = 500
    made.ledgers["a"].network.refuses = "because"
    for number in (1, 2):
        await made.ask(
            "POST", "/api/v2/publishEvent", json=event_of(number, number)[1].body(), **how
        )
    made.ledgers["b"].append(
        event_of(9, 9)[1]._replace(data_location="https://node.example/hidden")
    )
    await made.ask("POST", f"/internal/eventNotification/a/{'0' * 32}", json={}, **how)
    await made.ask("GET", "/api/v2/events", headers={"Authorization": "Bearer wrong-hidden"})
    made.ledgers["b"].network.cut(0)

    def broken(*_: object) -> None:
        raise RuntimeError("a defect of this test")

    with monkeypatch.context() as patch:
        patch.setattr(made.engine, "look", broken)
        assert (await made.ask("GET", f"/api/v2/publications/{event_of(1)[0]}", **how))[0] == 500
    kinds = {"dead-letter", "quarantine", "rewind"}
    await until(
        lambda: kinds <= {json.loads(line).get("kind") for line in logged.text.splitlines()}
    )
    keys = [
        rows.Hooks(*json.loads(text)).key
        for name, text in made.engine.store.rows(rows.HOOKS)
        if text != "1"
    ]
    keys += [
        rows.Interest(*json.loads(text)).key
        for _, text in made.engine.store.rows(rows.SUBSCRIPTIONS)
    ]
    assert len(keys) == 3
    for hidden in (
        SECRET,
        SECRET[6:],
        TOKEN,
        hash_token(TOKEN),
        "hidden",
        *keys,
        event_of(1)[1].data_location,
    ):
        assert hidden not in logged.text, hidden
    assert all(
        {"time", "level", "event"} <= set(json.loads(line)) for line in logged.text.splitlines()
    )


def test_a_stop_lets_what_is_under_way_end_and_stores_it(tmp_path: Path) -> None:
    """The adapter answers after the process was told to end; the next start has nothing to ask."""

    async def what(stage: Stage) -> None:
        stage.ledgers["a"].network.delay = 700
        asked = asyncio.create_task(stage.publish())
        await until(lambda: stage.engine.metrics.value("calls", network="b", outcome="yes") == 1)
        begun = time.monotonic()
        await stage.engine.stop()
        assert time.monotonic() - begun < 30
        assert stage.engine.metrics.value("calls", network="a", outcome="yes") == 1
        asked.cancel()

    play(tmp_path, what, grace=3)
    store = open_store(f"sqlite:{tmp_path / 'ied.db'}")
    assert (
        store.members(rows.published("a")) == store.members(rows.published("b")) == [event_of(1)[0]]
    )
    assert store.rows(rows.JOBS) == []
    store.close()

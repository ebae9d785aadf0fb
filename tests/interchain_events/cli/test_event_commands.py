"""`pubsub log` and `pubsub events`: what they print, and what they refuse in one line."""

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.plumbing.processes import program
from support.plumbing.snapshots import Snapshot
from support.plumbing.transcript import Transcript

from pubsub_emulator.cli.main import pubsub


def run(*arguments: str) -> str:
    result = CliRunner().invoke(pubsub, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = str(tmp_path_factory.mktemp("log") / "events.db")
    assert "block 30, seq " in run(
        "log", "follow", "node", "--log", found, "--network", "net", "--until", "30"
    )
    return found


def rows(*arguments: str) -> list[dict]:
    return [json.loads(line) for line in run("log", "read", *arguments).splitlines()]


def test_a_log_is_followed_read_and_rewound(place: str, tmp_path: Path) -> None:
    every = rows("--log", place)
    assert [row["seq"] for row in every] == list(range(1, len(every) + 1))
    assert rows("--log", place, "--after", "3", "--limit", "2") == every[3:5]
    published = rows("--log", place, "--kind", "Broadcaster.*")
    assert published == [row for row in every if row["kind"].startswith("Broadcaster.")]
    assert rows(
        "--log", place, "--chain", "2000", "--filter", '{"kind": "Subscriber.DataProcessed"}'
    ) == [
        row for row in every if row["chain"] == 2000 and row["kind"] == "Subscriber.DataProcessed"
    ]
    assert rows("--log", place, "--chain", "leading", "--limit", "1")[0]["chain"] is None
    copied = tmp_path / "copy.db"
    copied.write_bytes(Path(place).read_bytes())
    run("log", "rewind", "20", "--log", str(copied))
    assert rows("--log", str(copied)) == [row for row in every if row["anchor"] <= 20]
    assert "epoch 1" in run(
        "log", "follow", "node", "--log", str(copied), "--network", "net", "--until", "30"
    )
    assert rows("--log", str(copied)) == every


REFUSED = {
    "log read --log nowhere.db": 2,
    "log read --log events.db --kind x": 2,
    "log read --log events.db --filter {": 2,
    "log read --log events.db --chain x": 2,
    "log rewind 99 --log events.db": 2,
    "log follow node --log events.db --network other": 2,
    "log follow demo --log events.db --network net --until 3": 2,
    "log follow node --log new.db --para 2000": 2,
    "log follow ws://127.0.0.1:9 --log new.db --para x": 2,
    "log follow ws://127.0.0.1:9 --log new.db": 4,
    "events serve --log nowhere.db": 2,
}
"""Commands and their exit codes."""


def test_what_cannot_be_read_or_followed_is_refused(
    place: str, transcript: Transcript, snapshot: Snapshot
) -> None:
    (transcript.folder / "events.db").write_bytes(Path(place).read_bytes())
    for arguments, code in REFUSED.items():
        transcript.refuse(f"pubsub {arguments}", code=code)
    snapshot("refused-logs", str(transcript))


def test_a_database_that_does_not_answer_is_named() -> None:
    place = "postgresql://127.0.0.1:9/x"
    done = program("log", "follow", "node", "--log", place)
    assert done.returncode == 4
    assert done.stderr.startswith(f"pubsub: {place}: ")


def test_events_are_served_until_the_program_is_asked_to_end(place: str, tmp_path: Path) -> None:
    arguments = [
        "events",
        "serve",
        "--log",
        place,
        "--port",
        "0",
        "--deliveries",
        str(tmp_path / "deliveries"),
    ]
    server = subprocess.Popen(
        [sys.executable, "-m", "pubsub_emulator", *arguments], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    url = server.stdout.readline().split(": ")[0]
    body = json.dumps({"filters": [{"kind": "Broadcaster.*"}], "after": "start"}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/subscriptions", body, headers)  # noqa: S310
    with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
        token = json.load(answer)["token"]
    with urllib.request.urlopen(f"{url}/events?token={token}", timeout=20) as stream:  # noqa: S310
        lines = [next(line for line in stream if line.startswith(b"data: ")) for _ in range(3)]
        server.send_signal(signal.SIGINT)
        rest = stream.read().decode()
    assert server.wait(20) == 130
    assert [json.loads(line[6:])["kind"].split(".")[0] for line in lines] == ["Broadcaster"] * 3
    assert '"reason": "shutdown"' in rest
    assert list((tmp_path / "deliveries" / "event_deliveries").glob("*.parquet"))
    server.stdout.close()

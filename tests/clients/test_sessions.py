"""What clients leave behind: blocks as the observer had them, a journal done again, a history that
is audited.
"""

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.node.nodes import serving
from support.plumbing.served import Served

from pubsub_emulator.emulator.network.records import BlockRecord, Observer, RelayRecord
from pubsub_emulator.emulator.scenario.file import load_bundled
from pubsub_emulator.runtime.framework.pallet import Event

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import install  # noqa: E402  # of this folder

PATIENCE = 600
BLOCKS = 200
SUBSCRIBER = 3000
pytestmark = [pytest.mark.clients, pytest.mark.timeout(PATIENCE + 60)]


@pytest.fixture(scope="module")
def js() -> Path:
    """The folder of the JavaScript clients, with the scripts in it."""
    install.install()
    place = install.folder("js")
    for script in (HERE / "js").glob("*.mjs"):
        shutil.copy(script, place / script.name)
    return place


def _run(*command: str | Path, place: Path) -> Any:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


def test_36_a_journal_of_a_client_session_replays_to_the_same_hash(
    js: Path, tmp_path: Path
) -> None:
    journal = tmp_path / "session.jsonl"
    node = Served("--dev", "--journal", str(journal))
    try:
        heads = _run(
            install.NODE,
            "pjs_signed.mjs",
            node.url.replace("http", "ws").rstrip("/"),
            "journal",
            place=js,
        )
    finally:
        assert node.end() == 130
    lines = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    kinds = {line["action"]["kind"] for line in lines if "action" in line}
    assert {"offer", "publish", "set_storage", "travel", "rewind"} <= kinds
    again = Served("--dev", "--replay", str(journal))
    try:
        assert again.call("chain_getBlockHash") == heads[0]
        assert again.call("chain_getFinalizedHead") == heads[0]
    finally:
        assert again.end() == 130


def test_35_a_history_with_extrinsics_verifies_but_for_the_forged_ones(
    js: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    node = Served("--dev", "--out", str(out))
    try:
        _run(
            install.NODE,
            "pjs_signed.mjs",
            node.url.replace("http", "ws").rstrip("/"),
            "history",
            place=js,
        )
    finally:
        assert node.end() == 130
    [history] = [path for path in (out, out / "history") if (path / "blocks").exists()]
    command = [sys.executable, "-m", "pubsub_emulator.cli.main", "audit", str(history)]
    command += ["--engine", "python", "--json", "--out", str(tmp_path / "audit")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert '"BadExtrinsic"' in done.stdout, done.stdout[-2000:] + done.stderr[-2000:]


class Rows(Observer):
    """Blocks of the relay chain and one parachain as an observer is told of them."""

    def __init__(self) -> None:
        self.relay: list[dict[str, Any]] = []
        self.para: list[dict[str, Any]] = []

    def relay_block(self, record: RelayRecord) -> None:
        """A relay block; its extrinsics are no observer's."""
        if record.parent is not None:
            self.relay.append(
                {
                    "number": record.number,
                    "hash": f"0x{record.hash.hex()}",
                    **_events(record.events),
                }
            )

    def candidate(self, record: BlockRecord) -> None:
        """A block of the parachain."""
        if record.chain == SUBSCRIBER and record.outcome is not None:
            block = record.candidate
            row = {"number": block.header.number, "hash": f"0x{block.hash().hex()}"}
            row["extrinsics"] = [f"0x{each.hex()}" for each in block.body()]
            self.para.append(
                {**row, **_events(tuple(each.event for each in record.outcome.events))}
            )


def _events(events: tuple[Event, ...]) -> dict[str, list[str]]:
    return {
        "events": [f"0x{each.encode().hex()}" for each in events],
        "names": [f"{each.PALLET}.{type(each).__name__}" for each in events],
    }


def test_20_every_block_of_the_demonstration_is_the_observers(js: Path, tmp_path: Path) -> None:
    async def told() -> None:
        rows = Rows()
        async with serving(load_bundled("demo"), observers=lambda _: (rows,)) as node:
            await node.step(BLOCKS - node.server.live.network.number)
            bodies = {moment.number: moment.relay.body for moment in node.server.timeline.moments()}
            for row in rows.relay:
                row["extrinsics"] = [f"0x{each.hex()}" for each in bodies[row["number"]]]
            for chain, found in ((None, rows.relay), (SUBSCRIBER, rows.para)):
                file = tmp_path / f"{chain}.json"
                file.write_text(json.dumps(found), encoding="utf-8")
                url = node.urls[chain]  # type: ignore[index]  # its key is a para's id
                for client in ("pjs", "papi"):
                    command = (install.NODE, "demo.mjs", client, url, file)
                    assert (
                        (await asyncio.to_thread(_run, *command, place=js))["blocks"]
                        == len(found)
                        > BLOCKS // 2
                    )

    asyncio.run(told())

"""`pubsub serve` as a program: it says where it listens, writes a journal, ends with 130, and does
the same again.
"""

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.plumbing.processes import program
from support.plumbing.served import PATIENCE, Served
from support.plumbing.snapshots import Snapshot
from support.plumbing.transcript import normal

from pubsub_emulator.client.extrinsics import development_seed, signed_extrinsic
from pubsub_emulator.client.node import SubstrateNode
from pubsub_emulator.client.rpc import connect
from pubsub_emulator.emulator.scenario.file import BUNDLE
from pubsub_emulator.runtime.framework.calls import EncodedCall
from pubsub_emulator.session import saved
from pubsub_emulator.session.session import Session

LARGE_BLOCKS = """
from dataclasses import replace

from pubsub_emulator import rule


@rule
def runtime(spec):
    return replace(spec, max_pov_size=8 * 1024 * 1024)
"""


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    """Starts the program; whatever was started ends with the test."""
    started: list[Served] = []

    def start(*args: str) -> Served:
        started.append(Served(*args))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait(PATIENCE)
        if each.process.stdout is not None:
            each.process.stdout.close()


def test_a_session_is_recorded_ends_with_130_and_replays_to_the_hash(
    serve: Callable[..., Served], tmp_path: Path, snapshot: Snapshot
) -> None:
    """ND-5: extrinsics apart, all inputs, a rewind among them."""
    journal, history = tmp_path / "session.jsonl", tmp_path / "out"
    first = serve("--dev", "--build", "manual", "--journal", str(journal), "--out", str(history))
    first.call("pubsub_publish", 1000, "price", "0x2a")
    first.call("dev_newBlock", {"count": 4})
    first.call("dev_setHead", 3)
    first.call("pubsub_cheat", 2000, ["omit-node"])
    first.call("dev_timeTravel", 7_000_000_000)
    best = first.call("dev_newBlock", {"count": 3})
    assert first.end() == 130
    names = {path.name for path in (history / "history" / "blocks").iterdir()}
    assert names == {"network=node", "network=node-2"}
    again = serve("--replay", str(journal))
    assert again.call("chain_getBlockHash") == best
    assert again.end() == 130
    begun = ["# --dev --journal session.jsonl", *first.said, "", "# --replay session.jsonl"]
    snapshot("serve", normal("\n".join((*begun, *again.said)), tmp_path))


def _fails(*args: str, code: int = 2) -> str:
    done = program("serve", *args)
    assert done.returncode == code, done.stderr
    (line,) = done.stderr.strip().splitlines()
    return line


def test_a_port_in_use_is_refused_before_a_journal_is_written(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        journal = tmp_path / "journal.jsonl"
        complaint = _fails("--port", str(port), "--journal", str(journal), code=4)
        assert f"port {port}: it is in use; port 0 takes any free one" in complaint
        assert not journal.exists()


def test_a_journal_is_replayed_by_the_rules_that_made_it(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    """Its scenario can run under these rules alone: no runtime fits into so small a block."""
    scenario, rules, journal = (tmp_path / name for name in ("small.toml", "large.py", "j.jsonl"))
    scenario.write_text(f"{BUNDLE.text('node')}max_pov_size = 1000\n", encoding="utf-8")
    rules.write_text(LARGE_BLOCKS, encoding="utf-8")
    assert "small.toml:17: subscribers.1.max_pov_size" in _fails(str(scenario))
    by_rules = ("--rules", str(rules))
    first = serve(str(scenario), *by_rules, "--journal", str(journal), "--dev", "--build", "manual")
    best = first.call("dev_newBlock", {"count": 2})
    assert first.end() == 130
    again = serve("--replay", str(journal), *by_rules)
    assert again.call("chain_getBlockHash") == best
    assert again.end() == 130
    refused = _fails("--replay", str(journal))
    assert "j.jsonl:1: options.rules: the journal was made by 0x" in refused
    assert "rules here are 0x (0x means the shipped rules)" in refused


def test_a_journal_that_does_not_match_stops_at_its_line(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    journal = tmp_path / "journal.jsonl"
    first = serve("--dev", "--build", "manual", "--journal", str(journal))
    first.call("dev_newBlock", {"count": 2})
    assert first.end() == 130
    lines = journal.read_text(encoding="utf-8").splitlines()
    document = json.loads(lines[-1])
    lines[-1] = json.dumps({**document, "relay": "0x" + "11" * 32})
    journal.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert f"journal.jsonl:{len(lines)}" in _fails("--port", "0", "--replay", str(journal))


def test_another_clients_signed_extrinsic_is_recorded_and_replayed(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    node = serve("--dev", "--build", "manual")
    remark = EncodedCall("System", "remark", (b"test",), b"\0\0\x10test")

    async def signed() -> bytes:
        async with connect(node.url.replace("http", "ws", 1)) as rpc:
            return await signed_extrinsic(SubstrateNode(rpc), development_seed("Bob"), remark)

    node.call("dev_newBlock", {"transactions": [f"0x{asyncio.run(signed()).hex()}"]})
    path, made = tmp_path / "session.json", list[Session]()
    path.write_text(json.dumps(node.call("pubsub_session")), encoding="utf-8")
    assert '"kind":"offer"' in json.loads(path.read_text(encoding="utf-8"))["commands"][-2]
    for _ in saved.read(path, made):
        pass
    assert f"0x{made[0].newest('relay').hex()}" == node.call("chain_getBlockHash")

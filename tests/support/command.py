"""Runs a command of `pubsub` in the process of the tests."""

import sys

import pytest
from click.testing import CliRunner, Result

from pubsub_emulator.cli.main import main
from pubsub_emulator.cli.main import pubsub as program
from pubsub_emulator.cli.screen.pages import Grid, Line
from pubsub_emulator.cli.session import Session

TINY = """
name = "tiny"
seed = "tiny"
relay_blocks = 8
segment_length = 4

[[publishers]]
paras = [1000]
keys = 4
update_rate = 0.5

[[subscribers]]
para = 3000
subscribe = [{ publishers = "all" }]

[[subscribers.collators]]
strategies = ["omit-node"]
"""
"""A scenario of one publisher, and a subscriber whose only collator cheats."""


LINES = (
    "publish 1000 DOT/USD 7.42 100",
    "publish 1000 big 0x" + "00" * 3000,
    "subscribe 2000 1000 DOT/USD",
    "subscribe 2000 1000 X/Y",
    "subscriptions",
    "status",
    "step 4",
    "status",
    "headers",
    "headers 2000",
    "events",
    "events relay 3",
    "events 2000",
    "deliveries",
    "deliveries 2000 2",
    "subscriptions 2000",
    "child",
    "child 1000",
    "child 1000 DOT/USD",
    "publishers",
    "save a",
    "cheat 2000 omit-node",
    "collators",
    "publish 1000 DOT/USD 7.43 100",
    "dry-run 2",
    "until verdict",
    "to 12",
    "verdicts",
    "verdicts 1000",
    "candidates 2000 7",
    "ledger 2000",
    "ledger 2000 4",
    "storage relay",
    "storage 2000",
    "storage relay broadcaster::publishedkeys 1000",
    "storage relay 0x3a6368696c645f73746f726167653a64656661756c743a707562737562e8030000",
    "# only a comment",
    "storage relay Broadcaster.PublishedKeys",
    "storage 2000 ProcessedRoots",
    "cache 2000",
    "cache 2000 1000",
    "cursor",
    "honest 2000",
    "order 2000 redeliver 1000",
    "until delivery 2000",
    "unsubscribe 2000 1000 X/Y",
    "runtime 2000 max_cache_bytes 5000000",
    "runtime 2000",
    "step 2",
    "runtime 2000",
    "delete 1000 1000/0",
    "until removal any 9",
    "delete 1000 1000/0",
    "step",
    "until event NewHeadNoted 9",
    "set relay Babe.EpochIndex 12",
    "set 2000 0x1234 0x00ff",
    "step 2",
    "storage relay Babe.EpochIndex",
    "storage 2000 0x1234",
    "save b",
    "branch other a",
    "publish 1000 elsewhere 1",
    "step 3",
    "snapshots",
    "diff a",
    "diff main other relay",
    "diff main now 2000 Subscriber.ProcessedRoots",
    "switch main",
    "restore a",
    "step",
    "restore b",
    "forget a",
    "head 9",
    "step 2",
    "headers relay",
    "strategies",
    "help",
    "help publish",
    "call pubsub_collators 2000",
    "call chain_getBlockHash 5",
    "call system_chain",
)
"""What may be said in a session over the scenario `node`, each command of it."""


def told(session: Session, *lines: str) -> str:
    """All that the lines of a session showed, as text."""
    out: list[str] = []
    for page in (page for line in lines for page in session.execute(line)):
        if isinstance(page, Line):
            out.append(page.text)
        elif isinstance(page, Grid):
            out += [page.title, " | ".join(page.header), *(" | ".join(map(str, row)) for row in page.rows)]
    return "\n".join(out)


def pubsub(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """Run a command in this process and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["pubsub", *map(str, arguments)])
    try:
        main()
    except SystemExit as leaving:
        return int(leaving.code or 0)
    return 0


def invoked(*arguments: object) -> Result:
    """What came of a command without the handling of its errors."""
    return CliRunner().invoke(program, [str(each) for each in arguments])

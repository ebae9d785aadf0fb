"""A journal is read whole, line by line, or refused with its place; the line that a power cut left
half is left out.
"""

import io
import json
import os
from types import SimpleNamespace
from typing import Any

import pytest
from support.node.nodes import Client, served

from pubsub_emulator.emulator.network.actions import LAST_SLOT, action_adapter
from pubsub_emulator.emulator.scenario.check import MOST_KEYS
from pubsub_emulator.emulator.scenario.file import load_bundled
from pubsub_emulator.files.settings import SettingsError
from pubsub_emulator.node.chain.journal import BadJournal, JournalHead, read_journal
from pubsub_emulator.node.chain.journal_file import JournalFile
from pubsub_emulator.runtime.rules import Rules

HEAD = JournalHead(load_bundled("node"), 1_000_000).line()
OTHERS = Rules(digest=b"33")
STEP = json.dumps({"step": 1, "relay": "0x" + "11" * 32})
ACTION = json.dumps({"action": {"kind": "turn", "para": 2000}})


def test_a_truncated_last_line_is_ignored_wherever_it_was_cut() -> None:
    whole = "".join(f"{line}\n" for line in (HEAD, STEP, ACTION, STEP)).encode()
    complete = read_journal(whole, "j")
    assert (len(complete.entries), complete.cut) == (2, False)
    for end in range(len(HEAD) + 1, len(whole)):
        found = read_journal(whole[:end], "j")
        assert found.entries == complete.entries[: len(found.entries)]
        assert found.cut is (whole[end - 1 : end] != b"\n")
    for end in range(len(HEAD)):
        with pytest.raises(BadJournal, match="the first line was cut"):
            read_journal(whole[:end], "j")


@pytest.mark.parametrize(
    "slot",
    [
        "a",
        1.5,
        None,
        True,
        [],
        {},
        -1,
        LAST_SLOT + 1,
    ],
)
def test_a_genesis_slot_is_a_slot(slot: Any) -> None:
    document = json.loads(HEAD)
    document["options"]["genesisSlot"] = slot
    with pytest.raises(BadJournal, match=r"j:1: options\.genesisSlot"):
        read_journal(json.dumps(document).encode() + b"\n", "j")


def test_a_scenario_that_cannot_run_is_refused_with_its_field() -> None:
    """As in a file, or a few bytes could take much memory."""
    document = json.loads(HEAD)
    document["scenario"]["publishers"][0]["keys"] = MOST_KEYS + 1
    with pytest.raises(SettingsError, match=r"j:1: publishers\.1\.keys: 1,000,001 keys"):
        read_journal(json.dumps(document).encode() + b"\n", "j")


def test_a_journal_was_made_by_the_rules_that_are_given() -> None:
    document = json.loads(HEAD)
    assert document["options"]["rules"] == "0x"
    data = json.dumps(document).encode() + b"\n"
    with pytest.raises(BadJournal, match=r"j:1: options\.rules: .* made by 0x, .* are 0x3333"):
        read_journal(data, "j", OTHERS)
    document["options"]["rules"] = "0x3333"
    data = json.dumps(document).encode() + b"\n"
    assert read_journal(data, "j", OTHERS).head.line().encode() + b"\n" == _compact(document)
    with pytest.raises(BadJournal, match=r"made by 0x3333, and the rules here are 0x \(0x means"):
        read_journal(data, "j")
    del document["options"]["rules"]  # as earlier versions wrote it
    data = json.dumps(document).encode() + b"\n"
    assert read_journal(data, "j").head.rules == b""
    assert read_journal(data, "j", OTHERS).head.rules == OTHERS.digest


def _compact(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


@pytest.mark.parametrize("name", ["scenario", "options"])
@pytest.mark.parametrize(
    "value",
    [
        None,
        7,
        "a",
        [],
    ],
)
def test_a_head_has_scenario_and_options(name: str, value: Any) -> None:
    document = {**json.loads(HEAD), name: value}
    with pytest.raises(BadJournal, match="j:1: scenario and options are missing"):
        read_journal(json.dumps(document).encode() + b"\n", "j")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100, "nest deeper"),
        (b"7", "neither an action nor a step"),
        (b'{"step": true, "relay": "0x"}', "neither an action nor a step"),
        (b'{"step": 1, "relay": "0xzz"}', "is not a hash"),
        (b'{"action": {"kind": "turn", "para": "2000"}}', "not an action"),
    ],
)
def test_a_line_that_is_none_is_named(line: bytes, words: str) -> None:
    with pytest.raises(BadJournal, match=f"j:2: .*{words}"):
        read_journal(HEAD.encode() + b"\n" + line + b"\n", "j")


@served()
async def test_time_does_not_travel_to_where_no_block_can_follow(client: Client) -> None:
    for date in (2**64 - 1, 2**64 - 6001, (LAST_SLOT + 1) * 6000):
        await client.refused(r"1: a slot is at most", "dev_timeTravel", date)
    assert await client.call("dev_timeTravel", LAST_SLOT * 6000) == LAST_SLOT * 6000
    for _ in range(3):
        await client.call("dev_newBlock")


class Disk(io.StringIO):
    """A file whose bytes are on the disk once they were synced; `images` are what a power cut may
    leave.
    """

    def __init__(self) -> None:
        super().__init__()
        self.synced = 0
        self.acknowledged = 0
        self.images: list[tuple[int, int, int]] = []
        """Stops: bytes that are surely there, bytes that were written, steps that were
        acknowledged.
        """

    def fileno(self) -> int:
        return 77

    def write(self, text: str) -> int:
        count = super().write(text)
        self.images.append((self.synced, self.tell(), self.acknowledged))
        return count


def test_a_power_cut_loses_no_step_that_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 and more stops: after each write, with every length of what was not synced, and after
    each sync.
    """
    disk = Disk()

    def sync(handle: int) -> None:
        assert handle == disk.fileno()
        disk.synced = disk.tell()

    monkeypatch.setattr(os, "fsync", sync)
    writer = JournalFile(disk)
    disk.write(HEAD + "\n")
    sync(disk.fileno())
    turn = action_adapter.validate_python({"kind": "turn", "para": 2000})
    for number in range(1, 11):
        writer.action(turn)
        writer.step(SimpleNamespace(number=number, relay=SimpleNamespace(hash=bytes(32))))  # type: ignore[arg-type]  # a step
        disk.acknowledged = number
        disk.images.append((disk.synced, disk.tell(), number))
    whole = disk.getvalue().encode()
    stops = 0
    for synced, written, acknowledged in disk.images:
        for end in range(max(synced, len(HEAD) + 1), max(written, len(HEAD) + 1) + 1):
            assert len(read_journal(whole[:end], "j").entries) >= acknowledged
            stops += 1
    assert stops >= 1_000

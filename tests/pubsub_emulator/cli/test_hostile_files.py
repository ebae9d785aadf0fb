"""Files that a stranger made: one line and exit code 2, never a traceback, a written file or the
code of a finding.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.plumbing.command import TINY, pubsub
from support.plumbing.snapshots import Snapshot
from support.plumbing.transcript import Transcript

from pubsub_emulator.cli import main as program
from pubsub_emulator.cli.commands.evidence.run import _shown
from pubsub_emulator.cli.exits import DEFECT, USAGE
from pubsub_emulator.emulator.scenario.file import load_bundled, parse_scenario
from pubsub_emulator.files.settings import SettingsError
from pubsub_emulator.files.untrusted import (
    MOST_DEPTH,
    Unreadable,
    parse_json,
    parse_toml,
    read_bytes,
)
from pubsub_emulator.laboratory.cases import BadCase, Case, read_case
from pubsub_emulator.laboratory.fixture_set import fixtures_of_case
from pubsub_emulator.session import Session
from pubsub_emulator.session.command import CommandError
from pubsub_emulator.session.saved import read
from pubsub_emulator.spark_audit.judge.evidence import Judgement

ROOT = Path(__file__).resolve().parents[3]
CORPUS = ROOT / "pubsub_emulator" / "laboratory" / "corpus"
DEEP = "[" * 100_000


@pytest.fixture
def refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Run a command that must end with one line and exit code 2; returns the line."""

    def run(*arguments: object) -> str:
        code = pubsub(monkeypatch, *arguments)
        told = capsys.readouterr().err.strip().splitlines()
        assert (code, len(told)) == (USAGE, 1), told
        return told[0]

    return run


@pytest.mark.parametrize(
    "command", ["replay", "open-proof", "inspect", "evidence", "step", "import-relay-proofs"]
)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(DEEP, id="deep lists"),
        pytest.param("", id="nothing"),
        pytest.param("null", id="null"),
        pytest.param("[]", id="a list"),
        pytest.param("{}", id="an empty object"),
        pytest.param('{"a": ' * 50_000, id="deep objects"),
        pytest.param("1" * 5000, id="a large number"),
        pytest.param("NaN", id="NaN"),
        pytest.param('"\ud800"', id="half a surrogate pair"),
        pytest.param("\x00", id="a zero byte"),
        pytest.param('{"format": 1}', id="another format"),
    ],
)
def test_no_json_however_odd_is_a_traceback(
    tmp_path: Path, refused: Callable[..., str], command: str, text: str
) -> None:
    path = tmp_path / "theirs.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    more = ("--out", tmp_path / "out") if command == "import-relay-proofs" else ()
    assert str(path) in refused(command, path, *more)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param(f"a = {'[' * 20_000}{']' * 20_000}", "nest deeper than 64", id="deep lists"),
        pytest.param(
            f"a = {'{a=' * 20_000}1{'}' * 20_000}", "nest deeper than 64", id="deep tables"
        ),
        pytest.param(f"seed = {'9' * 10_000}", "not TOML", id="a large number"),
        pytest.param("a = \x00", "theirs.toml", id="a zero byte"),
        pytest.param("#" * 2_000_000, "longer than 1,048,576 bytes", id="a long file"),
    ],
)
def test_no_toml_however_odd_is_a_traceback(
    tmp_path: Path, refused: Callable[..., str], text: str, complaint: str
) -> None:
    path = tmp_path / "theirs.toml"
    path.write_text(text)
    assert complaint in refused("run", path, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        pytest.param(
            "keys = 4",
            "keys = 4294967295",
            "publishers.1.keys: 4,294,967,295 keys up to here",
            id="keys",
        ),
        pytest.param(
            "paras = [1000]",
            f"paras = {list(range(1, 5000))}",
            "5,000 parachains",
            id="parachains",
        ),
        pytest.param(
            'publishers = "all"',
            'publishers = "all", missing_keys = 4000000000',
            "subscribers.1.subscribe: 4,000,000,004",
            id="missing keys",
        ),
        pytest.param(
            "para = 3000",
            "para = 3000\nblocks_per_relay_block = 1000000",
            "1,000,000 blocks per turn",
            id="blocks",
        ),
        pytest.param(
            "para = 3000",
            "para = 3000\n"
            "load = [{ first_block = 1, last_block = 1, downward_messages = 4000000000 }]",
            "subscribers.1.load.1.downward_messages",
            id="messages",
        ),
    ],
)
def test_no_number_of_a_short_scenario_decides_how_much_memory_is_taken(
    before: str, after: str, complaint: str
) -> None:
    assert parse_scenario(TINY, "tiny").relay_blocks == 8
    with pytest.raises(SettingsError, match=complaint):
        parse_scenario(TINY.replace(before, after), "tiny")


# Sessions


def session_file(tmp_path: Path, *lines: str) -> tuple[Path, dict[str, Any]]:
    session, path = Session.of(load_bundled("demo")), tmp_path / "theirs.json"
    for line in (*lines, f"write {path}"):
        list(session.execute(line))
    return path, json.loads(path.read_text())


@pytest.mark.parametrize(
    "line",
    [
        "write {victim}",
        "load {victim}",
        "save x",
        "quit",
        "'write' {victim}",
        "help",
        "#",
        "step 2; write x",
    ],
)
def test_reading_a_session_plays_only_what_changes_the_network(tmp_path: Path, line: str) -> None:
    path, document = session_file(tmp_path, "step 2")
    victim = tmp_path / "victim.txt"
    victim.write_text("precious")
    document["commands"].append(line.format(victim=victim))
    document["scenario"]["description"] = "$(touch pwned)"
    path.write_text(json.dumps(document))
    with pytest.raises(CommandError, match=r"commands\.2"):
        list(read(path, []))
    assert victim.read_text() == "precious"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["theirs.json", "victim.txt"]


def test_a_session_that_write_made_is_read_whatever_was_done_in_it(tmp_path: Path) -> None:
    path, document = session_file(
        tmp_path,
        "step 2",
        "publish 1000 key value",
        "step 3",
        "cheat 3000 omit-node",
        "snapshots",
        "step",
    )
    made: list[Session] = []
    list(read(path, made))
    assert made[0].network.number == document["block"] == 6


def test_a_session_goes_no_further_than_it_says(tmp_path: Path) -> None:
    path, document = session_file(tmp_path, "step 2")
    document["commands"] = ["step 1000000000"]
    path.write_text(json.dumps(document))
    with pytest.raises(CommandError, match="beyond relay block 2"):
        list(read(path, []))


def test_figures_of_a_finding_that_nest_without_end_are_shown_as_text() -> None:
    assert list(_shown({"detail": "d"}, Judgement("figures", None, DEEP, {}, ()))) == [DEEP]
    proof = json.dumps({"proof": 1, "unread": ["00"], "unplaced": 5})
    assert list(_shown({"detail": "d"}, Judgement("figures", None, proof, {}, ()))) == [
        "d",
        "unread node 0x00",
    ]


# Cases and fixtures


def changed(document: Any, place: tuple[Any, ...], value: object) -> Any:
    inner = document
    for part in place[:-1]:
        inner = inner[part]
    inner[place[-1]] = value
    return document


CASE_CHANGES: list[tuple[str, object]] = [
    ("seeds", ["0x00"]),
    ("seeds", []),
    ("seeds", 3),
    ("budget", "much"),
    ("budget", 1000),
    ("slot_now", -1),
    ("slot_now", True),
    ("relays", [[1]]),
    ("relays", [[1, "0x00"]]),
    ("root", "0x"),
    ("state", []),
    ("state", {}),
    ("state", {"0x3a6368696c645f73746f726167653a64656661756c743a00": "0x00"}),
    ("parent", "0x00"),
    ("block", "0x00"),
    ("proof", ["0xzz"]),
    ("label", 1),
    ("strategies", [1]),
    ("expected", None),
    ("shrunk", [["Stuff", 1, 10**12]]),
    ("shrunk", [["SignWith", "0x00"]]),
    ("shrunk", [["Claim", "state_root", "0x00"]]),
    ("shrunk", [["AddSender", -1]]),
    ("shrunk", [["Explode", 1]]),
    ("shrunk", [["Claim", "author", "0x00"]]),
    ("shrunk", [["Insert", True, "0x00"]]),
    ("steps", [[]]),
    ("steps", [[["Drop"], "0x"]]),
    ("steps", [[{"Drop": 1}]]),
]


def test_every_field_of_a_case_is_checked_before_it_is_used(
    transcript: Transcript, snapshot: Snapshot
) -> None:
    text = (CORPUS / "wrong-state-root.json").read_text()
    path = transcript.folder / "theirs.json"
    for field, value in CASE_CHANGES:
        path.write_text(json.dumps({**json.loads(text), field: value}))
        transcript.note(f"# {field} = {json.dumps(value)}")
        transcript.refuse("pubsub replay theirs.json")
    snapshot("bad-cases", str(transcript))


def test_a_case_whose_state_makes_no_sense_is_no_surprise() -> None:
    document = json.loads((CORPUS / "wrong-state-root.json").read_text())
    for key in document["state"]:
        for value in ("0x", "0xff", "0x" + "00" * 7):
            odd = json.loads(json.dumps(document))
            odd["state"][key] = value
            try:
                case = Case.from_json(json.dumps(odd))
                found = case.play(case.shrunk)
            except BadCase:
                continue
            assert not any(verdict.startswith("!") for verdict in found), (key, value, found)


FIXTURE_CHANGES: list[tuple[tuple[str, ...], object]] = [
    (("relay", "number"), 0),
    (("relay", "number"), 2**40),
    (("relay", "storage_root"), "0x00"),
    (("relay", "slot_now"), -1),
    (("candidate",), "0x00"),
    (("candidate",), "00"),
    (("parent_header",), "0x 00"),
    (("pre_state",), [["0x01", "0x"], ["0x00", "0x"]]),
    (("pre_state",), [["0x3a6368696c645f73746f726167653a64656661756c743a00", "0x"]]),
    (("version",), 2),
    (("chain",), "1000"),
    (("expected", "cursor"), [1]),
]


def test_every_field_of_a_fixture_is_checked_before_it_is_used(
    transcript: Transcript, snapshot: Snapshot
) -> None:
    fixture, *_ = fixtures_of_case(read_case(CORPUS / "wrong-state-root.json"))
    text = fixture.model_dump_json()
    path = transcript.folder / "theirs.json"
    for place, value in FIXTURE_CHANGES:
        path.write_text(json.dumps(changed(json.loads(text), place, value)))
        transcript.note(f"# {'.'.join(place)} = {json.dumps(value)}")
        transcript.refuse("pubsub replay theirs.json")
    snapshot("bad-fixtures", str(transcript))


# The readers themselves


def test_a_file_is_bounded_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_bytes(bytes(1001))
    assert len(read_bytes(path, 1001)) == 1001
    with pytest.raises(Unreadable, match="longer than 1,000 bytes"):
        read_bytes(path, 1000)
    with pytest.raises(Unreadable, match="longer than 1,000 bytes"):
        read_bytes(Path("/dev/zero"), 1000)
    with pytest.raises(Unreadable, match="Is a directory"):
        read_bytes(tmp_path)


@pytest.mark.parametrize("inner", ["[", '{"a":'])
def test_depth_is_counted_outside_of_strings(inner: str) -> None:
    def nested(depth: int) -> bytes:
        close = "]" if inner == "[" else "}"
        return (inner * depth + '"[[[[\\"[[[{{{"' + close * depth).encode()

    assert parse_json(nested(MOST_DEPTH), "place")
    with pytest.raises(Unreadable, match="place: lists and tables nest deeper than 64"):
        parse_json(nested(MOST_DEPTH + 1), "place")
    siblings = ("[" + ",".join(["[[]]"] * 1000) + "]").encode()
    assert len(parse_json(siblings, "place")) == 1000


def test_toml_may_hold_brackets_that_close_again() -> None:
    assert parse_toml(
        "a = '[[[' # ]]]\n" * 1 + "".join(f"[t{at}]\nb = [[1]]\n" for at in range(100))
    )
    with pytest.raises(Unreadable, match="deeper than 64 levels"):
        parse_toml("a = " + "[" * 65)


def test_a_program_error_never_exits_with_the_code_of_a_finding(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(**_options: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(program.pubsub, "main", fails)
    assert pubsub(monkeypatch, "demo") == DEFECT
    assert "a defect of this program: ZeroDivisionError: ours" in capsys.readouterr().err

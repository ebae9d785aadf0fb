"""A terminal, file or pipe in Latin-1 or ASCII gets everything that the program says, as far as its
encoding goes.
"""

import io
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from command_reference import leaves
from support.plumbing.command import TINY
from support.plumbing.processes import PATIENCE, environment

from pubsub_emulator.cli.commands.new.run import schema_text
from pubsub_emulator.cli.exits import DEFECT, FINDINGS, USAGE
from pubsub_emulator.cli.main import pubsub as program
from pubsub_emulator.cli.main import sentences_of_all
from pubsub_emulator.cli.screen import say, say_document, table
from pubsub_emulator.cli.streams import prepare_streams

NARROW: Mapping[str, Mapping[str, str]] = {
    "latin-1": {"PYTHONIOENCODING": "latin-1"},
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "C": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
}
"""Variables that give Python's standard streams an encoding which has no ellipsis."""
ENCODINGS = {"latin-1": "latin-1", "ascii": "ascii", "C": "ascii"}
"""The encoding of the streams under each of them."""


def pubsub(kind: str, *arguments: object, given: str = "") -> "subprocess.CompletedProcess[bytes]":
    """Run a command in a process of its own, whose streams have a narrow encoding."""
    ended = subprocess.run(
        [sys.executable, "-m", "pubsub_emulator", *map(str, arguments)],
        env=environment(**{"PYTHONIOENCODING": "", **NARROW[kind]}),
        input=given.encode(),
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode != DEFECT, ended.stderr.decode("latin-1")
    for output in (ended.stdout, ended.stderr):
        said = output.decode(ENCODINGS[kind])  # fails where a byte is not of the encoding
        assert "Traceback" not in said
        assert "PYTHONIOENCODING" not in said  # rich asks for it where it fails to encode
        assert not set(map(chr, range(0x80, 0xA0))) & {
            *said
        }  # UTF-8 in a Latin-1 stream has such bytes
    return ended


@pytest.mark.parametrize("kind", NARROW)
def test_commands_say_all_that_they_say_elsewhere(kind: str, tmp_path: Path) -> None:
    scenario = tmp_path / "tiny.toml"
    scenario.write_text(TINY, encoding="utf-8")
    run, audit = tmp_path / "run", tmp_path / "audit"
    ran = pubsub(kind, "run", scenario, "--out", run)
    assert ran.returncode == 0
    assert ("µs" if kind == "latin-1" else "us").encode(ENCODINGS[kind]) in ran.stdout
    audited = pubsub(kind, "audit", run / "history", "--out", audit, "--engine", "python")
    assert audited.returncode == FINDINGS
    queried = pubsub(
        kind, "sql", audit, "SELECT chr(8364) || chr(233) || chr(128512) AS text", "--json"
    )
    assert json.loads(queried.stdout)["rows"] == [["€é😀"]]
    shown = pubsub(kind, "inspect", run / "history", "--json")
    assert json.loads(shown.stdout)["kind"] == "history"
    assert json.loads(pubsub(kind, "new", "--schema").stdout.decode(ENCODINGS[kind])) == json.loads(
        schema_text()
    )


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("latin-1", "tour"),
        ("C", "tour"),
        ("ascii", "fuzz --list"),
        ("C", "new --list"),
        ("ascii", "icrc72 run demo"),
        ("C", "completion bash"),
        ("ascii", "--help"),
    ],
)
def test_commands_without_files_say_theirs(kind: str, line: str) -> None:
    assert pubsub(kind, *line.split()).returncode == 0


@pytest.mark.parametrize("kind", NARROW)
def test_a_session_reads_a_script(kind: str) -> None:
    said = pubsub(
        kind, "step", "oracle", given="help\nhelp events\nstep 3\nevents\nstatus\nstorage 2000\n"
    )
    assert said.returncode == 0, said.stderr
    assert b"[KEY...]" in said.stdout


@pytest.mark.parametrize("kind", ["ascii", "C"])
def test_a_script_with_bytes_that_are_not_text_is_refused_by_line(kind: str) -> None:
    refused = pubsub(kind, "step", "oracle", given="step\npublish 1000 café 1\n")
    assert refused.returncode == USAGE
    assert b"standard input:2: the line has bytes outside of the input's encoding" in refused.stderr


def test_a_query_with_bytes_that_are_not_text_is_refused(tmp_path: Path) -> None:
    refused = pubsub("C", "sql", tmp_path, "SELECT 'é'")
    assert refused.returncode == USAGE
    assert b"the query has bytes that are not text" in refused.stderr


class Stream:
    """Standard output in an encoding, prepared as the program prepares it, and what was written to
    it.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
        self._encoding = encoding
        self._bytes = io.BytesIO()
        monkeypatch.setattr(
            sys, "stdout", io.TextIOWrapper(self._bytes, encoding=encoding, write_through=True)
        )
        prepare_streams()

    def text(self) -> str:
        """All that was written so far."""
        return self._bytes.getvalue().decode(self._encoding)


@pytest.mark.parametrize(
    "command", sorted({"", *sentences_of_all(), *(name for name, _, _ in leaves())})
)
def test_every_help_can_be_printed_in_ascii(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Help is printed by click, which writes UTF-8 to a stream that calls itself ASCII."""
    stream = Stream(monkeypatch, "ascii")
    program.main([*command.split(), "--help"], prog_name="pubsub", standalone_mode=False)
    assert stream.text().startswith("Usage: pubsub")


TEXT = "0x12…ab → µ é € 😀 \udcff"


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("utf-8", "0x12…ab → µ é € 😀 \\udcff"),
        ("latin-1", "0x12...ab -> µ é \\u20ac \\ud83d\\ude00 \\udcff"),
        ("ascii", "0x12...ab -> u \\u00e9 \\u20ac \\ud83d\\ude00 \\udcff"),
        ("ansi_x3.4-1968", "0x12...ab -> u \\u00e9 \\u20ac \\ud83d\\ude00 \\udcff"),
    ],
    ids=lambda value: value if value.isascii() and " " not in value else "",
)
def test_prose_has_ascii_for_typography_and_escapes_the_rest(
    monkeypatch: pytest.MonkeyPatch, encoding: str, shown: str
) -> None:
    stream = Stream(monkeypatch, encoding)
    say(TEXT)
    sys.stdout.write(TEXT + "\n")
    assert stream.text().splitlines() == [shown, shown]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_a_document_is_the_same_json_in_every_encoding(
    monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    stream = Stream(monkeypatch, encoding)
    document = {"…→µé€😀": "0x12…ab → µ é € 😀"}
    say_document(json.dumps(document, ensure_ascii=False))
    assert json.loads(stream.text()) == document


def test_columns_are_as_wide_as_their_escaped_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream(monkeypatch, "ascii")
    table("", ("key", "note"), [("é…", "a"), ("plain", "b"), ("ab" * 60, "c" * 60)])
    head, first, second, third, *_ = stream.text().splitlines()
    assert first.startswith("\\u00e9...  ")
    assert {first.index("  a") + 2, second.index("  b") + 2, third.index("  c") + 2} == {
        head.index("note")
    }
    assert "abababab...abababab" in third


def test_a_stream_in_memory_and_none_at_all_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = io.StringIO()
    monkeypatch.setattr(sys, "stdout", memory)
    monkeypatch.setattr(sys, "stderr", None)
    monkeypatch.setattr(sys, "stdin", None)
    prepare_streams()
    say_document("é")
    assert memory.getvalue() == "é\n"

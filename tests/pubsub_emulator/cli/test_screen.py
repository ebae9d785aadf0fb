"""Tables never break a word, whatever the width of the screen; a bar and what a command prints
share one terminal.
"""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pubsub_emulator.cli import screen
from pubsub_emulator.cli.screen import Spoken, tables

WORDS = (
    "omit-child-root-path",
    "OmittedBelowBudget",
    "1,234,567",
    "0x" + "ab" * 20,
    "a few plain words",
)
HEADER = ("strategy", "verdict", "bytes", "hash", "why it is so")


def _shown(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    width: int,
    names_rows: int = 1,
) -> str:
    monkeypatch.setattr(tables, "PLAIN_WIDTH", width)
    screen.table("a title that is quite long in itself", HEADER, [WORDS, WORDS], names_rows)
    return capsys.readouterr().out


@pytest.mark.parametrize("width", [66, 80, 100, 140])
def test_no_word_is_broken_and_no_line_is_too_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    shown = _shown(capsys, monkeypatch, width)
    words = set(shown.split())
    assert {
        word for cell in (*WORDS, *HEADER) for word in cell.split() if not word.startswith("0x")
    } <= words
    assert max(map(len, shown.splitlines()[1:])) <= width


def test_a_table_is_never_cut_in_two(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for width in (160, 100, 80, 60, 50):
        shown = _shown(capsys, monkeypatch, width)
        assert shown.count(WORDS[0]) == 2, f"at {width} columns"
        assert shown.count(WORDS[1]) == 2


def test_hashes_are_shortened_in_their_middle_where_they_do_not_fit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert WORDS[3] in _shown(capsys, monkeypatch, 120)
    assert "0x" + "ab" * 4 + "…" + "ab" * 4 in _shown(capsys, monkeypatch, 90)


def test_hashes_without_0x_are_shortened_too_and_no_verdict_is_broken(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "PLAIN_WIDTH", 80)
    header = ("relay block", "parachain", "block", "verdict", "strategy", "why")
    why = f"the proof lacks the relay parent's root node {'ab' * 32}"
    screen.table("", header, [(6, "2000", 6, "OmittedBelowBudget", "omit-node,stale-root", why)])
    shown = capsys.readouterr().out
    assert "abab…abab" in shown
    assert {"OmittedBelowBudget", "omit-node,stale-root"} <= set(shown.split())
    assert max(map(len, shown.splitlines())) <= 80


def test_columns_that_do_not_fit_beside_each_other_become_rows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "PLAIN_WIDTH", 40)
    header = ("chain", *(f"measure-{letter}" for letter in "abcdef"))
    screen.table("", header, [("3000", *("1.0 MiB",) * 6), ("3001", *("20.5 KiB",) * 6)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["chain", "3000", "3001"]
    assert [line.split()[0] for line in lines[1:7]] == list(header[1:])


def test_a_figure_and_its_unit_stay_on_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for width in range(24, 80, 4):
        monkeypatch.setattr(tables, "PLAIN_WIDTH", width)
        screen.table(
            "", ("chain", "a longer heading", "another one", "third"), [("3000", *("1.0 MiB",) * 3)]
        )
        assert capsys.readouterr().out.count("1.0 MiB") == 3, f"at {width} columns"


def test_figures_stand_on_the_right_and_words_on_the_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "PLAIN_WIDTH", 60)
    screen.table("", ("name", "count", "word"), [("a", 1, "x"), ("b", 10_000, "yy")])
    lines = capsys.readouterr().out.splitlines()
    assert re.match(r"a +1  x", lines[1])
    assert re.match(r"b +10,000  yy", lines[2])
    assert lines[1].index("1") == lines[2].index("0,000") + 4


SCRIPT = """
from pubsub_emulator.files.pages import Doing, Line
from pubsub_emulator.cli.screen import bar, show

with bar() as advance:
    for at in range(1, 4):
        advance(at, 3, "stepping")
        advance.clear()
        show(Line(f"relay block {at}: done"))
"""


def test_no_line_of_a_command_is_written_into_the_bar(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    done = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80", "NO_COLOR": "1"},
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        seen += part
    os.close(ours)
    assert done.wait(30) == 0
    assert b"stepping" in seen
    lines = [line for line in seen.replace(b"\r\n", b"\n").split(b"\n") if b"relay block" in line]
    assert len(lines) == 3
    for line in lines:
        # Before the text stands nothing but what moves the cursor and clears the line of the bar.
        text = line.rsplit(b"\x1b[2K", 1)[-1].replace(b"\x1b[?25h", b"").replace(b"\r", b"")
        assert text.startswith(b"relay block "), line


def test_without_a_terminal_progress_is_printed_every_ten_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Progress with the time left on everything that takes longer."""
    now = [0.0]
    advance = Spoken(lambda: now[0])
    advance(0, 100, "auditing: starting the engine")
    for second in range(1, 61):
        now[0] = second
        advance(
            max(second - 8, 0),
            100,
            "auditing: units of work, 1.0 a second" if second > 8 else "auditing: starting",
        )
    assert capsys.readouterr().err.splitlines() == [
        "auditing: units of work, 1.0 a second: 2 of 100, about 1 min 38 s left",
        "auditing: units of work, 1.0 a second: 12 of 100, about 1 min 28 s left",
        "auditing: units of work, 1.0 a second: 22 of 100, about 1 min 18 s left",
        "auditing: units of work, 1.0 a second: 32 of 100, about 1 min 8 s left",
        "auditing: units of work, 1.0 a second: 42 of 100, about 58 s left",
        "auditing: units of work, 1.0 a second: 52 of 100, about 48 s left",
    ]


def test_a_unit_that_takes_long_is_told_of_without_being_called(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A Spark that starts, one long segment: nobody advances, and a person still hears of it."""
    now = [0.0]
    advance = Spoken(lambda: now[0], title="drawing the report")
    now[0] = 12
    advance.beat()
    advance(0, 1, "auditing: units of work")
    for second, share in ((15, 0.015), (25, 0.25), (35, 0.25), (45, 1)):
        now[0] = second
        advance(share, 1, "auditing: units of work")
        advance.beat()
    now[0] = 60
    advance.beat()
    assert capsys.readouterr().err.splitlines() == [
        "drawing the report: 12 s so far",
        "auditing: units of work: 0.25 of 1, about 39 s left",
        "auditing: units of work: 0.25 of 1, about 1 min 9 s left",
        "auditing: units of work: 1 of 1, 33 s so far",
    ]

"""Tables never break a word, whatever the width of the screen."""

import re

import pytest

from pubsub_emulator.cli import screen
from pubsub_emulator.cli.screen import tables

WORDS = ("omit-child-root-path", "OmittedBelowBudget", "1,234,567", "0x" + "ab" * 20, "a few plain words")
HEADER = ("strategy", "verdict", "bytes", "hash", "why it is so")


def _shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int, names_rows: int = 1) -> str:
    monkeypatch.setattr(tables, "PLAIN_WIDTH", width)
    screen.table("a title that is quite long in itself", HEADER, [WORDS, WORDS], names_rows)
    return capsys.readouterr().out


@pytest.mark.parametrize("width", [66, 80, 100, 140])
def test_no_word_is_broken_and_no_line_is_too_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    shown = _shown(capsys, monkeypatch, width)
    words = set(shown.split())
    assert {word for cell in (*WORDS, *HEADER) for word in cell.split() if not word.startswith("0x")} <= words
    assert max(map(len, shown.splitlines()[1:])) <= width


def test_a_table_is_never_cut_in_two(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
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
        screen.table("", ("chain", "a longer heading", "another one", "third"), [("3000", *("1.0 MiB",) * 3)])
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

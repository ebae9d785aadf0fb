"""Tables never break a word, whatever the width of the screen."""

import re

import pytest

from pubsub_emulator.cli import screen

WORDS = ("omit-child-root-path", "OmittedBelowBudget", "1,234,567", "0x" + "ab" * 20, "a few plain words")
HEADER = ("strategy", "verdict", "bytes", "hash", "why it is so")


def _shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int, names_rows: int = 1) -> str:
    monkeypatch.setattr(screen, "PLAIN_WIDTH", width)
    screen.table("a title that is quite long in itself", HEADER, [WORDS, WORDS], names_rows)
    return capsys.readouterr().out


@pytest.mark.parametrize("width", [66, 80, 100, 140])
def test_no_word_is_broken_and_no_line_is_too_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    shown = _shown(capsys, monkeypatch, width)
    words = set(shown.split())
    assert {word for cell in (*WORDS, *HEADER) for word in cell.split()} <= words
    assert max(map(len, shown.splitlines()[1:])) <= width


def test_a_table_that_is_too_wide_goes_on_below_with_the_columns_that_name_its_rows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    once = _shown(capsys, monkeypatch, 160)
    assert once.count(WORDS[0]) == 2
    twice = _shown(capsys, monkeypatch, 80)
    assert twice.count(WORDS[0]) > 2
    both = _shown(capsys, monkeypatch, 90, names_rows=2)
    assert both.count(WORDS[1]) == both.count(WORDS[0]) > 2


def test_figures_stand_on_the_right_and_words_on_the_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen, "PLAIN_WIDTH", 60)
    screen.table("", ("name", "count", "word"), [("a", 1, "x"), ("b", 10_000, "yy")])
    lines = capsys.readouterr().out.splitlines()
    assert re.match(r"a +1  x", lines[1])
    assert re.match(r"b +10,000  yy", lines[2])
    assert lines[1].index("1") == lines[2].index("0,000") + 4

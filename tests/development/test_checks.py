"""The checks of `dev.py lint` that are not those of a linter."""

import ast
from pathlib import Path

import pytest

from development import commits, sentences, statements


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        pytest.param("a, b = f(), 2", ["several values"], id="a call among values"),
        pytest.param("a, b = 1 if c else 2, 3", ["several values"], id="a condition among values"),
        pytest.param("a, b = b, a", [], id="an exchange"),
        pytest.param("a, b = f()", [], id="one result is unpacked"),
        pytest.param("[x for y in z for x in y]", ["two loops"], id="two loops"),
        pytest.param("[[x for x in y] for y in z]", [], id="a comprehension within another"),
        pytest.param("1 if a else 2 if b else 3", ["within another"], id="a condition in another"),
        pytest.param("f(1 if a else 2, 1 if b else 2)", [], id="two conditions"),
    ],
)
def test_a_statement_does_one_thing(source: str, kinds: list[str]) -> None:
    found = list(statements.places(ast.parse(source)))
    assert len(found) == len(kinds)
    assert all(kind in what for kind, (_, what) in zip(kinds, found, strict=True))


def test_each_place_is_named_and_fails_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "development").mkdir()
    monkeypatch.setattr(statements, "ROOT", tmp_path)
    assert statements.check() == 0
    (tmp_path / "development" / "old.py").write_text("a = 1\na, b = f(), 2\n")
    assert statements.check() == 1
    assert "development/old.py:2: several values" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "count"),
    [
        pytest.param("test_a_row_is_read", 4, id="plain words"),
        pytest.param("test_ps52_a_row", 2, id="a rule first"),
        pytest.param("test_a_row_ps52", 2, id="a rule last"),
        pytest.param("test_id_34_a_row", 2, id="a rule in two parts"),
        pytest.param("test_an_id_of_a_row", 5, id="a rule's letters without a number"),
        pytest.param("test_scenarios_27_33_a_row_of_32_bytes", 5, id="numbers"),
        pytest.param("test_a_row_s_place", 3, id="a genitive"),
        pytest.param("test_a__row_", 2, id="empty parts"),
    ],
)
def test_rules_and_numbers_are_not_words_of_a_name(name: str, count: int) -> None:
    assert len(sentences.words(name)) == count


def test_a_name_has_at_most_twelve_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sentences, "ROOT", tmp_path)
    path = tmp_path / "tests" / "room" / "test_rows.py"
    path.parent.mkdir(parents=True)
    twelve = "_".join(["test", *["word"] * 12])
    path.write_text(f"def {twelve}():\n    ...\n\n\ndef helper_{twelve}_word():\n    ...\n")
    assert sentences.check() == 0
    path.write_text(f"class TestRows:\n    async def {twelve}_word(self):\n        ...\n")
    assert sentences.check() == 1
    assert f"tests/room/test_rows.py:2: the name of {twelve}_word has" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        pytest.param("trie: nodes are read\n\nBecause.", None, id="good"),
        pytest.param("trie: nodes are read", "body", id="no body"),
        pytest.param("trie: one; two\n\nBecause.", "semicolon", id="two changes"),
        pytest.param("nodes are read\n\nBecause.", "room", id="no room"),
        pytest.param(f"trie: {'x' * 67}\n\nBecause.", "73 characters", id="too long"),
        pytest.param(f"trie: {'x' * 66}\n\nBecause.", None, id="just short enough"),
    ],
)
def test_a_commit_message_has_a_room_one_change_and_a_reason(
    message: str, fault: str | None
) -> None:
    faults = commits.faults_of_message(message)
    assert len(faults) == (fault is not None)
    assert fault is None or fault in faults[0]


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("sizes.new.md", "Sizes are shown.", None),
        ("README.md", "", None),
        ("sizes.md", "Sizes are shown.", "not NAME"),
        ("sizes.fixed.md", "Sizes are shown.", "not NAME"),
        ("sizes.new.md", " \n", "empty"),
        ("data/sizes.new.md", "Sizes are shown.", None),
        ("data/sizes.md", "Sizes are shown.", "not NAME"),
        ("cooks/sizes.new.md", "Sizes are shown.", "no reader; there are data, prism"),
    ],
)
def test_a_fragment_has_a_reader_a_kind_and_a_text(
    name: str, text: str, fault: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sections = "".join(
        f'[[tool.towncrier.section]]\npath = "{path}"\n' for path in ("", "data", "prism")
    )
    (tmp_path / "pyproject.toml").write_text(sections)
    fragment = tmp_path / "changes" / name
    fragment.parent.mkdir(parents=True)
    fragment.write_text(text)
    monkeypatch.setattr(commits, "ROOT", tmp_path)
    faults = commits.fragment_faults()
    assert len(faults) == (fault is not None)
    assert fault is None or fault in faults[0]

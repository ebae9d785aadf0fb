"""`docs/made.py PAGE` prints a page with the parts that code writes, in a terminal of any
encoding.
"""

import pytest
from support.plumbing.pages import ROOT
from support.plumbing.processes import python

PROGRAM = ROOT / "docs" / "made.py"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("clii", "did you mean cli?"),
        ("scenarios.md", "did you mean scenarios"),
        ("../README", "`ls docs` shows all"),
    ],
)
def test_an_unknown_page_is_reported_in_one_line_with_exit_code_2(name: str, hint: str) -> None:
    ended = python(PROGRAM, "glossary", name)
    assert (ended.returncode, ended.stdout) == (2, "")
    [line] = ended.stderr.splitlines()
    assert line.startswith(f"made.py: there is no page '{name}'; ")
    assert hint in line


def test_a_page_is_printed_even_in_ascii() -> None:
    printed = python(PROGRAM, "scenarios", "decisions/index", PYTHONIOENCODING="ascii")
    assert (printed.returncode, printed.stderr) == (0, "")
    assert printed.stdout.isascii()
    assert printed.stdout.startswith("# ")
    assert "](made.py)" not in printed.stdout
    assert "# Decisions" in printed.stdout

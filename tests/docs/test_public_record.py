"""The public record of the Rust attempt is answered: each of its scenarios and defects is named by
a test of ours.

A test names a row in its name (`test_a31_…`, `test_c9_c10_c11_…`, `test_defect_37_…`) or in its
docstring or comments (`A31`, `C9`, `Defect 37`). Entries 41 and 42 are about documents and are
answered in docs/protocol.md.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BROADCASTER = [f"A{n}" for n in range(1, 57)]
XCM = [f"C{n}" for n in range(1, 21)]
RELAY_DEFECTS = [f"defect {n}" for n in range(24, 41)]


def _named_in(test: str) -> set[str]:
    """The rows that a test's text names."""
    rows = {
        letter + number
        for letter, number in re.findall(r"(?<![A-Za-z0-9])([AC])([1-9]\d?)(?!\d)", test)
    }
    rows |= {
        letter.upper() + number for letter, number in re.findall(r"_([ac])([1-9]\d?)(?=_)", test)
    }
    for numbers in re.findall(r"[Dd]efects?[ _]((?:\d+(?:, | and |_and_|_)?)+)", test):
        rows |= {f"defect {number}" for number in re.findall(r"\d+", numbers)}
    return rows


@cache
def record() -> dict[str, list[str]]:
    """Every row that is named, with the tests that name it."""
    named: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if path.name == Path(__file__).name:
            continue
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef) and "RuleBasedStateMachine" in map(
                ast.unparse, node.bases
            ):
                for row in _named_in(ast.get_docstring(node) or ""):
                    named.setdefault(row, []).append(f"{path.relative_to(ROOT)}::{node.name}")
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                for row in sorted(_named_in("\n".join(lines[first - 1 : node.end_lineno]))):
                    named.setdefault(row, []).append(f"{path.relative_to(ROOT)}::{node.name}")
    return named


@pytest.mark.parametrize(
    "rows", [BROADCASTER, XCM, RELAY_DEFECTS], ids=["A1-A56", "C1-C20", "24-40"]
)
def test_every_row_is_named_by_a_test(rows: list[str]) -> None:
    assert [row for row in rows if row not in record()] == []


def test_rows_are_read_as_tests_write_them() -> None:
    assert _named_in("def test_a18_a51_only_the_manager() -> None:") == {"A18", "A51"}
    assert _named_in('"""C9, C10, C11, PS-22: …"""') == {"C9", "C10", "C11"}
    assert _named_in("def test_defect_37_a_message_is_not_atomic() -> None:") == {"defect 37"}
    assert _named_in('"""Defects 38 and 39, PS-21."""') == {"defect 38", "defect 39"}
    assert _named_in("ABC12 xA3 PS-20 0xA1 defect of ours _a_b") == set()

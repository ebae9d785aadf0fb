"""Each row of docs/source-documents.md names tests that exist, and says how a statement is met."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from support.plumbing.pages import ROOT

PAGE = (ROOT / "docs" / "source-documents.md").read_text(encoding="utf-8")
PARTS = {
    "PRISM subscriptions": ROOT / "tests" / "interchain_events" / "prism",
    "Interchain Event Distributor": ROOT / "tests" / "interchain_events" / "distributor",
}
"""The folder of the tests of each part."""
ROWS = {"PRISM subscriptions": 50, "Interchain Event Distributor": 34}
"""How many statements each document has. A row that is lost is a statement that is forgotten."""
_TEST = re.compile(r"`([\w/.]+\.py)::(test_\w+)`")


def rows(part: str) -> list[list[str]]:
    """The rows of a part's table, each a list of cells."""
    section = PAGE.partition(f"\n## {part}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


@cache
def names_in(file: Path) -> set[str]:
    """The names of a file's tests."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def missing(part: str, cell: str) -> list[str]:
    """The tests of a cell that do not exist, or the cell if it names none."""
    named = _TEST.findall(cell)
    if not named:
        return [cell or "no test"]
    lost = []
    for place, name in named:
        file = ROOT / place if place.startswith("tests/") else PARTS[part] / place
        if not file.is_file() or name not in names_in(file):
            lost.append(f"{place}::{name}")
    return lost


@pytest.mark.parametrize("part", PARTS)
def test_each_statement_says_how_it_is_met_and_names_tests_that_exist(part: str) -> None:
    found = rows(part)
    assert len(found) == ROWS[part]
    for row in found:
        assert len(row) == 4, row
        assert row[2].startswith(("Met", "Differently: ", "As in ")), row
    lost = [test for row in found for test in missing(part, row[3])]
    assert lost == []

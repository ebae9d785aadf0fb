"""The table of the node's rules names every rule once, and tests that are there."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_rule_of_the_node_has_a_row_with_tests_that_are_there() -> None:
    text = (ROOT / "docs" / "node-rules.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (ND-\d+) \|.*$", text, re.MULTILINE)
    assert rows == [f"ND-{at}" for at in range(1, 34)]
    named = [path for page in ("node-rules", "node-clients") for path in re.findall(r"`(tests/[^`]+)`", _page(page))]
    assert len(named) > 30
    assert not [path for path in named if not (ROOT / path).exists()]


def test_every_scenario_with_clients_has_a_row() -> None:
    cells = re.findall(r"^\| ([\d, ]+) \|", _page("node-clients"), re.MULTILINE)
    assert [int(number) for cell in cells for number in cell.split(",")] == list(range(1, 40))


def _page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")

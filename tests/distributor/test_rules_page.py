"""The page of rules names tests that are there, and no rule is missing."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "distributor-rules.md").read_text()
RULES = [1, 2, 3, 4, 10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33, 34, 35, 36, 37, 40, 41, 42, 45, 46, 50, 51]


def test_every_rule_has_a_test_that_is_there() -> None:
    assert [
        int(number) for row in re.findall(r"^\| (ID-.*?) \|", PAGE, re.MULTILINE) for number in re.findall(r"\d+", row)
    ] == RULES
    for row in re.findall(r"^\| .*`.*$", PAGE, re.MULTILINE):
        assert "::" in row
    for place, name in re.findall(r"`([\w/.]+)::(\w+)`", PAGE):
        folder = ROOT if place.startswith("tests/") else ROOT / "tests/distributor"
        assert re.search(rf"^(?:async )?def {name}\(", (folder / place).read_text(), re.MULTILINE), f"{place}::{name}"

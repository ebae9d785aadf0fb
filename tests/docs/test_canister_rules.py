"""docs/icrc72-rules.md says the truth: every rule once and in order, with code that is there and tests that name it."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "icrc72-rules.md").read_text(encoding="utf-8")

GROUPS = {"IC-": ((1, 12), (20, 27), (30, 51), (55, 55)), "RP-": ((1, 14),), "I": ((1, 15),), "R": ((1, 7),)}
RULES = [f"{kind}{n}" for kind, spans in GROUPS.items() for first, last in spans for n in range(first, last + 1)]
ROWS = [
    (found[1], re.findall(r"`([^`]+)`", found[2]), re.findall(r"`([^`]+)`", found[3]))
    for found in re.finditer(r"^\| ((?:IC-|RP-|I|R)\d+) \| [^|]+ \| ([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE)
]


@cache
def named_in(path: Path) -> frozenset[str]:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return frozenset(each.name for each in body if isinstance(each, ast.FunctionDef))


def test_every_rule_is_there_once_and_in_order() -> None:
    assert [rule for rule, *_ in ROWS] == RULES


@pytest.mark.parametrize(("rule", "code", "tests"), ROWS, ids=[row[0] for row in ROWS])
def test_the_code_is_there_and_the_tests_name_the_rule(rule: str, code: list[str], tests: list[str]) -> None:
    assert code
    assert tests
    for each in code:
        assert (ROOT / "pubsub_emulator" / each).is_file(), each
    for each in tests:
        place, _, name = each.partition("::")
        assert f"test_{name}" in named_in(ROOT / "tests" / f"{place}.py"), each
        assert re.search(rf"(?:^|_){rule.lower().replace('-', '_')}[a-g]?(?=_|$)", name), f"{each} is not about {rule}"

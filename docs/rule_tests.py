"""The tests of each rule, for the pages of rules: a test's name or docstring carries the rule's number."""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PAGES: Final = ("protocol", "events-rules", "prism-rules", "distributor-rules", "node-rules", "icrc72-rules")
BENCHES: Final = {
    "ND-32": ("python -m bench.node", "python -m bench --only node:"),
    "ND-33": ("python -m bench --only node:", "python -m bench.node_soak"),
}
"""Rules about speed, which no test measures, and the commands that do."""
RULE: Final = r"(?:PS|AU|EV|PR|ID|ND|IC|RP)-\d+|[IR]\d+"
_PARAGRAPH: Final = re.compile(rf"^\*\*({RULE})\.\*\* .+\n\n- lives: .+\n", re.MULTILINE)
_ROW: Final = re.compile(rf"^\| ((?:{RULE})(?:, (?:{RULE}))*) \|.*\|$", re.MULTILINE)
_HEAD: Final = re.compile(r"^\| rule \|.*\|\n\|[-|]+\|$", re.MULTILINE)
_IN_NAME: Final = re.compile(r"(?:^|_)(?:(ps|au|ev|pr|id|nd|ic|rp)_?|([ir]))(\d+)[a-g]?(?=_|$)")
_IN_TEXT: Final = re.compile(r"\b(PS|AU|EV|PR|ID|ND|IC|RP)-(\d+)(?: to (?:PS|AU|EV|PR|ID|ND|IC|RP)-(\d+))?\b")


def rules_in(page: str) -> list[str]:
    """The rules of a page in order, with those of a row that has several."""
    entries = sorted([*_PARAGRAPH.finditer(page), *_ROW.finditer(page)], key=re.Match.start)
    return [rule for entry in entries for rule in entry[1].split(", ")]


def rules_of_name(name: str) -> Iterator[str]:
    """`test_ps52_x`, `test_ps_52_x` and `test_x_ic_30b` are about PS-52 and IC-30, `test_i7_x` about invariant I7."""
    for kind, letter, number in _IN_NAME.findall(name):
        yield f"{kind.upper()}-{number}" if kind else f"{letter.upper()}{number}"


def rules_of_text(text: str) -> Iterator[str]:
    """The rules that a docstring names; `PS-10 to PS-19` are ten."""
    for kind, first, last in _IN_TEXT.findall(text):
        yield from (f"{kind}-{number}" for number in range(int(first), int(last or first) + 1))


@cache
def tests_by_rule() -> dict[str, dict[str, list[str]]]:
    """For each rule the files that test it, with the tests by name; none stand there if the file's docstring has it."""
    found: dict[str, dict[str, list[str]]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        place = path.relative_to(ROOT / "tests").as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for rule in rules_of_text(ast.get_docstring(tree) or ""):
            found.setdefault(rule, {}).setdefault(place, [])
        for each in ast.walk(tree):
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name.startswith("test_"):
                text = ast.get_docstring(each) or ""
                for rule in dict.fromkeys((*rules_of_name(each.name), *rules_of_text(text))):
                    found.setdefault(rule, {}).setdefault(place, []).append(each.name)
    return found


def tests_of(rules: Iterable[str]) -> str:
    """Where rules are tested, as Markdown: up to three tests of a file by name, more by their number."""
    said = []
    for rule in rules:
        said += [f"`{command}`" for command in BENCHES.get(rule, ())]
        for place, names in tests_by_rule().get(rule, {}).items():
            if len(names) > 3:
                said.append(f"`{place}`: {len(names)} tests")
            else:
                said += [f"`{place}::{name}`" for name in names] or [f"`{place}`"]
    return ", ".join(dict.fromkeys(said))


def with_tests(page: str) -> str:
    """A page of rules with the tests: a line below each paragraph, a column behind each table of rules."""
    page = _PARAGRAPH.sub(lambda found: f"{found[0]}- tests: {tests_of([found[1]])}\n", page)
    page = _ROW.sub(lambda found: f"{found[0]} {tests_of(found[1].split(', '))} |", page)
    return _HEAD.sub(lambda found: found[0].replace("|\n", "| tests |\n") + "---|", page)

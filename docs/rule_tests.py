"""The code and the tests of each rule, for the pages of rules.

Code and tests are found by the rule's number in a docstring or in a test's name.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PAGES: Final = (
    "protocol",
    "events-rules",
    "prism-rules",
    "distributor-rules",
    "node-rules",
    "icrc72-rules",
)
BENCHES: Final = {
    "ND-32": ("python -m bench.node", "python -m bench --only node:"),
    "ND-33": ("python -m bench --only node:", "python -m bench.node_soak"),
}
"""Rules about speed, which no test measures, and the commands that do."""
RULE: Final = r"(?:PS|AU|EV|PR|ID|ND|IC|RP)-\d+|[IR]\d+"
_PARAGRAPH: Final = re.compile(rf"^\*\*({RULE})\.\*\* .+\n", re.MULTILINE)
_IN_NAME: Final = re.compile(r"(?:^|_)(?:(ps|au|ev|pr|id|nd|ic|rp)_?|([ir]))(\d+)[a-g]?(?=_|$)")
_IN_TEXT: Final = re.compile(
    r"\b(PS-|AU-|EV-|PR-|ID-|ND-|IC-|RP-|[IR](?=\d))(\d+)(?: to"
    r" (?:PS-|AU-|EV-|PR-|ID-|ND-|IC-|RP-|[IR])(\d+))?\b"
)


def rules_in(page: str) -> list[str]:
    """The rules of a page in order."""
    return _PARAGRAPH.findall(page)


def rules_of_name(name: str) -> Iterator[str]:
    """Yield the rules in a test's name.

    `test_ps52_x`, `test_ps_52_x` and `test_x_ic_30b` are about PS-52 and IC-30, `test_i7_x` is
    about invariant I7.
    """
    for kind, letter, number in _IN_NAME.findall(name):
        yield f"{kind.upper()}-{number}" if kind else f"{letter.upper()}{number}"


def rules_of_text(text: str) -> Iterator[str]:
    """The rules that a docstring names; `PS-10 to PS-19` are ten."""
    for kind, first, last in _IN_TEXT.findall(text):
        yield from (f"{kind}{number}" for number in range(int(first), int(last or first) + 1))


Places = dict[str, dict[str, list[str]]]
"""For each rule the files that name it, with the names inside; there are none if the file's
docstring alone has it.
"""


def _named(
    folders: Iterable[str],
    pattern: str,
    names: Callable[[ast.AST], Iterator[tuple[str, Iterable[str]]]],
) -> Places:
    found: Places = {}
    for path in (path for folder in folders for path in sorted((ROOT / folder).rglob(pattern))):
        place = path.relative_to(ROOT).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for rule in rules_of_text(ast.get_docstring(tree) or ""):
            found.setdefault(rule, {}).setdefault(place, [])
        for name, rules in names(tree):
            for rule in dict.fromkeys(rules):
                found.setdefault(rule, {}).setdefault(place, []).append(name)
    return found


def _definitions(inside: ast.AST, before: str = "") -> Iterator[tuple[str, Iterable[str]]]:
    for each in ast.iter_child_nodes(inside):
        if isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{before}{each.name}", rules_of_text(ast.get_docstring(each) or "")
            yield from _definitions(each, f"{before}{each.name}.")


def _test_functions(tree: ast.AST) -> Iterator[tuple[str, Iterable[str]]]:
    for name, rules in _definitions(tree):
        last = name.rpartition(".")[2]
        if last.startswith("test_"):
            yield last, (*rules_of_name(last), *rules)


@cache
def tests_by_rule() -> Places:
    """For each rule the tests whose name or docstring has it."""
    return _named(("tests",), "test_*.py", _test_functions)


@cache
def code_by_rule() -> Places:
    """For each rule the modules, classes and functions whose docstring has it."""
    return _named(("pubsub_emulator", "interchain_events"), "*.py", _definitions)


def _listed(rule: str, found: Places) -> list[str]:
    """Places as Markdown: up to three names of a file, more by their number."""
    said = []
    for place, names in found.get(rule, {}).items():
        if len(names) > 3:
            said.append(f"`{place}`: {len(names)}")
        else:
            said += [f"`{place}::{name}`" for name in names] or [f"`{place}`"]
    return said


def tests_of(rule: str) -> str:
    """Where a rule is tested, or measured."""
    return ", ".join(
        [*(f"`{command}`" for command in BENCHES.get(rule, ())), *_listed(rule, tests_by_rule())]
    )


def code_of(rule: str) -> str:
    """Where a rule is kept."""
    return ", ".join(_listed(rule, code_by_rule()))


def with_places(page: str) -> str:
    """A page of rules with the code and the tests of each below it."""

    def places(found: re.Match[str]) -> str:
        code = code_of(found[1])
        return (
            f"{found[0]}\n" + f"- code: {code}\n" * bool(code) + f"- tests: {tests_of(found[1])}\n"
        )

    return _PARAGRAPH.sub(places, page)

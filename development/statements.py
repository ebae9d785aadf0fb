"""Check that one statement does one thing.

Refused are an assignment that computes several values at once (`a, b = f(), g()`), a conditional
expression within another, and a comprehension with two `for` clauses. `NOT_YET` lists the files
that are older than the rule, with the number of such places that they may have.
"""

import ast
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from development.environment import ROOT
from development.report import say

FOLDERS = ("pubsub_emulator", "interchain_events", "development")
NOT_YET = Path(__file__).with_suffix(".json")
"""Numbers by file. They may only fall."""

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_COMPUTED = (ast.Call, ast.IfExp, ast.BoolOp, ast.Await, *_COMPREHENSIONS)


def places(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the kind of each place that does several things."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _computes_several(node):
            yield node.lineno, "several values are computed in one assignment"
        elif isinstance(node, _COMPREHENSIONS) and len(node.generators) > 1:
            yield node.lineno, "a comprehension has two loops"
        elif isinstance(node, ast.IfExp) and _has_another(node):
            yield node.lineno, "a conditional expression is within another"


def _computes_several(node: ast.Assign) -> bool:
    """Whether a tuple of targets gets a tuple with a call, a condition or a loop in it."""
    if not isinstance(node.targets[0], ast.Tuple) or not isinstance(node.value, ast.Tuple):
        return False
    return any(_contains(value, _COMPUTED) for value in node.value.elts)


def _has_another(node: ast.IfExp) -> bool:
    return any(_contains(part, ast.IfExp) for part in (node.body, node.test, node.orelse))


def _contains(tree: ast.AST, kinds: type[ast.AST] | tuple[type[ast.AST], ...]) -> bool:
    return any(isinstance(node, kinds) for node in ast.walk(tree))


def found() -> dict[str, list[tuple[int, str]]]:
    """Return the places of all files, by path."""
    by_file = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path.name.endswith("_pb2.py"):
                continue  # generated
            listed = sorted(places(ast.parse(path.read_text(encoding="utf-8"))))
            if listed:
                by_file[path.relative_to(ROOT).as_posix()] = listed
    return by_file


def check() -> int:
    """Report the places beyond those of `NOT_YET`, and numbers there that are too high."""
    allowed = Counter(json.loads(NOT_YET.read_text(encoding="utf-8")))
    now = found()
    code = 0
    for path, listed in now.items():
        if len(listed) > allowed[path]:
            code = 1
            for line, what in listed:
                say(f"{path}:{line}: {what}")
    for path, number in allowed.items():
        if number > len(now.get(path, ())):
            code = 1
            say(f"{NOT_YET.name}: {path} has {len(now.get(path, ()))} places, not {number}")
    return code

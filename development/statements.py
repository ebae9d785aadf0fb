"""Check that one statement does one thing.

Three kinds of statements are refused: an assignment that computes several values at once
(`a, b = f(), g()`), a conditional expression within another, and a comprehension with two `for`
clauses.
"""

import ast
from collections.abc import Iterator

from development.environment import ROOT
from development.report import say

FOLDERS = ("pubsub_emulator", "interchain_events", "development", "bench")
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
    """Return whether an assignment to several targets has a call, a condition or a loop."""
    if not isinstance(node.targets[0], ast.Tuple) or not isinstance(node.value, ast.Tuple):
        return False
    return any(_contains(value, _COMPUTED) for value in node.value.elts)


def _has_another(node: ast.IfExp) -> bool:
    """Return whether a conditional expression contains another one."""
    return any(_contains(part, ast.IfExp) for part in (node.body, node.test, node.orelse))


def _contains(tree: ast.AST, kinds: type[ast.AST] | tuple[type[ast.AST], ...]) -> bool:
    """Return whether a node, or one below it, is of one of these kinds."""
    return any(isinstance(node, kinds) for node in ast.walk(tree))


def check() -> int:
    """Report every statement in `FOLDERS` that does several things. Return 1 if there is one."""
    code = 0
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            # These files are generated.
            if path.name.endswith("_pb2.py"):
                continue
            for line, fault in sorted(places(ast.parse(path.read_text(encoding="utf-8")))):
                say(f"{path.relative_to(ROOT).as_posix()}:{line}: {fault}")
                code = 1
    return code

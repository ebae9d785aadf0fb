"""Check that the name of a test is a sentence of at most twelve words.

A longer name has to be read twice, and takes more than a line in the report of a failing run.
Rules, rows and numbers (`ps52`, `id_34`, `2026`) are references and not words.
"""

import ast
import re
from collections.abc import Iterator
from typing import Final

from development.environment import ROOT
from development.report import say

FOLDERS: Final = ("tests", "examples")
LIMIT: Final = 12
_RULES: Final = frozenset({"ps", "au", "ev", "pr", "id", "nd", "ic", "rp"})
_NUMBER: Final = re.compile(r"[a-z]{0,4}\d+[a-z]?")


def words(name: str) -> list[str]:
    """Return the words of a test's name.

    The `s` of a genitive (`a_row_s_place`) belongs to the word before it.
    """
    parts = name.removeprefix("test_").split("_")
    counted = []
    for part, following in zip(parts, [*parts[1:], ""], strict=True):
        is_rule = part in _RULES and _NUMBER.fullmatch(following) is not None
        is_number = _NUMBER.fullmatch(part) is not None
        if not is_rule and not is_number and part not in {"", "s"}:
            counted.append(part)
    return counted


def long_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each test whose name has too many words."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.startswith("test_") and len(words(node.name)) > LIMIT:
            yield node.lineno, node.name


def check() -> int:
    """Report every such name in `FOLDERS`. Return 1 if there is one."""
    code = 0
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for line, name in sorted(long_names(ast.parse(path.read_text(encoding="utf-8")))):
                place = path.relative_to(ROOT).as_posix()
                say(f"{place}:{line}: the name of {name} has more than {LIMIT} words")
                code = 1
    return code

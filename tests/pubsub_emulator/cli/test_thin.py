"""`cli/` only reads arguments, shows progress and writes results.

The contract "Commands compute nothing themselves" of import-linter holds what commands import, and
another keeps click and terminals out of all other rooms. Here every module has something to do with
a command line, and no other room ends a program or asks its user.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.plumbing.pages import ROOT

PACKAGES = ("pubsub_emulator", "interchain_events")
WITHOUT_CLICK = {
    "pubsub_emulator/cli/base/ending.py": "signals that end a server",
    "pubsub_emulator/cli/base/forks.py": "the words of --fork and --fork-para",
    "pubsub_emulator/cli/base/interrupts.py": "Ctrl-C",
    "pubsub_emulator/cli/commands/fuzz/campaigns.py": "the options of `fuzz`",
    "pubsub_emulator/cli/exits.py": "exit codes",
    "pubsub_emulator/cli/screen/pages.py": "old places of names",
    "pubsub_emulator/cli/streams.py": "the encodings of standard output and standard error",
}
"""What the modules below `cli/` are for that import neither click nor a module of a `cli/`."""
ENDING = {"sys.exit", "exit", "quit", "input"}


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def _is_of_a_command_line(tree: ast.AST) -> bool:
    return any(name == "click" or ".cli." in f"{name}." for name in _imported(tree))


def _modules(*below: str) -> Iterator[tuple[str, ast.Module]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).joinpath(*below).rglob("*.py")):
            tree = ast.parse(path.read_text("utf-8"))
            if any(not isinstance(node, ast.Expr) for node in tree.body):  # not only a docstring
                yield path.relative_to(ROOT).as_posix(), tree


def test_every_module_of_a_command_line_has_to_do_with_one() -> None:
    found = {path for path, tree in _modules("cli") if not _is_of_a_command_line(tree)}
    assert found == WITHOUT_CLICK.keys(), "logic belongs into a room below"


def test_no_other_room_ends_a_program_or_asks_its_user() -> None:
    for path, tree in _modules():
        if "/cli/" in path or Path(path).name == "setup.py":
            continue
        for node in ast.walk(tree):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            assert called not in ENDING, f"{path}:{getattr(node, 'lineno', 0)}: {called}"


@pytest.mark.parametrize(
    ("text", "is_of_one"),
    [
        ("import click\n", True),
        ("from pubsub_emulator.cli.screen import say\n", True),
        ("def run():\n    from pubsub_emulator.cli.base.result import Result\n", True),
        ("from pubsub_emulator.files.pages import Line\n", False),
        ("from pubsub_emulator.client.places import is_url\n", False),
    ],
)
def test_a_module_is_known_by_its_imports(text: str, is_of_one: bool) -> None:
    assert _is_of_a_command_line(ast.parse(text)) == is_of_one

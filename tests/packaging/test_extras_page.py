"""The tables of extras in docs/cli.md have the packages and commands of each."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
from command_reference import leaves

from pubsub_emulator.cli.base.extras import Command

ROOT: Final = Path(__file__).resolve().parents[2]
PROJECTS: Final = ("pyproject.toml", "interchain_events/pyproject.toml")
TITLE: Final = "| extra | for | packages | commands that need it |"


def tables() -> list[list[list[str]]]:
    """Return the cells of each row of the tables on the page, one table for each distribution."""
    lines = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8").splitlines()
    starts = [number + 2 for number, line in enumerate(lines) if line == TITLE]
    found = []
    for start in starts:
        rows = lines[start : lines.index("", start)]
        found.append([[cell.strip() for cell in row.strip("|").split("|")] for row in rows])
    return found


def packages(requirements: list[str]) -> str:
    """Return the names in requirements, as a cell of the table."""
    return ", ".join(re.split(r"[\[<>=]", requirement)[0] for requirement in requirements)


def callers(extra: str) -> Iterator[str]:
    """Yield each command that needs an extra, with the parameters with which it does, if it does
    not always.
    """
    for name, command, _ in leaves():
        if not isinstance(command, Command):
            continue
        parameters = {parameter.name: parameter for parameter in command.params}
        wanted = [need for need in command.needs if need.extra == extra]
        labels = [_label(parameters[need.parameter]) for need in wanted if need.parameter]
        if len(labels) < len(wanted):
            yield f"`{name}`"
        elif labels:
            yield f"`{name}` with {' or '.join(labels)}"


def _label(parameter: click.Parameter) -> str:
    """Return the name of a parameter as help has it."""
    if isinstance(parameter, click.Argument):
        return f"`{parameter.human_readable_name}`"
    return f"`{max(parameter.opts, key=len)}`"


def test_the_tables_have_the_packages_and_the_commands_of_each_extra() -> None:
    shown = tables()
    assert len(shown) == len(PROJECTS)
    for place, table in zip(PROJECTS, shown, strict=True):
        project = tomllib.loads((ROOT / place).read_text(encoding="utf-8"))["project"]
        wanted = [
            [f"`{extra}`", packages(requirements) or "none", ", ".join(callers(extra)) or "none"]
            for extra, requirements in project["optional-dependencies"].items()
        ]
        assert [[extra, listed, commands] for extra, _, listed, commands in table] == wanted


def test_each_parameter_listed_as_needing_an_extra_belongs_to_its_command() -> None:
    for name, command, _ in leaves():
        if isinstance(command, Command):
            parameters = {parameter.name for parameter in command.params}
            assert {need.parameter for need in command.needs} <= {*parameters, ""}, name

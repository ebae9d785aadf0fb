"""Reads scenario files (TOML) into checked scenarios. Errors name file, line and field."""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from pubsub_emulator.emulator.scenario.check import Location, Misplaced, check
from pubsub_emulator.emulator.scenario.fields import faults
from pubsub_emulator.emulator.scenario.model import Scenario
from pubsub_emulator.emulator.untrusted import MOST_TEXT, Unreadable, parse_toml
from pubsub_emulator.primitives.errors import PubsubError

_HEADER: Final = re.compile(r"^\s*(\[\[?)\s*([A-Za-z0-9_.\-\"' ]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY: Final = re.compile(r"^\s*([A-Za-z0-9_\-]+)\s*(?:\.[^=]*)?=")


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of a scenario; `line` counts from 1, `None` if the field is not in the file."""

    line: int | None
    field: str
    reason: str


class ScenarioError(PubsubError):
    """A scenario cannot be read or has faults; the message has a line for each problem."""

    def __init__(self, file: str, problems: tuple[Problem, ...]) -> None:
        self.file = file
        self.problems = problems
        super().__init__("\n".join(map(self._line, problems)))

    def _line(self, problem: Problem) -> str:
        place = f"{self.file}:{problem.line}" if problem.line is not None else self.file
        return f"{place}: {problem.field + ': ' if problem.field else ''}{problem.reason}"


def load_scenario(path: Path) -> Scenario:
    """The scenario in a file. Raises `ScenarioError`, also if the file cannot be read."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_TEXT + 1)
        text = data.decode("utf-8")
    except IsADirectoryError as error:
        reason = "a folder, and no scenario: it is wanted as a TOML file, or by the name of a bundled one"
        raise ScenarioError(str(path), (Problem(None, "", reason),)) from error
    except OSError as error:
        raise ScenarioError(str(path), (Problem(None, "", error.strerror or str(error)),)) from error
    except UnicodeDecodeError as error:
        raise ScenarioError(str(path), (Problem(None, "", f"not UTF-8 at byte {error.start}"),)) from error
    if len(data) > MOST_TEXT:
        reason = f"longer than {MOST_TEXT:,} bytes, the limit for a scenario"
        raise ScenarioError(str(path), (Problem(None, "", reason),))
    return parse_scenario(text, str(path))


def parse_scenario(text: str, file: str) -> Scenario:
    """The scenario that TOML text describes; `file` is its name in errors. Raises `ScenarioError`."""
    try:
        document = parse_toml(text, "")
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(file, (_syntax_problem(str(error)),)) from error
    except Unreadable as error:
        raise ScenarioError(file, (Problem(None, "", str(error).removeprefix(": ")),)) from error
    return _validated(document, file, text)


def parse_document(document: object, file: str) -> Scenario:
    """The scenario of a parsed document; the inverse of `Scenario.document`. Raises `ScenarioError`."""
    return _validated(document, file, "")


def _validated(document: object, file: str, text: str) -> Scenario:
    lines = field_lines(text)
    try:
        scenario = Scenario.model_validate(document)
    except ValidationError as error:
        raise ScenarioError(file, _in_order(_placed(found, lines) for found in faults(document, error))) from error
    misplaced = check(scenario)
    if misplaced:
        raise ScenarioError(file, _in_order(_placed(found, lines) for found in misplaced))
    return scenario


def _in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """The problems in the order of the file, those without a line first."""
    return tuple(sorted(problems, key=lambda problem: problem.line or 0))


def _placed(found: Misplaced, lines: dict[Location, int]) -> Problem:
    """A finding with the nearest line of the file."""
    known = found.location
    while known and known not in lines:
        known = known[:-1]
    return Problem(lines.get(known), found.field(), found.reason)


def bundled_scenarios() -> tuple[str, ...]:
    """Names of the scenarios that come with the project."""
    return tuple(
        sorted(entry.name.removesuffix(".toml") for entry in _bundle().iterdir() if entry.name[-5:] == ".toml")
    )


def load_bundled(name: str) -> Scenario:
    """A scenario that comes with the project. Raises `ScenarioError`."""
    return parse_scenario(bundled_text(name), f"{name}.toml")


def bundled_text(name: str) -> str:
    """The file of a scenario that comes with the project. Raises `ScenarioError`."""
    if name not in bundled_scenarios():
        near = " or ".join(get_close_matches(name, bundled_scenarios(), n=3))
        hint = f"did you mean {near}?" if near else f"there are {', '.join(bundled_scenarios())}"
        raise ScenarioError(name, (Problem(None, "", f"no such scenario; {hint}"),))
    return _bundle().joinpath(f"{name}.toml").read_text(encoding="utf-8")


def _bundle() -> Traversable:
    return files("pubsub_emulator.emulator").joinpath("scenarios")


def _syntax_problem(message: str) -> Problem:
    found = re.search(r"\(at line (\d+), column \d+\)", message)
    return Problem(int(found.group(1)) if found else None, "", message)


def field_lines(text: str) -> dict[Location, int]:
    """The line of each table and key of a TOML text, counted from 1.

    Only headers and keys at the start of a line are found; a key inside of an inline table has the table's line. Used
    for error messages only.
    """
    lines: dict[Location, int] = {}
    counts: dict[Location, int] = {}
    table: Location = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            names = [name.strip(" \"'") for name in header.group(2).split(".")]
            table = _resolve(names, counts, append=header.group(1) == "[[")
            lines.setdefault(table, number)
            lines.setdefault(tuple(part for part in table if isinstance(part, str))[:1], number)
        elif key := _KEY.match(line):
            lines.setdefault((*table, key.group(1)), number)
    return lines


def _resolve(names: list[str], counts: dict[Location, int], *, append: bool) -> Location:
    """The location of a header, with the last element of each array of tables on the way."""
    location: Location = ()
    for depth, name in enumerate(names):
        location = (*location, name)
        if append and depth == len(names) - 1:
            counts[location] = counts.get(location, 0) + 1
        if location in counts:
            location = (*location, counts[location] - 1)
    return location

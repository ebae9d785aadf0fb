"""Reads TOML files into checked models."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final, TypeVar

from pydantic import ValidationError

from pubsub_emulator.files.near import near_to
from pubsub_emulator.files.settings.fields import Location, Misplaced, Model, faults
from pubsub_emulator.files.untrusted import MOST_TEXT, Unreadable, parse_toml, read_bytes
from pubsub_emulator.primitives.errors import PubsubError

M = TypeVar("M", bound=Model)

_HEADER: Final = re.compile(r"^\s*(\[\[?)\s*([A-Za-z0-9_.\-\"' ]+?)\s*\]\]?\s*(?:#.*)?$")
"""The header of a table (`[…]`) or of an element of an array of tables (`[[…]]`)."""
_KEY: Final = re.compile(r"^\s*([A-Za-z0-9_\-]+)\s*(?:\.[^=]*)?=")
"""The beginning of a line with a key."""
_PLACE: Final = re.compile(r"\(at line (\d+), column \d+\)")
"""The place in the messages of the TOML parser."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of a file."""

    line: int | None
    """The line, which counts from 1, or `None` if the field is not in the file."""
    field: str
    reason: str


class SettingsError(PubsubError):
    """A settings file that cannot be read or has faults.

    The message has a line for each problem.
    """

    def __init__(self, file: str, *problems: Problem) -> None:
        self.file = file
        self.problems = problems
        super().__init__("\n".join(map(self._line, problems)))

    def _line(self, problem: Problem) -> str:
        place = f"{self.file}:{problem.line}" if problem.line is not None else self.file
        return ": ".join(part for part in (place, problem.field, problem.reason) if part)


def _no_check(_model: Model) -> Iterable[Misplaced]:
    return ()


def read(path: Path, root: type[M], check: Callable[[M], Iterable[Misplaced]] = _no_check) -> M:
    """Return the settings in a file.

    `check` returns contradictions between fields. Raises `SettingsError` if the file cannot be read
    or has faults.
    """
    if path.is_dir():
        raise SettingsError(str(path), Problem(None, "", "a folder, and not a TOML file"))
    try:
        data = read_bytes(path, MOST_TEXT)
    except Unreadable as error:
        raise SettingsError(
            str(path), Problem(None, "", str(error).removeprefix(f"{path}: "))
        ) from error
    return parse(data, str(path), root, check)


def parse(
    data: bytes | str,
    file: str,
    root: type[M],
    check: Callable[[M], Iterable[Misplaced]] = _no_check,
) -> M:
    """Return the settings in a TOML text, which errors call `file`. Raises `SettingsError`."""
    try:
        text = data if isinstance(data, str) else data.decode()
        document = parse_toml(text)
    except UnicodeDecodeError as error:
        raise SettingsError(file, Problem(None, "", f"not UTF-8 at byte {error.start}")) from error
    except Unreadable as error:
        place = _PLACE.search(str(error))
        line = None if place is None else int(place[1])
        raise SettingsError(file, Problem(line, "", str(error))) from error
    return validated(document, file, root, check, text)


def validated(
    document: object,
    file: str,
    root: type[M],
    check: Callable[[M], Iterable[Misplaced]] = _no_check,
    text: str = "",
) -> M:
    """Return the settings of a parsed document.

    `text` is the document's source, if there is one, to find the lines of faults. Raises
    `SettingsError`.
    """
    try:
        model = root.model_validate(document)
    except ValidationError as error:
        raise _refused(faults(document, error, root), file, text) from error
    misplaced = list(check(model))
    if misplaced:
        raise _refused(misplaced, file, text)
    return model


def _refused(misplaced: Iterable[Misplaced], file: str, text: str) -> SettingsError:
    """Return the error for some faults, each with the nearest line of the file.

    Problems are in the order of the file. Those without a line come first.
    """
    lines = field_lines(text)
    problems = []
    for fault in misplaced:
        # A missing field does not have a line, so the line of the table around it is used.
        location = fault.location
        while location and location not in lines:
            location = location[:-1]
        problems.append(Problem(lines.get(location), fault.field(), fault.reason))
    return SettingsError(file, *sorted(problems, key=lambda problem: problem.line or 0))


@dataclass(frozen=True, slots=True)
class Bundle:
    """The scenarios in a package's folder `scenarios`."""

    package: str
    """The name of the package."""

    def _folder(self) -> Traversable:
        return files(self.package).joinpath("scenarios")

    def names(self) -> tuple[str, ...]:
        """Return the names of all scenarios."""
        files_in = (entry.name for entry in self._folder().iterdir())
        names = (name.removesuffix(".toml") for name in files_in if name.endswith(".toml"))
        return tuple(sorted(names))

    def text(self, name: str) -> str:
        """Return the content of a scenario's file.

        Raises `SettingsError` if there is no scenario of this name.
        """
        if name not in self.names():
            hint = near_to(
                name, self.names(), f"known: {', '.join(self.names())}; or name a TOML file"
            )
            raise SettingsError(name, Problem(None, "", f"no such scenario; {hint}"))
        return self._folder().joinpath(f"{name}.toml").read_text(encoding="utf-8")


def field_lines(text: str) -> dict[Location, int]:
    """Return the line of each table and key of a TOML text. Lines count from 1.

    Keys inside an inline table are left out. This is not a TOML parser: it only reads headers and
    the beginnings of lines.
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
    """Return the location of a header. In each array of tables, it is in the last element so far.

    `counts` has the number of elements of each array so far. With `append`, the header begins a new
    element.
    """
    location: Location = ()
    for depth, name in enumerate(names):
        location = (*location, name)
        if append and depth == len(names) - 1:
            counts[location] = counts.get(location, 0) + 1
        if location in counts:
            location = (*location, counts[location] - 1)
    return location

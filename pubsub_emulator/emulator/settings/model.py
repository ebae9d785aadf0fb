"""The base of all models of settings, and faults of a file."""

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from pubsub_emulator.primitives.errors import PubsubError

Location = tuple[str | int, ...]
"""The names of tables and fields and the numbers of list elements, from 0, that lead to a value of a document."""


class Model(BaseModel):
    """Frozen, and without unknown fields; `fields.add_meanings` reads the string below a field where it is wanted."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class StrictModel(Model):
    """A model that takes no value of another type: no text for a number, no number for a flag."""

    model_config = ConfigDict(strict=True)


@dataclass(frozen=True, slots=True)
class Misplaced:
    """A field whose value is not allowed, or contradicts another part of the file."""

    location: Location
    reason: str

    def field(self) -> str:
        """The location in words; elements of lists count from 1."""
        return ".".join(str(part + 1) if isinstance(part, int) else part for part in self.location)


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of a file; `line` counts from 1, `None` if the field is not in the file."""

    line: int | None
    field: str
    reason: str


class SettingsError(PubsubError):
    """A settings file cannot be read or has faults; the message has a line for each problem."""

    def __init__(self, file: str, *problems: Problem) -> None:
        self.file = file
        self.problems = problems
        super().__init__("\n".join(map(self._line, problems)))

    def _line(self, problem: Problem) -> str:
        place = f"{self.file}:{problem.line}" if problem.line is not None else self.file
        return ": ".join(part for part in (place, problem.field, problem.reason) if part)

"""A session's command as a value: name, parameters, help, function.

Help, completion and docs are made from it.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from inspect import cleandoc
from pathlib import Path
from typing import Final

from pubsub_emulator.files.atomic import write_whole
from pubsub_emulator.files.near import near_to
from pubsub_emulator.files.pages import Shown
from pubsub_emulator.primitives.errors import PubsubError


class CommandError(PubsubError):
    """The command failed and changed nothing."""


def split_line(line: str) -> list[str]:
    """Split a line into its words. A comment has no words.

    Raises `CommandError` for an open quote, and for lone surrogates, by which standard input
    replaces bytes that are invalid in its encoding.
    """
    if any("\ud800" <= character <= "\udfff" for character in line):
        raise CommandError(f"the line has bytes outside of the input's encoding: {line.strip()}")
    try:
        return shlex.split(line, comments=True)
    except ValueError as error:
        raise CommandError(f"{error} in: {line.strip()}") from error


class ParameterKind(Enum):
    """The kind of a parameter. Completion depends on it."""

    PARA = "a parachain's id"
    SUBSCRIBER = "the id of a parachain that subscribes"
    PUBLISHER = "the id of a parachain that publishes"
    CHAIN = "`relay` or a parachain's id"
    KEY = "a key: its name as text, or 32 bytes as 0x and 64 digits"
    VALUE = "a value: text, or bytes as 0x and digits"
    NUMBER = "a whole number"
    SHARE = "a share from 0 to 1"
    STRATEGY = "the name of a cheating strategy; several with a comma between them"
    ITEM = "a storage item as Pallet.Item, or a raw key as 0x and digits"
    SNAPSHOT = "the name of a snapshot or branch, or `now`"
    NAME = "a name of your choice"
    FILE = "a file"
    COMMAND = "a command"
    WORD = "one of the listed words"


@dataclass(frozen=True, slots=True)
class CommandParameter:
    """One argument of a command."""

    name: str
    kind: ParameterKind
    optional: bool = False
    many: bool = False
    words: tuple[str, ...] = ()
    """Every allowed value. It is empty if any value of the kind is allowed."""

    def usage(self) -> str:
        """Return the argument in the form of a usage line."""
        shown = f"{self.name}…" if self.many else self.name
        return f"[{shown}]" if self.optional else shown


Run = Callable[..., Iterator[Shown]]
"""A command's function: it takes the session, then the words of the line."""


@dataclass(frozen=True, slots=True)
class SessionCommand:
    """One command."""

    name: str
    summary: str
    run: Run
    parameters: tuple[CommandParameter, ...] = ()
    details: str = ""
    examples: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    changes: bool = False
    """Whether the command changes the network. Its lines are then in the journal of a session."""

    def usage(self) -> str:
        """Return the usage line, such as `name ARGUMENT [ARGUMENT]`."""
        return " ".join((self.name, *(parameter.usage() for parameter in self.parameters)))

    def read(self, arguments: Sequence[str]) -> Sequence[str]:
        """Check the words after the name, and return them.

        Raises `CommandError` for too few, too many or wrong words.
        """
        remaining = arguments
        for parameter in self.parameters:
            if not remaining and not parameter.optional:
                raise CommandError(f"{parameter.name} is missing: {self.usage()}")
            words = remaining if parameter.many else remaining[:1]
            for word in words:
                # Without a list of words, any word is allowed.
                if parameter.words and word not in parameter.words:
                    hint = near_to(word, parameter.words, self.usage())
                    raise CommandError(
                        f"{word!r} is not one of {', '.join(parameter.words)}; {hint}"
                    )
            remaining = remaining[len(words) :]
        if remaining:
            raise CommandError(f"{remaining[0]!r} is one word too many: {self.usage()}")
        return arguments

    def help(self) -> tuple[str, ...]:
        """Return the lines of the full help."""
        lines = [
            self.usage(),
            f"  {self.summary}",
            *(f"  {line}" for line in self.details.splitlines()),
        ]
        if self.parameters:
            lines.append("")
            width = max(len(parameter.name) for parameter in self.parameters)
            for parameter in self.parameters:
                values = " | ".join(parameter.words) if parameter.words else parameter.kind.value
                optional = "; optional" if parameter.optional else ""
                several = "; repeatable" if parameter.many else ""
                lines.append(f"  {parameter.name:{width}}  {values}{several}{optional}")
        if self.aliases:
            lines += ["", f"  also: {', '.join(self.aliases)}"]
        if self.examples:
            lines += ["", "  examples:", *(f"    {example}" for example in self.examples)]
        return tuple(lines)


_KINDS: Final = {
    **{kind.name: kind for kind in ParameterKind},
    **dict.fromkeys(
        ("BLOCK", "BLOCKS", "TTL", "MOST", "DEPOSIT", "COLLATOR"), ParameterKind.NUMBER
    ),
    **dict.fromkeys(("A", "B", "FROM"), ParameterKind.SNAPSHOT),
    **dict.fromkeys(("PARAM", "ACTION"), ParameterKind.VALUE),
    **dict.fromkeys(("METHOD", "WHICH", "WHAT", "FIELD", "CALL"), ParameterKind.WORD),
    "RATE": ParameterKind.SHARE,
}
_PARAMETER: Final = re.compile(r"(\[?)([A-Z]+)(…?)(?::([a-z]+))?\]?")


def command(
    section: list[SessionCommand],
    usage: str,
    *examples: str,
    aliases: tuple[str, ...] = (),
    words: Mapping[str, tuple[str, ...]] | None = None,
    changes: bool = False,
) -> Callable[[Run], Run]:
    """Decorate a function that runs a command of a section of the help.

    The docstring of the function is the summary and the details. `usage` is
    `name ARGUMENT [OPTIONAL] MANY…`. The name of an argument tells its kind, or `NAME:kind` does.
    `words` are the allowed values of an argument. Without `examples`, the command's name is the
    example.
    """
    name, *arguments = usage.split()
    parameters = []
    for match in filter(None, map(_PARAMETER.fullmatch, arguments)):
        bracket, parameter_name, ellipsis, kind_name = match.groups()
        kind = ParameterKind[kind_name.upper()] if kind_name else _KINDS[parameter_name]
        parameters.append(
            CommandParameter(
                parameter_name,
                kind,
                optional=bool(bracket),
                many=bool(ellipsis),
                words=(words or {}).get(parameter_name, ()),
            )
        )

    def keep(run: Run) -> Run:
        summary, _, details = cleandoc(run.__doc__ or "").partition("\n\n")
        section.append(
            SessionCommand(
                name,
                summary,
                run,
                parameters=tuple(parameters),
                details=details,
                examples=examples or (name,),
                aliases=aliases,
                changes=changes,
            )
        )
        return run

    return keep


def unknown(what: str, name: str, known: Iterable[str], otherwise: str = "") -> CommandError:
    """Return the error that `name` is not among the `known` names of a `what`.

    The error suggests similar names. If there are none, it ends with `otherwise`, by default with
    all names.
    """
    names = list(known)
    hint = near_to(name, names, otherwise or f"known: {', '.join(names) or 'none'}")
    return CommandError(f"unknown {what} {name!r}; {hint}")


BY_NAME: Final[dict[str, SessionCommand]] = {}
"""Commands by name and alias. `session.table` adds them, when the package is imported."""


def find(name: str) -> SessionCommand:
    """Return the command with this name or alias.

    Raises `CommandError`, which suggests similar names.
    """
    if name not in BY_NAME:
        raise CommandError(
            f"there is no command {name!r}; {near_to(name, BY_NAME, '`help` lists all')}"
        )
    return BY_NAME[name]


def write_file(path: Path, text: str) -> None:
    """Write a file, or leave an older one as it is if that fails. Raises `CommandError`."""
    try:
        write_whole(path, text)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from error


# Words as values


def number(text: str, what: str, least: int = 0) -> int:
    """Parse a whole number of digits and `_`. Raises `CommandError` that begins with `what`."""
    digits = text.replace("_", "")
    if not digits.isascii() or not digits.isdigit() or int(digits) < least:
        raise CommandError(f"{what}, not {text!r}")
    return int(digits)


def hexadecimal(text: str, what: str) -> bytes:
    """Parse bytes given as 0x and digits. Raises `CommandError`."""
    try:
        return bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        raise CommandError(
            f"{what} in hex is 0x and an even number of digits, not {text!r}"
        ) from None

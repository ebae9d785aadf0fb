"""All commands of a session in one table, by section, and its help."""

from collections.abc import Iterator
from typing import Final

from pubsub_emulator.cli.pages import Grid, Line, Shown
from pubsub_emulator.cli.session.command import Command, CommandError, Given, Kind, Parameter, find, register
from pubsub_emulator.cli.session.completion import complete
from pubsub_emulator.cli.session.inspection import INSPECTION
from pubsub_emulator.cli.session.network_commands import NETWORK
from pubsub_emulator.cli.session.session import Session
from pubsub_emulator.cli.session.settings import SETTINGS
from pubsub_emulator.cli.session.snapshots import SNAPSHOTS
from pubsub_emulator.cli.session.stepping import STEPPING
from pubsub_emulator.cli.session.storage_commands import STORAGE
from pubsub_emulator.cli.session.trials import TRIALS


def _help(_session: Session, given: Given) -> Iterator[Shown]:
    name = given.maybe("COMMAND")
    if name is not None:
        yield from (Line(line) for line in find(name).help())
        return
    for title, commands in SECTIONS.items():
        yield Grid(title, ("command", "what it does"), tuple((each.usage(), each.summary) for each in commands))
    yield Line("`help COMMAND` explains one, with examples; Ctrl-C interrupts a command after the last whole block")


def _quit(session: Session, _given: Given) -> Iterator[Shown]:
    session.over = True
    yield from ()


_LEAVING: Final = (
    Command(
        "help",
        "List all commands, or explain one.",
        _help,
        (Parameter("COMMAND", Kind.COMMAND, optional=True),),
        examples=("help", "help cheat"),
        aliases=("?",),
    ),
    Command(
        "quit",
        "Leave the session. Whatever was not written to a file is lost.",
        _quit,
        examples=("quit",),
        aliases=("exit", "q"),
    ),
)

SECTIONS: Final = {
    "build blocks": STEPPING,
    "act": (*NETWORK, *SETTINGS),
    "look": (*INSPECTION, *STORAGE, *TRIALS),
    "keep and compare": SNAPSHOTS,
    "help and leave": _LEAVING,
}

COMMANDS: Final = tuple(command for commands in SECTIONS.values() for command in commands)

register(COMMANDS)

__all__ = ["COMMANDS", "SECTIONS", "CommandError", "complete", "find"]

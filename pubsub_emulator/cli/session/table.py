"""All commands of a session in one table, by section, and its help."""

from collections.abc import Iterator
from typing import Final

from pubsub_emulator.cli.screen.pages import Shown
from pubsub_emulator.cli.session.command import Command, CommandError, Given, command, explained, find, register
from pubsub_emulator.cli.session.inspection import INSPECTION
from pubsub_emulator.cli.session.network_commands import NETWORK
from pubsub_emulator.cli.session.session import Session
from pubsub_emulator.cli.session.settings import SETTINGS
from pubsub_emulator.cli.session.snapshots import SNAPSHOTS
from pubsub_emulator.cli.session.stepping import STEPPING
from pubsub_emulator.cli.session.storage_commands import STORAGE
from pubsub_emulator.cli.session.trials import TRIALS

_LEAVING: Final[list[Command]] = []


@command(_LEAVING, "help [COMMAND]", "List all commands, or explain one.", "help", "help cheat", aliases=("?",))
def _help(_session: Session, given: Given) -> Iterator[Shown]:
    return explained(given, SECTIONS, find)


@command(
    _LEAVING,
    "quit",
    "Leave the session. Whatever was not written to a file is lost; a node at a URL keeps running.",
    aliases=("exit", "q"),
)
def _quit(session: Session, _given: Given) -> Iterator[Shown]:
    session.over = True
    yield from ()


SECTIONS: Final = {
    "build blocks": STEPPING,
    "act": (*NETWORK, *SETTINGS),
    "look": (*INSPECTION, *STORAGE, *TRIALS),
    "keep and compare": SNAPSHOTS,
    "help and leave": _LEAVING,
}

COMMANDS: Final = tuple(command for commands in SECTIONS.values() for command in commands)

register(COMMANDS)

__all__ = ["COMMANDS", "SECTIONS", "CommandError", "find"]

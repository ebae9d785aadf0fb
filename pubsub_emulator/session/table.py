"""All commands of a session in one table, by section, and its help."""

import itertools
from collections.abc import Iterator
from typing import Final

from pubsub_emulator.files.pages import Grid, Line, Shown
from pubsub_emulator.session.command import BY_NAME, SessionCommand, command, find
from pubsub_emulator.session.inspection import INSPECTION
from pubsub_emulator.session.network_commands import NETWORK
from pubsub_emulator.session.session import Session
from pubsub_emulator.session.settings import SETTINGS
from pubsub_emulator.session.snapshots import SNAPSHOTS
from pubsub_emulator.session.stepping import STEPPING
from pubsub_emulator.session.storage_commands import STORAGE
from pubsub_emulator.session.trials import TRIALS

_LEAVING: Final[list[SessionCommand]] = []


@command(_LEAVING, "help [COMMAND]", "help", "help cheat", aliases=("?",))
def _help(_session: Session, name: str | None = None) -> Iterator[Shown]:
    """List all commands, or explain one."""
    if name is not None:
        yield from map(Line, find(name).help())
        return
    for title, commands in SECTIONS.items():
        yield Grid(
            title,
            ("command", "description"),
            tuple((shown_command.usage(), shown_command.summary) for shown_command in commands),
        )
    yield Line(
        "`help COMMAND` explains one, with examples; Ctrl-C interrupts a command after the last"
        " whole block"
    )


@command(_LEAVING, "quit", aliases=("exit", "q"))
def _quit(session: Session) -> Iterator[Shown]:
    """Leave the session.

    Whatever was not written to a file is lost; a node at a URL keeps running.
    """
    session.over = True
    yield from ()


SECTIONS: Final = {
    "build blocks": STEPPING,
    "act": (*NETWORK, *SETTINGS),
    "look": (*INSPECTION, *STORAGE, *TRIALS),
    "keep and compare": SNAPSHOTS,
    "help and leave": _LEAVING,
}

COMMANDS: Final = tuple(itertools.chain.from_iterable(SECTIONS.values()))

for _command in COMMANDS:
    BY_NAME.update(dict.fromkeys((_command.name, *_command.aliases), _command))

__all__ = ["COMMANDS", "SECTIONS", "find"]

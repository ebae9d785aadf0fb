"""All commands of a session in one table: what a name means, what help says, what completion offers."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Final

from pubsub_emulator.cli.pages import Grid, Line, Shown
from pubsub_emulator.cli.session.acting import ACTING
from pubsub_emulator.cli.session.command import Command, CommandError, Given, Kind, Parameter
from pubsub_emulator.cli.session.going import GOING
from pubsub_emulator.cli.session.looking import LOOKING
from pubsub_emulator.cli.session.moments import MOMENTS
from pubsub_emulator.cli.session.session import Session
from pubsub_emulator.cli.session.settings import SETTINGS
from pubsub_emulator.cli.session.states import STATES
from pubsub_emulator.cli.session.trying import TRYING
from pubsub_emulator.collator.cheats import STRATEGIES
from pubsub_emulator.emulator.storage_items import parachain_items, relay_items


def _help(_session: Session, given: Given) -> Iterator[Shown]:
    name = given.maybe("COMMAND")
    if name is not None:
        yield from (Line(line) for line in find(name).help())
        return
    for title, commands in SECTIONS.items():
        yield Grid(title, ("command", "what it does"), tuple((each.usage(), each.summary) for each in commands))
    yield Line("`help COMMAND` says more, with examples; Ctrl-C interrupts a command after the last whole block")


def _quit(session: Session, _given: Given) -> Iterator[Shown]:
    session.over = True
    yield from ()


_LEAVING: Final = (
    Command(
        "help",
        "Every command, or all about one of them.",
        _help,
        (Parameter("COMMAND", Kind.COMMAND, optional=True),),
        examples=("help", "help cheat"),
        aliases=("?",),
    ),
    Command("quit", "Leave; what was not written to a file is lost.", _quit, examples=("quit",), aliases=("exit", "q")),
)

SECTIONS: Final = {
    "build blocks": GOING,
    "act": (*ACTING, *SETTINGS),
    "look": (*LOOKING, *STATES, *TRYING),
    "keep and compare": MOMENTS,
    "help and leave": _LEAVING,
}

COMMANDS: Final = tuple(command for commands in SECTIONS.values() for command in commands)

_BY_NAME: Final = {name: command for command in COMMANDS for name in (command.name, *command.aliases)}


def find(name: str) -> Command:
    """A command by its name or another one it goes by. Raises `CommandError` with those near to it."""
    command = _BY_NAME.get(name)
    if command is None:
        near = get_close_matches(name, _BY_NAME, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "`help` lists all"
        raise CommandError(f"there is no command {name!r}; {hint}")
    return command


def complete(session: Session, line: str) -> list[str]:
    """What the last word of a line may go on as, in whole words; a blank at the end starts a new one."""
    words = line.split()
    if not words or line[-1:].isspace():
        words.append("")
    started = words[-1]
    if len(words) == 1:
        return [command.name for command in COMMANDS if command.name.startswith(started)]
    command = _BY_NAME.get(words[0])
    if command is None or not command.parameters:
        return []
    at = len(words) - 2
    last = command.parameters[-1]
    if at >= len(command.parameters) and not last.many:
        return []
    parameter = command.parameters[min(at, len(command.parameters) - 1)]
    before, comma, rest = started.rpartition(",") if parameter.kind is Kind.STRATEGY else ("", "", started)
    return [before + comma + word for word in _offers(session, parameter, words[1:-1]) if word.startswith(rest)]


def _offers(session: Session, parameter: Parameter, before: list[str]) -> Iterable[str]:
    chains = session.network.parachains.values()
    match parameter.kind:
        case Kind.WORD:
            return parameter.words
        case Kind.PARA:
            return [str(chain.para) for chain in chains]
        case Kind.SUBSCRIBER:
            return [str(chain.para) for chain in chains if not chain.pace.on_demand]
        case Kind.PUBLISHER:
            return [str(para) for para in session.scenario.publisher_ids()]
        case Kind.CHAIN:
            return ["relay", *(str(chain.para) for chain in chains)]
        case Kind.KEY:
            mine = [name for name in session.key_names() if any(name.startswith(f"{word}/") for word in before)]
            return mine or session.key_names()
        case Kind.STRATEGY:
            return list(STRATEGIES)
        case Kind.ITEM:
            return list(relay_items() if before[:1] == ["relay"] else parachain_items())
        case Kind.MOMENT:
            return ["now", session.branch, *session.branches, *session.snapshots]
        case Kind.COMMAND:
            return [command.name for command in COMMANDS]
        case _:
            return []


__all__ = ["COMMANDS", "SECTIONS", "CommandError", "complete", "find"]

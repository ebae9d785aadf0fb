"""Completion of a line of a session."""

from collections.abc import Callable, Iterable
from typing import Final

from pubsub_emulator.collator.cheats import STRATEGIES
from pubsub_emulator.emulator.runtimes import runtime_of
from pubsub_emulator.session.command import BY_NAME, CommandParameter, ParameterKind
from pubsub_emulator.session.node_api import RELAY
from pubsub_emulator.session.session import Session
from pubsub_emulator.session.table import COMMANDS

_OF_A_SCENARIO: Final = (
    ParameterKind.PARA,
    ParameterKind.SUBSCRIBER,
    ParameterKind.PUBLISHER,
    ParameterKind.CHAIN,
)


def complete(session: Session, line: str) -> list[str]:
    """Return the words that the unfinished last word of a line can become.

    A trailing blank starts a new word.
    """
    words = line.split()
    if not words or line[-1:].isspace():
        words.append("")
    *finished, started = words
    if not finished:
        return [command.name for command in COMMANDS if command.name.startswith(started)]
    name, *arguments = finished
    parameters = BY_NAME[name].parameters if name in BY_NAME else ()
    if len(arguments) < len(parameters):
        parameter = parameters[len(arguments)]
    elif parameters and parameters[-1].many:
        parameter = parameters[-1]
    else:
        return []
    fixed = ""
    if parameter.kind is ParameterKind.STRATEGY:
        # Strategies are joined by commas, and only the last one is unfinished.
        before, comma, started = started.rpartition(",")
        fixed = before + comma
    return [
        fixed + word for word in _offers(session, parameter, arguments) if word.startswith(started)
    ]


def _offers(session: Session, parameter: CommandParameter, before: list[str]) -> Iterable[str]:
    """Return the words that can stand for a parameter after the words `before`.

    If a publisher is among these words, only its keys are offered, as names such as `1000/3`.
    """
    if not session.has_facts and parameter.kind in _OF_A_SCENARIO:
        return []
    owners = tuple(f"{word}/" for word in before)
    offers: dict[ParameterKind, Callable[[], Iterable[str]]] = {
        ParameterKind.WORD: lambda: parameter.words,
        ParameterKind.PARA: lambda: map(str, session.paras),
        ParameterKind.SUBSCRIBER: lambda: map(str, session.subscribers),
        ParameterKind.PUBLISHER: lambda: (str(entry.para) for entry in session.facts.publishers),
        ParameterKind.CHAIN: lambda: [RELAY, *map(str, session.paras)],
        ParameterKind.KEY: lambda: (
            [name for name in session.key_names() if name.startswith(owners)] or session.key_names()
        ),
        ParameterKind.STRATEGY: lambda: STRATEGIES,
        ParameterKind.ITEM: lambda: runtime_of(relay=before[:1] == [RELAY]).items,
        ParameterKind.SNAPSHOT: lambda: [
            "now",
            session.branch,
            *session.branches,
            *session.snapshots,
        ],
        ParameterKind.COMMAND: lambda: [entry.name for entry in COMMANDS],
    }
    return offers[parameter.kind]() if parameter.kind in offers else []

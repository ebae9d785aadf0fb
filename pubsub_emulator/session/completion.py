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
    """Complete words for the last word of a line. A trailing blank starts a new word."""
    words = line.split()
    if not words or line[-1:].isspace():
        words.append("")
    started = words[-1]
    if len(words) == 1:
        return [command.name for command in COMMANDS if command.name.startswith(started)]
    parameters = BY_NAME[words[0]].parameters if words[0] in BY_NAME else ()
    if not parameters or (len(words) - 2 >= len(parameters) and not parameters[-1].many):
        return []
    parameter = parameters[min(len(words) - 2, len(parameters) - 1)]
    before, comma, rest = (
        started.rpartition(",") if parameter.kind is ParameterKind.STRATEGY else ("", "", started)
    )
    return [
        before + comma + word
        for word in _offers(session, parameter, words[1:-1])
        if word.startswith(rest)
    ]


def _offers(session: Session, parameter: CommandParameter, before: list[str]) -> Iterable[str]:
    """Return the words that can stand for a parameter after the words `before`.

    Keys of a publisher that is among these words come alone, by their names such as `1000/3`.
    """
    if session.setting is None and parameter.kind in _OF_A_SCENARIO:
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

"""Completion of a line of a session."""

from collections.abc import Iterable
from typing import Final

from pubsub_emulator.cli.session.command import BY_NAME, Kind, Parameter
from pubsub_emulator.cli.session.session import Session
from pubsub_emulator.cli.session.table import COMMANDS
from pubsub_emulator.collator.cheats import STRATEGIES
from pubsub_emulator.emulator.runtimes import runtime_of

_OF_A_SCENARIO: Final = (Kind.PARA, Kind.SUBSCRIBER, Kind.CHAIN)


def complete(session: Session, line: str) -> list[str]:
    """Complete words for the last word of a line. A trailing blank starts a new word."""
    words = line.split()
    if not words or line[-1:].isspace():
        words.append("")
    started = words[-1]
    if len(words) == 1:
        return [each.name for each in COMMANDS if each.name.startswith(started)]
    parameters = BY_NAME[words[0]].parameters if words[0] in BY_NAME else ()
    if not parameters or (len(words) - 2 >= len(parameters) and not parameters[-1].many):
        return []
    parameter = parameters[min(len(words) - 2, len(parameters) - 1)]
    before, comma, rest = started.rpartition(",") if parameter.kind is Kind.STRATEGY else ("", "", started)
    return [before + comma + word for word in _offers(session, parameter, words[1:-1]) if word.startswith(rest)]


def _offers(session: Session, parameter: Parameter, before: list[str]) -> Iterable[str]:
    if session.setting is None and parameter.kind in _OF_A_SCENARIO:
        return []
    match parameter.kind:
        case Kind.WORD:
            return parameter.words
        case Kind.PARA:
            return map(str, session.paras)
        case Kind.SUBSCRIBER:
            return map(str, session.subscribers)
        case Kind.PUBLISHER:
            return [] if session.setting is None else [str(each.para) for each in session.setting.publishers]
        case Kind.CHAIN:
            return ["relay", *map(str, session.paras)]
        case Kind.KEY:
            own = [name for name in session.key_names() if any(name.startswith(f"{word}/") for word in before)]
            return own or session.key_names()
        case Kind.STRATEGY:
            return STRATEGIES
        case Kind.ITEM:
            return runtime_of(relay=before[:1] == ["relay"]).items
        case Kind.SNAPSHOT:
            return ["now", session.branch, *session.branches, *session.snapshots]
        case Kind.COMMAND:
            return [each.name for each in COMMANDS]
        case _:
            return []

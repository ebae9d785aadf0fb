"""Completion of a line of a session."""

from collections.abc import Collection, Iterable
from typing import Protocol

from pubsub_emulator.cli.session.command import Kind, Parameter, command_names, known
from pubsub_emulator.collator.cheats import STRATEGIES
from pubsub_emulator.emulator.network import Network
from pubsub_emulator.emulator.scenario import Scenario
from pubsub_emulator.emulator.storage_items import parachain_items, relay_items


class Completing(Protocol):
    """The parts of a session that completion reads."""

    branch: str

    @property
    def network(self) -> Network:
        """The network."""

    @property
    def scenario(self) -> Scenario:
        """Its scenario."""

    @property
    def branches(self) -> Collection[str]:
        """The names of branches."""

    @property
    def snapshots(self) -> Collection[str]:
        """The names of snapshots."""

    def key_names(self) -> list[str]:
        """The names of keys."""


def complete(session: Completing, line: str) -> list[str]:
    """Complete words for the last word of a line. A trailing blank starts a new word."""
    words = line.split()
    if not words or line[-1:].isspace():
        words.append("")
    started = words[-1]
    if len(words) == 1:
        return [name for name in command_names() if name.startswith(started)]
    command = known(words[0])
    if command is None or not command.parameters:
        return []
    at = len(words) - 2
    last = command.parameters[-1]
    if at >= len(command.parameters) and not last.many:
        return []
    parameter = command.parameters[min(at, len(command.parameters) - 1)]
    before, comma, rest = started.rpartition(",") if parameter.kind is Kind.STRATEGY else ("", "", started)
    return [before + comma + word for word in _offers(session, parameter, words[1:-1]) if word.startswith(rest)]


def _offers(session: Completing, parameter: Parameter, before: list[str]) -> Iterable[str]:
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
        case Kind.SNAPSHOT:
            return ["now", session.branch, *session.branches, *session.snapshots]
        case Kind.COMMAND:
            return command_names()
        case _:
            return []

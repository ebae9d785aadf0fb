"""All commands of a session over a node, by section, with the help of those of a session over a network of its own."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final

from pubsub_emulator.cli.pages import Shown
from pubsub_emulator.cli.session import table as local
from pubsub_emulator.cli.session.command import (
    Command,
    CommandError,
    Given,
    Kind,
    Parameter,
    Run,
    explained,
    known,
    look,
    split_line,
)
from pubsub_emulator.cli.session.inspection import strategies
from pubsub_emulator.cli.session.remote import building, changing, moments, queries
from pubsub_emulator.cli.session.remote.connection import Remote
from pubsub_emulator.cli.session.remote.queries import METHOD_NOT_FOUND
from pubsub_emulator.client.errors import NodeRefused


def _alike(name: str, run: Run | None = None, details: str | None = None) -> Command:
    """The command of that name as it is over a network of its own, done by `run`."""
    command = local.find(name)
    return replace(
        command, run=command.run if run is None else run, details=command.details if details is None else details
    )


def _help(_remote: Remote, given: Given) -> Iterator[Shown]:
    return explained(given, SECTIONS, find)


_PARA: Final = Parameter("PARA", Kind.PARA)
_HEIGHT: Final = Parameter("BLOCK", Kind.NUMBER, optional=True)

_NODE: Final = (
    look("publishers", "Show everyone who is registered or has published.", queries.publishers),
    look(
        "candidates",
        "Show the candidates that were judged for a relay block, refused ones too.",
        queries.candidates,
        (_PARA, _HEIGHT),
        ("candidates 2000", "candidates 2000 7"),
    ),
    look(
        "item",
        "Show a storage item, decoded by the chain's metadata; keys are SCALE bytes.",
        queries.item,
        (
            Parameter("CHAIN", Kind.CHAIN),
            Parameter("ITEM", Kind.ITEM),
            Parameter("KEY", Kind.VALUE, optional=True, many=True),
        ),
        ("item relay System.Number",),
    ),
    look("head", "Go back to a relay block.", moments.head, (Parameter("BLOCK", Kind.NUMBER),), ("head 5",)),
    look(
        "call",
        "Call any method; parameters are JSON or text.",
        queries.call,
        (Parameter("METHOD", Kind.WORD), Parameter("PARAM", Kind.VALUE, optional=True, many=True)),
        ("call system_health",),
    ),
)

SECTIONS: Final = {
    "build blocks": (
        _alike(
            "step", building.step, "Each does what the node does in one, and what was asked for since the last one."
        ),
        _alike("to", building.to),
        _alike("until", building.until),
    ),
    "act": (
        _alike("publish", changing.publish),
        _alike("delete", changing.delete),
        _alike("subscribe", changing.subscribe),
        _alike("unsubscribe", changing.unsubscribe),
        _alike("cheat", changing.cheat),
        _alike("honest", changing.honest),
        _alike("order", changing.order),
        replace(
            _alike(
                "runtime", queries.runtime, "FIELD and VALUE are refused: a session over a node does not change them."
            ),
            summary="Show a subscriber's budget and policies.",
            examples=("runtime 3000",),
        ),
        _alike("set", changing.set_item),
    ),
    "look": (
        replace(_alike("status", queries.status), summary="Show the node's best and final block, and its chains."),
        _alike("headers", queries.headers),
        _alike("events", queries.events),
        _alike("deliveries", queries.deliveries),
        _alike("verdicts", queries.verdicts),
        _alike("ledger", queries.ledger),
        _alike("subscriptions", queries.subscriptions),
        _alike("collators", queries.collators),
        _alike("strategies", strategies),
        _alike("storage"),
        _alike("child"),
        _alike("cache"),
        _alike("cursor"),
    ),
    "keep": (
        _alike("save", moments.save, "The node keeps it, with what waits to be sent."),
        replace(
            _alike(
                "restore", moments.restore, "The network of everybody goes back; snapshots that came after are gone."
            ),
            summary="Go back to a snapshot.",
        ),
        replace(_alike("snapshots", moments.snapshots), summary="List the snapshots of this session.", aliases=()),
        replace(_alike("forget", moments.forget), summary="Drop a snapshot."),
    ),
    "only over a node": _NODE,
    "help and leave": (
        _alike("help", _help),
        replace(local.find("quit"), summary="Leave the session; the node keeps running."),
    ),
}

COMMANDS: Final = tuple(command for commands in SECTIONS.values() for command in commands)
_BY_NAME: Final = {name: command for command in COMMANDS for name in (command.name, *command.aliases)}
_INSTEAD: Final = {
    "write": "`pubsub serve --journal FILE` keeps a node's inputs",
    "load": "`pubsub serve --replay FILE` does a journal again",
    "dry-run": "`call dev_dryRun` tries an extrinsic or messages; `save` and `restore` go back",
    "diff": "`call state_queryStorage` and `archive_v1_storageDiff` tell what changed",
    "branch": "`save` and `restore` keep moments",
    "switch": "`save` and `restore` keep moments",
    "draw": "`pubsub explore --connect URL` draws a node's proofs",
}


def find(name: str) -> Command:
    """The command with this name or alias. Raises `CommandError` that says what comes near."""
    command = _BY_NAME.get(name)
    if command is not None:
        return command
    elsewhere = known(name)
    if elsewhere is not None:
        hint = _INSTEAD.get(elsewhere.name, "`pubsub step SCENARIO` begins one")
        raise CommandError(f"{name!r} is for a session over a network of its own; {hint}")
    near = get_close_matches(name, _BY_NAME, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "`help` lists all"
    raise CommandError(f"there is no command {name!r}; {hint}")


@dataclass(slots=True)
class RemoteSession(Remote):
    """Commands over the node at a URL."""

    def execute(self, line: str) -> Generator[Shown]:
        """Do what a line says. Raises `CommandError`, `ClientError`."""
        found = split_line(line)
        if not found:
            return
        command = find(found[0])
        try:
            yield from command.run(self, command.read(found[1:]))
        except NodeRefused as error:
            if error.code != METHOD_NOT_FOUND:
                raise
            raise CommandError(
                f"{self.url} does not offer this: {error}; start it with `pubsub serve --dev`"
            ) from error

    def complete(self, line: str) -> list[str]:
        """What the last word of a line may go on as: commands, and words of closed lists."""
        words = line.split()
        if not words or line[-1:].isspace():
            words.append("")
        if len(words) == 1:
            return [each.name for each in COMMANDS if each.name.startswith(words[0])]
        command = _BY_NAME.get(words[0])
        if command is None or len(words) - 2 >= len(command.parameters):
            return []
        parameter = command.parameters[len(words) - 2]
        match parameter.kind:
            case Kind.COMMAND:
                offered = [each.name for each in COMMANDS]
            case Kind.PARA | Kind.SUBSCRIBER | Kind.PUBLISHER:
                offered = [str(para) for para in self.paras()]
            case Kind.CHAIN:
                offered = ["relay", *(str(para) for para in self.paras())]
            case Kind.SNAPSHOT:
                offered = list(self.kept)
            case _:
                offered = list(parameter.words)
        return [word for word in offered if word.startswith(words[-1])]

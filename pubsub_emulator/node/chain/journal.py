"""The journal of a node: all that its blocks follow from, as JSON lines (`pubsub-journal/1`).

{"format": "pubsub-journal/1", "scenario": {…}, "options": {…}}
{"action": {"kind": "publish", …}}       what was asked for, in order
{"step": 7, "relay": "0x…"}              a relay block was built with all actions since the last line of this kind
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

from pubsub_emulator.emulator.scenario.model import Scenario
from pubsub_emulator.node.chain.actions import Action, action_adapter
from pubsub_emulator.node.chain.block import Moment
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hexadecimal import hexed, unhex

FORMAT: Final = "pubsub-journal/1"


class BadJournal(PubsubError):
    """A journal that cannot be read, or whose blocks come out differently; the message names the line."""


@dataclass(frozen=True, slots=True)
class Head:
    """The first line: the scenario, and the options on which blocks depend."""

    scenario: Scenario
    genesis_slot: int

    def line(self) -> str:
        """The line of the file, without its end."""
        document = {
            "format": FORMAT,
            "scenario": self.scenario.document(),
            "options": {"genesisSlot": self.genesis_slot},
        }
        return json.dumps(document, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Stepped:
    """A relay block that was built, by its height and hash."""

    line: int
    number: int
    relay: bytes
    actions: tuple[Action, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Journal:
    """A journal that was read. `rest` are actions after the last step."""

    head: Head
    entries: tuple[Stepped, ...]
    rest: tuple[Action, ...]


def action_line(action: Action) -> str:
    """One action as written."""
    document = action.model_dump(mode="json", exclude_defaults=True)
    return json.dumps({"action": {"kind": action.kind, **document}}, separators=(",", ":"))


def step_line(moment: Moment) -> str:
    """One step as written."""
    return json.dumps({"step": moment.number, "relay": hexed(moment.relay.hash)}, separators=(",", ":"))


def read_journal(lines: Iterable[str], name: str) -> Journal:
    """A journal from its lines; `name` is what errors call it. Raises `BadJournal`."""
    numbered = iter(enumerate(lines, 1))
    head = _head(next(numbered, (1, "")), name)
    entries: list[Stepped] = []
    waiting: list[Action] = []
    for line, document in _documents(numbered, name):
        match document:
            case {"action": action}:
                try:
                    waiting.append(action_adapter.validate_python(action))
                except ValidationError as error:
                    raise BadJournal(f"{name}:{line}: no action: {error.errors()[0]['msg']}") from None
            case {"step": int(number), "relay": str(relay)}:
                entries.append(Stepped(line, number, _hash(relay, f"{name}:{line}"), tuple(waiting)))
                waiting = []
            case _:
                raise BadJournal(f"{name}:{line}: neither an action nor a step")
    return Journal(head, tuple(entries), tuple(waiting))


def _documents(numbered: Iterator[tuple[int, str]], name: str) -> Iterator[tuple[int, Any]]:
    for line, text in numbered:
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            raise BadJournal(f"{name}:{line}: not JSON") from None
        yield line, document


def _head(first: tuple[int, str], name: str) -> Head:
    for _, document in _documents(iter((first,)), name):
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise BadJournal(f"{name}:1: the first line does not say that this is {FORMAT}")
        try:
            return Head(
                Scenario.model_validate_json(json.dumps(document["scenario"])), document["options"]["genesisSlot"]
            )
        except (KeyError, TypeError, ValidationError) as error:
            raise BadJournal(f"{name}:1: no scenario and options: {str(error).splitlines()[0]}") from None
    raise BadJournal(f"{name}: empty")


def _hash(text: str, place: str) -> bytes:
    try:
        return unhex(text)
    except ValueError:
        raise BadJournal(f"{place}: {text!r} is no hash") from None

"""The journal of a node, a file from which all its blocks can be built again.

The file has JSON lines in the format `pubsub-journal/1`:

    {"format": "pubsub-journal/1", "scenario": {…}, "options": {…}}
    {"action": {"kind": "publish", …}}       an action, in the order of requests
    {"step": 7, "relay": "0x…"}              a relay block, with all actions since the last step

The options are the slot of the relay chain's block 0, and the digest of the rules by which the
blocks were made (`0x` for the shipped ones). Journals of earlier versions do not name the rules. A
node that is killed while it writes leaves an incomplete last line, which is ignored.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pydantic import ValidationError

from pubsub_emulator.emulator.network.actions import LAST_SLOT, Action, action_adapter
from pubsub_emulator.emulator.scenario.file import parse_document
from pubsub_emulator.emulator.scenario.model import Scenario
from pubsub_emulator.files.untrusted import MEBIBYTE, parse_json
from pubsub_emulator.node.chain.block import Moment
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hexadecimal import hexed, unhex
from pubsub_emulator.runtime.rules import SHIPPED, Rules

FORMAT: Final = "pubsub-journal/1"
MOST_BYTES: Final = 256 * MEBIBYTE
"""The maximum size of a journal that is read, in bytes."""
MOST_LINE: Final = 16 * MEBIBYTE
"""The maximum size of one line in bytes. It has room for the largest request, whose bytes take two
digits each.
"""


class BadJournal(PubsubError):
    """A journal that cannot be read or reproduced. The message names the line."""


@dataclass(frozen=True, slots=True)
class JournalHead:
    """The first line: the scenario and the options that influence blocks."""

    scenario: Scenario
    genesis_slot: int
    """The slot of the relay chain's block 0."""
    rules: bytes = b""
    """The digest of the rules. It is empty for the shipped ones."""

    def line(self) -> str:
        """Return the line without its line feed."""
        options = {"genesisSlot": self.genesis_slot, "rules": hexed(self.rules)}
        head = {"format": FORMAT, "scenario": self.scenario.document(), "options": options}
        return json.dumps(head, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Stepped:
    """A relay block in the journal."""

    line: int
    """The number of the line in the file, for error messages."""
    number: int
    """The height of the relay block."""
    relay: bytes
    """The hash of the relay block."""
    actions: tuple[Action, ...] = field(default=())
    """The actions since the previous relay block."""


@dataclass(frozen=True, slots=True)
class Journal:
    """A journal that has been read."""

    head: JournalHead
    entries: tuple[Stepped, ...]
    """The relay blocks, each with the actions before it."""
    rest: tuple[Action, ...]
    """Actions after the last step."""
    cut: bool = False
    """Whether the last line was incomplete."""


def action_line(action: Action) -> str:
    """Return the line of an action, without its line feed."""
    return json.dumps(
        {"action": action.model_dump(mode="json", exclude_defaults=True)}, separators=(",", ":")
    )


def step_line(moment: Moment) -> str:
    """Return the line of a step, without its line feed."""
    return json.dumps(
        {"step": moment.number, "relay": hexed(moment.relay.hash)}, separators=(",", ":")
    )


def read_journal(data: bytes, name: str, rules: Rules = SHIPPED) -> Journal:
    """Read a journal from the bytes of its file.

    `name` is the file's name in errors. Raises `BadJournal` if the journal cannot be read or was
    not made by `rules`, and `SettingsError` if its scenario is invalid.
    """
    *lines, incomplete = data.split(b"\n")
    head = _head(lines, name, rules)
    entries: list[Stepped] = []
    waiting: list[Action] = []
    for line, text in enumerate(lines[1:], 2):
        match _document(text, f"{name}:{line}"):
            case {"action": action}:
                try:
                    waiting.append(action_adapter.validate_python(action))
                except ValidationError as error:
                    raise BadJournal(
                        f"{name}:{line}: not an action: {error.errors()[0]['msg']}"
                    ) from None
            case {"step": int(number), "relay": str(relay)} if not isinstance(number, bool):
                entries.append(
                    Stepped(line, number, _hash(relay, f"{name}:{line}"), tuple(waiting))
                )
                waiting = []
            case _:
                raise BadJournal(f"{name}:{line}: neither an action nor a step")
    return Journal(head, tuple(entries), tuple(waiting), cut=bool(incomplete))


def _document(text: bytes, place: str) -> object:
    if len(text) > MOST_LINE:
        raise BadJournal(f"{place}: longer than {MOST_LINE:,} bytes")
    return parse_json(text, place, BadJournal)


def _head(lines: Sequence[bytes], name: str, rules: Rules) -> JournalHead:
    """Return the first line of a journal. Raises `BadJournal` and `SettingsError`."""
    if not lines:
        raise BadJournal(f"{name}: empty, or the first line was cut")
    place = f"{name}:1"
    document = _document(lines[0], place)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BadJournal(f"{place}: the first line does not say that this is {FORMAT}")
    options = document.get("options")
    if not isinstance(options, dict) or not isinstance(document.get("scenario"), dict):
        raise BadJournal(f"{place}: scenario and options are missing")
    # The rules are checked before the scenario, which may be invalid only under other rules.
    present = hexed(rules.digest)
    made_by = options.get("rules", present)
    if made_by != present:
        raise BadJournal(
            f"{place}: options.rules: the journal was made by {str(made_by)[:66]}, and the rules"
            f" here are {present} (0x means the shipped rules); `--rules` names a file"
        )
    slot = options.get("genesisSlot")
    if not isinstance(slot, int) or isinstance(slot, bool) or not 0 <= slot <= LAST_SLOT:
        raise BadJournal(
            f"{place}: options.genesisSlot: {str(slot)[:40]!r} is not a slot up to {LAST_SLOT}"
        )
    return JournalHead(parse_document(document["scenario"], place, rules), slot, rules.digest)


def _hash(text: str, place: str) -> bytes:
    try:
        return unhex(text)
    except ValueError:
        raise BadJournal(f"{place}: {text[:80]!r} is not a hash") from None

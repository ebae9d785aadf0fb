"""A session in a file: the scenario and the commands that led to a moment, which lead there again.

    {"format": "pubsub-session/1", "scenario": {…}, "commands": ["step 4", …], "block": 4, "hash": "0x…"}

The scenario stands there as in its TOML file, `hash` is that of the relay block at the end. Everything in a network
follows from its scenario and what was asked of it (PS-90), so nothing else has to be kept, and a file that was made by
another version and means something else there is noticed.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pubsub_emulator.cli.output import write_whole
from pubsub_emulator.cli.pages import Doing, Shown
from pubsub_emulator.cli.session.command import CommandError
from pubsub_emulator.cli.session.session import Moment, Session
from pubsub_emulator.emulator.scenario.file import parse_document

FORMAT: Final = "pubsub-session/1"
_FIELDS: Final = ("format", "scenario", "commands", "block", "hash")


def write(session: Session, moment: Moment, path: Path) -> None:
    """Write a moment of a session. Raises `OSError` as the disk does; a file that was there stays then."""
    newest = moment.network.relay.blocks[-1].header
    document = {
        "format": FORMAT,
        "scenario": session.scenario.document(),
        "commands": list(moment.journal),
        "block": newest.number,
        "hash": "0x" + newest.hash().hex(),
    }
    write_whole(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def read_document(path: Path) -> dict[str, Any]:
    """The document in a file, checked for its fields. Raises `CommandError` that names the file and the field."""
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise CommandError(f"{path}: not JSON: {error}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CommandError(f"{path}: format: not {FORMAT!r}, so no session that `write` made")
    for name in _FIELDS:
        if name not in content:
            raise CommandError(f"{path}: {name}: missing")
    commands = content["commands"]
    if not isinstance(commands, list) or not all(isinstance(line, str) for line in commands):
        raise CommandError(f"{path}: commands: not a list of lines")
    return content


def read(path: Path, into: list[Session]) -> Iterator[Shown]:
    """Play a file's commands in a new session, which is added to `into` once it has come to the block it names.

    Raises `CommandError`, and `ScenarioError` for the scenario inside.
    """
    content = read_document(path)
    session = Session(parse_document(content["scenario"], str(path)))
    for at, line in enumerate(content["commands"], start=1):
        try:
            for page in session.execute(line):
                if isinstance(page, Doing):
                    yield Doing(f"playing {path.name} again", session.network.number, content["block"])
        except CommandError as error:
            raise CommandError(f"{path}: commands.{at}: {error}") from error
    header = session.network.relay.header
    found = "0x" + header.hash().hex()
    if (header.number, found) != (content["block"], content["hash"]):
        raise CommandError(
            f"{path}: hash: its commands lead to relay block {header.number}, {found}, not to {content['block']}, "
            f"{content['hash']}: it was changed, or written by another version"
        )
    into.append(session)

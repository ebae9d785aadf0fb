"""A session in a file: a scenario and commands. Playing the commands leads to the same block again.

    {"format": "pubsub-session/1", "scenario": {…}, "commands": ["step 4", …], "block": 4, "hash":
    "0x…"}

The scenario has the fields of its TOML file, `hash` is the hash of the last relay block. A network
is determined by its scenario and commands (PS-90), so nothing else is stored. A file whose commands
lead to another hash is refused.

With `"rules": "0x…"`, the digest of a file of rules, the session is played with those.

With `"accounts": true` all chains have that profile. `"fork": {"relay": "0x…", "2000": "0x…"}` are
the roots of the states that chains continue from; whoever opens the file says where those states
are.

Reading a file never writes or runs anything else: only commands that build blocks or change the
network are played, and no more blocks than `block` says.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from pubsub_emulator.emulator.fork import NO_FORKS, Forks
from pubsub_emulator.emulator.scenario.file import parse_document
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.files.pages import Doing, Shown
from pubsub_emulator.files.progress import ProgressCallback
from pubsub_emulator.files.untrusted import read_json
from pubsub_emulator.node.chain.lines import FORMAT, document
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.types import U32_MAX
from pubsub_emulator.runtime.rules import SHIPPED, Rules
from pubsub_emulator.session.command import CommandError, find, split_line, write_file
from pubsub_emulator.session.node_api import RELAY
from pubsub_emulator.session.session import Checkpoint, Session

_FIELDS: Final = ("format", "scenario", "commands", "block", "hash")
MOST_COMMANDS: Final = 100_000
MOST_BLOCKS: Final = 1_000_000


def play(
    path: Path,
    on_start: Callable[[Simulation], object],
    advance: ProgressCallback,
    rules: Rules = SHIPPED,
) -> Session:
    """Play a file's commands as `read` does.

    `on_start` gets the network before the first command, `advance` the number of blocks so far.
    """
    sessions: list[Session] = []
    for page in read(path, sessions, lambda session: on_start(session.simulation), rules=rules):
        if isinstance(page, Doing):
            advance(page.done, page.total)
    return sessions[0]


def write(session: Session, moment: Checkpoint, path: Path) -> None:
    """Write a checkpoint of a session. Raises `CommandError` and then keeps a file that exists."""
    content = document(session.simulation, session.commands(moment.journal), *moment.heads[RELAY])
    write_file(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def read_document(path: Path) -> dict[str, Any]:
    """Return the document in a file after checking its fields.

    Raises `CommandError` that names the file and the field.
    """
    content = read_json(path, error=CommandError)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CommandError(f"{path}: format: not {FORMAT!r}; `write` makes session files")
    for name in _FIELDS:
        if name not in content:
            raise CommandError(f"{path}: {name}: missing")
    commands = content["commands"]
    if not isinstance(commands, list) or not all(isinstance(line, str) for line in commands):
        raise CommandError(f"{path}: commands: not a list of lines")
    if len(commands) > MOST_COMMANDS:
        raise CommandError(
            f"{path}: commands: {len(commands)} lines, and a session has at most {MOST_COMMANDS}"
        )
    block = content["block"]
    last = U32_MAX if "fork" in content else MOST_BLOCKS
    if not isinstance(block, int) or isinstance(block, bool) or not 0 <= block <= last:
        raise CommandError(f"{path}: block: not a number from 0 to {last}")
    if not isinstance(content.get("accounts", False), bool):
        raise CommandError(f"{path}: accounts: neither true nor false")
    if not isinstance(content["hash"], str):
        raise CommandError(f"{path}: hash: not text")
    for line_number, line in enumerate(commands, start=1):
        _ensure_harmless(f"{path}: commands.{line_number}", line)
    return content


def _ensure_not_beyond(number: int, last: int) -> None:
    if number > last:
        raise CommandError(f"the commands go beyond relay block {last}, the file's last one")


def _ensure_harmless(place: str, line: str) -> None:
    """Check that a line steps or changes the network. Raises `CommandError` if it does not."""
    try:
        words = split_line(line)
        command = find(words[0]) if words else None
    except CommandError as error:
        raise CommandError(f"{place}: {error}") from error
    if command is None:
        raise CommandError(f"{place}: no command")
    if not (command.changes or command.name == "step"):
        reason = "it neither builds blocks nor changes the network"
        raise CommandError(f"{place}: {command.name!r} is not allowed in a file: {reason}")


def _ensure_same_fork(path: Path, content: dict[str, object], forks: Forks) -> None:
    """Check that a file's session continues from `forks`, by the state roots in the file.

    Raises `CommandError`.
    """
    recorded = content.get("fork", {})
    given_roots = forks.roots()
    if recorded == given_roots:
        return
    if not isinstance(recorded, dict):
        raise CommandError(f"{path}: fork: not a table of state roots by chain")
    chain = next(
        name for name in {**recorded, **given_roots} if recorded.get(name) != given_roots.get(name)
    )
    if chain not in recorded:
        advice = f"chain {chain} of this session is not forked; open the file without a fork of it"
        raise CommandError(f"{path}: fork: {advice}")
    difference = f"not {given_roots[chain]}" if chain in given_roots else "but no state is given"
    raise CommandError(
        f"{path}: fork.{chain}: the session continues from the state {str(recorded[chain])[:66]},"
        f" {difference}; give `pubsub step FILE` that state with --fork or --fork-para"
    )


def _ensure_same_rules(path: Path, recorded: object, rules: Rules) -> None:
    """Check that a file's session was made with these rules. Raises `CommandError`."""
    digest = hexed(rules.digest)
    if recorded != digest:
        raise CommandError(
            f"{path}: rules: the session was made with {str(recorded)[:66]}, and the rules here are"
            f" {digest} (0x means the shipped rules); `pubsub step FILE --rules` names a file of"
            " rules"
        )


def read(
    path: Path,
    into: list[Session],
    on_start: Callable[[Session], object] = lambda _session: None,
    forks: Forks = NO_FORKS,
    rules: Rules = SHIPPED,
) -> Iterator[Shown]:
    """Play a file's commands in a new session and add it to `into` if it ends at the file's block.

    `on_start` is called with the session before the first command. `forks` are the states that the
    file's session continues from, if it does.

    Raises `CommandError`, and `SettingsError` for the scenario inside.
    """
    content = read_document(path)
    accounts = bool(content.get("accounts"))
    _ensure_same_fork(path, content, forks)
    _ensure_same_rules(path, content.get("rules", "0x"), rules)
    session = Session.of(
        parse_document(content["scenario"], str(path), rules),
        accounts=accounts,
        forks=forks,
        rules=rules,
    )
    first = session.facts.first
    if content["block"] - first > MOST_BLOCKS:
        raise CommandError(
            f"{path}: block: more than {MOST_BLOCKS} blocks after {first}, the first one"
        )
    on_start(session)
    for line_number, line in enumerate(content["commands"], start=1):
        try:
            for page in session.execute(line):
                _ensure_not_beyond(session.number, content["block"])
                if isinstance(page, Doing):
                    yield Doing(f"replaying {path.name}", session.number, content["block"])
        except CommandError as error:
            raise CommandError(f"{path}: commands.{line_number}: {error}") from error
    newest = session.number
    newest_hash = hexed(session.newest(RELAY))
    if (newest, newest_hash) != (content["block"], content["hash"]):
        raise CommandError(
            f"{path}: hash: its commands lead to relay block {newest}, {newest_hash}, not to"
            f" {content['block']}, {content['hash']}: the file was changed or written by another"
            " version"
        )
    into.append(session)

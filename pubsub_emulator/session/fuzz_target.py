"""A session's file as a target of `pubsub fuzz --target`."""

from collections.abc import Iterable
from pathlib import Path

from pubsub_emulator.emulator.scenario.file import parse_document
from pubsub_emulator.laboratory.mutation import target
from pubsub_emulator.laboratory.target_files import from_file, temporary_folder
from pubsub_emulator.session.saved import read
from pubsub_emulator.session.session import Session


def _sessions() -> Iterable[bytes]:
    """Return the file of a short session on a tiny scenario."""
    scenario: dict[str, object] = {"name": "tiny", "seed": "tiny", "relay_blocks": 8}
    scenario["publishers"] = [{"paras": [1000], "keys": 4}]
    scenario["subscribers"] = [{"para": 3000, "subscribe": [{"publishers": "all"}]}]
    session = Session.of(parse_document(scenario, "tiny"))
    path = temporary_folder() / "made.json"
    for line in ("step 1", "publish 1000 key value", "step 1", f"write {path}"):
        list(session.execute(line))
    return [path.read_bytes()]


@target("session", "a session's file, played", _sessions, "session", text=True)
@from_file("session.json")
def _read_session(path: Path) -> str:
    """Play a session's file. A stranger may have made it, so its commands must not write files."""
    before = sorted(entry.name for entry in path.parent.iterdir())
    try:
        list(read(path, []))
    finally:
        if sorted(entry.name for entry in path.parent.iterdir()) != before:
            raise AssertionError("reading a session wrote a file")
    return "played"

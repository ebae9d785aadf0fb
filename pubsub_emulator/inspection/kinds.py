"""Which kind of file or folder a path is, by its content, and which function shows it."""

from pathlib import Path
from typing import Final

from pubsub_emulator.files.errors import InputError
from pubsub_emulator.files.untrusted import parse_json, read_bytes
from pubsub_emulator.inspection.view import View
from pubsub_emulator.runtime.rules import SHIPPED, Rules

NO_TOML: Final = "no TOML by its name, and"
_KNOWN: Final = (
    "a scenario, session, fixture, case of a campaign, difference of two verifiers, relay proof,"
    " finding or Parquet file"
)


def look(path: Path, block: str | None = None, rules: Rules = SHIPPED) -> View:
    """Inspect a path; `block` is `[NETWORK/]CHAIN:NUMBER` of a history.

    Blocks of chains that name `rules` are executed by them, and scenarios are checked by them.

    Raises `InputError`, and the errors of the reader of its kind.
    """
    if path.is_dir():
        return _folder(path, block, rules)
    if block is not None:
        raise InputError(f"{path}: --block needs a history")
    from pubsub_emulator.inspection import files

    if path.suffix == ".toml":
        return files.scenario(path, rules)
    with path.open("rb") as file:
        is_parquet = file.read(4) == b"PAR1"
    if is_parquet:
        from pubsub_emulator.inspection.parquet import parquet

        return parquet(path)
    kind = kind_of(parse_json(read_bytes(path, error=InputError), f"{path}: {NO_TOML}", InputError))
    readers = {
        "session": files.session,
        "case": files.case,
        "difference": files.difference,
        "fixture": files.fixture,
        "relay proof": files.relay_proof,
        "finding": files.finding,
    }
    if kind is None:
        raise InputError(f"{path}: not {_KNOWN}")
    return readers[kind](path, rules)


def kind_of(content: object) -> str | None:
    """Return the kind of a JSON document of this program, such as `case` or `fixture`.

    Returns `None` for any other document.
    """
    from pubsub_emulator.laboratory.differences import is_difference

    if not isinstance(content, dict):
        return None
    for kind in ("session", "case", "finding"):
        if str(content.get("format", "")).startswith(f"pubsub-{kind}/"):
            return kind
    if is_difference(content):
        return "difference"
    if {"version", "candidate", "expected"} <= content.keys():
        return "fixture"
    return "relay proof" if "trieNodes" in content else None


def _folder(path: Path, block: str | None, rules: Rules) -> View:
    """Return the view of a folder, or with `block` that of a block in it. Raises `InputError`."""
    from pubsub_emulator.inspection import folders
    from pubsub_emulator.spark_audit.history.manifest import history_folder

    history = history_folder(path)
    if history is not None:
        if block is None:
            return folders.history(history)
        return folders.history_block(history, block, rules)
    if block is not None:
        raise InputError(f"{path}: --block needs a history")
    if (path / "run_report.json").is_file():
        return folders.audit(path)
    if any(path.glob("*.json")):
        return folders.fixtures(path)
    raise InputError(f"{path}: neither a history, nor an audit, nor a folder of fixtures")

"""Which kind of file or folder a path is, by its content, and which function shows it."""

from pathlib import Path

from pubsub_emulator.cli.inspect.view import InspectError, View
from pubsub_emulator.emulator.untrusted import parse_json, read_bytes

_KNOWN = (
    "a scenario, session, fixture, case of a campaign, difference of two verifiers, relay proof, finding "
    "or Parquet file"
)


def look(path: Path, block: str | None = None) -> View:
    """Inspect a path; `block` is `[NETWORK/]CHAIN:NUMBER` of a history.

    Raises `InspectError` for what nobody here reads or wrote, and what the reader of its kind raises.
    """
    if path.is_dir():
        return _folder(path, block)
    if block is not None:
        raise InspectError(f"{path}: --block needs a history")
    from pubsub_emulator.cli.inspect import files
    from pubsub_emulator.laboratory.differences import is_difference

    if path.suffix == ".toml":
        return files.scenario(path)
    if _begins_with(path, b"PAR1"):
        from pubsub_emulator.cli.inspect.parquet import parquet

        return parquet(path)
    content = _json(path)
    if str(content.get("format", "")).startswith("pubsub-session/"):
        return files.session(path)
    if str(content.get("format", "")).startswith("pubsub-case/"):
        return files.case(path)
    if is_difference(content):
        return files.difference(path)
    if {"version", "candidate", "expected"} <= content.keys():
        return files.fixture(path)
    if "trieNodes" in content:
        return files.relay_proof(path)
    if str(content.get("format", "")).startswith("pubsub-finding/"):
        return files.finding(path)
    raise InspectError(f"{path}: not {_KNOWN}")


def _begins_with(path: Path, magic: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(magic)) == magic


def _json(path: Path) -> dict[str, object]:
    content = parse_json(read_bytes(path, error=InspectError), f"{path}: no TOML by its name, and", InspectError)
    if not isinstance(content, dict):
        raise InspectError(f"{path}: not {_KNOWN}")
    return content


def _folder(path: Path, block: str | None) -> View:
    from pubsub_emulator.cli.inspect import folders

    found = folders.history_folder(path)
    if found is not None:
        return folders.history(found) if block is None else folders.history_block(found, block)
    if block is not None:
        raise InspectError(f"{path}: --block needs a history")
    if (path / "run_report.json").is_file():
        return folders.audit(path)
    if any(path.glob("*.json")):
        return folders.fixtures(path)
    raise InspectError(f"{path}: neither a history, nor an audit, nor a folder of fixtures")

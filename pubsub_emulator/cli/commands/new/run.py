"""`pubsub new`: writes a commented scenario, lists the project's, prints the schema for editors."""

import json
from pathlib import Path
from typing import Final

from pubsub_emulator.cli.screen import files, say, table
from pubsub_emulator.emulator.scenario.file import (
    BUNDLE,
    load_bundled,
    parse_scenario,
    scenario_schema,
)
from pubsub_emulator.files.atomic import write_whole
from pubsub_emulator.files.errors import InputError
from pubsub_emulator.files.program import program

TEMPLATE: Final = Path(__file__).with_name("scenario_template.toml")
SCHEMA: Final = "scenario.schema.json"


def list_scenarios() -> None:
    """Print the scenarios that come with the project, with their descriptions."""
    scenarios = [(name, load_bundled(name)) for name in BUNDLE.names()]
    rows = ((name, scenario.relay_blocks, scenario.description) for name, scenario in scenarios)
    table("scenarios that come with the project", ("name", "relay blocks", "description"), rows)
    say(
        "`pubsub new my.toml --like NAME` copies one; every command that needs a scenario accepts"
        " its name, too"
    )


def schema_text() -> str:
    """Return the content of the JSON Schema's file."""
    return json.dumps(scenario_schema(), indent=2, ensure_ascii=False) + "\n"


def write_scenario(path: Path, like: str | None, *, schema: bool) -> None:
    """Write a scenario that can be run at once, and with `schema` the JSON Schema beside it.

    Raises `InputError` if the file exists or does not end with .toml, and `SettingsError` if `like`
    is not a scenario's name.
    """
    if path.exists():
        raise InputError(f"{path}: the file exists; name another one or remove it")
    if path.suffix != ".toml":
        raise InputError(f"{path}: the name of a scenario file must end with .toml")
    stem = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in path.stem)
    name = stem.lstrip("-") or "mine"
    text = (
        TEMPLATE.read_text(encoding="utf-8").replace("NAME", name)
        if like is None
        else BUNDLE.text(like)
    )
    if schema:
        text = f"#:schema ./{SCHEMA}\n{text}"
    parse_scenario(text, str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    written = [(path, "a scenario; docs/scenarios.md has every field")]
    if schema:
        written.append(
            (path.with_name(SCHEMA), "for editors that know `#:schema`, such as those with Taplo")
        )
        write_whole(path.with_name(SCHEMA), schema_text())
    write_whole(path, text)
    files("written:", written)
    say(f"next: {program()} step {path}, or {program()} run {path} --out out/{name}")

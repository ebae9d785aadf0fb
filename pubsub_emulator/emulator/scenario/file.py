"""Reads scenario files and writes their JSON Schema.

Files are TOML. Errors name the file, line and field. Editors use the schema for completion and
checks.
"""

from functools import partial
from pathlib import Path
from typing import Final

from pubsub_emulator.emulator.scenario.check import check
from pubsub_emulator.emulator.scenario.model import Scenario
from pubsub_emulator.files.settings import Bundle, parse, read, validated
from pubsub_emulator.files.settings.fields import add_meanings
from pubsub_emulator.primitives.draws import MILLION
from pubsub_emulator.runtime.rules import SHIPPED, Rules

BUNDLE: Final = Bundle("pubsub_emulator.emulator")
"""The scenarios that are part of the package."""

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
"""The version of JSON Schema."""


def load_scenario(path: Path, rules: Rules = SHIPPED) -> Scenario:
    """Return the scenario in a file.

    Raises `SettingsError` if the file cannot be read or the scenario cannot run under `rules`.
    """
    return read(path, Scenario, partial(check, rules=rules))


def parse_scenario(text: str, file: str, rules: Rules = SHIPPED) -> Scenario:
    """Return the scenario in a TOML text, which errors call `file`. Raises `SettingsError`."""
    return parse(text, file, Scenario, partial(check, rules=rules))


def parse_document(document: object, file: str, rules: Rules = SHIPPED) -> Scenario:
    """Return the scenario of a parsed document, as written by `Scenario.document`.

    Raises `SettingsError`.
    """
    return validated(document, file, Scenario, partial(check, rules=rules))


def load_bundled(name: str, rules: Rules = SHIPPED) -> Scenario:
    """Return a scenario of the package by its name. Raises `SettingsError`."""
    return parse_scenario(BUNDLE.text(name), f"{name}.toml", rules)


def find_scenario(name: str, rules: Rules = SHIPPED) -> Scenario:
    """Return the scenario in a file, or the bundled one of that name, to be run under `rules`.

    Raises `SettingsError`.
    """
    if not name.endswith(".toml") and (name in BUNDLE.names() or not Path(name).exists()):
        return load_bundled(name, rules)
    return load_scenario(Path(name), rules)


def scenario_schema() -> dict[str, object]:
    """Return the JSON Schema of scenario files, made from the models.

    A document that the schema accepts can still have contradicting fields.
    """
    add_meanings(Scenario)
    made = Scenario.model_json_schema(mode="validation")
    schema = {"$schema": DIALECT, **made, "title": "Scenario of pubsub-emulator"}
    _as_written(schema)
    return schema


def _as_written(value: object) -> None:
    """Change the defaults in a schema to their form in files.

    In files, shares are numbers from 0 to 1. The defaults of whole tables are removed.
    """
    if isinstance(value, list):
        for item in value:
            _as_written(item)
    if not isinstance(value, dict):
        return
    default = value.get("default")
    if isinstance(default, dict | list) and default:
        del value["default"]
    elif value.get("type") == "number" and isinstance(default, int):
        value["default"] = default / MILLION
    for inner in value.values():
        _as_written(inner)

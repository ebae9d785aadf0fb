"""Reads scenario files (TOML), whose errors name file, line and field, and makes the JSON Schema for their editors."""

from pathlib import Path
from typing import Final

from pubsub_emulator.collator.draws import MILLION
from pubsub_emulator.emulator.scenario.check import check
from pubsub_emulator.emulator.scenario.model import Scenario
from pubsub_emulator.emulator.settings import Bundle, parse, read, validated
from pubsub_emulator.emulator.settings.fields import add_meanings

BUNDLE: Final = Bundle("pubsub_emulator.emulator")
"""The scenarios that come with the project."""

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def load_scenario(path: Path) -> Scenario:
    """The scenario in a file. Raises `SettingsError`, also if the file cannot be read."""
    return read(path, Scenario, check)


def parse_scenario(text: str, file: str) -> Scenario:
    """The scenario that TOML text describes; `file` is its name in errors. Raises `SettingsError`."""
    return parse(text, file, Scenario, check)


def parse_document(document: object, file: str) -> Scenario:
    """The scenario of a parsed document; the inverse of `Scenario.document`. Raises `SettingsError`."""
    return validated(document, file, Scenario, check)


def load_bundled(name: str) -> Scenario:
    """A scenario that comes with the project. Raises `SettingsError`."""
    return parse_scenario(BUNDLE.text(name), f"{name}.toml")


def scenario_schema() -> dict[str, object]:
    """The schema, made from the models. A document that it accepts can still have contradicting fields."""
    add_meanings(Scenario)
    made = Scenario.model_json_schema(mode="validation")
    schema = {"$schema": DIALECT, **made, "title": "Scenario of pubsub-emulator"}
    _as_written(schema)
    return schema


def _as_written(value: object) -> None:
    """Change defaults to their form in files: shares from 0 to 1, and none for whole tables."""
    if isinstance(value, list):
        for each in value:
            _as_written(each)
    if not isinstance(value, dict):
        return
    default = value.get("default")
    if isinstance(default, dict | list) and default:
        del value["default"]
    elif value.get("type") == "number" and isinstance(default, int):
        value["default"] = default / MILLION
    for each in value.values():
        _as_written(each)

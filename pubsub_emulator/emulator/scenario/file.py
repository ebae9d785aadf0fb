"""Reads scenario files (TOML) into checked scenarios. Errors name file, line and field."""

from pathlib import Path
from typing import Final

from pubsub_emulator.emulator.scenario.check import check
from pubsub_emulator.emulator.scenario.model import Scenario
from pubsub_emulator.emulator.settings import Bundle, parse, read, validated

BUNDLE: Final = Bundle("pubsub_emulator.emulator")
"""The scenarios that come with the project."""


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

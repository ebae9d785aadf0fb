"""Settings files: TOML that people write, read into checked models. Errors name file, line and field."""

from pubsub_emulator.emulator.settings.model import Location, Misplaced, Model, Problem, SettingsError, StrictModel
from pubsub_emulator.emulator.settings.reading import Bundle, parse, read, validated

__all__ = [
    "Bundle",
    "Location",
    "Misplaced",
    "Model",
    "Problem",
    "SettingsError",
    "StrictModel",
    "parse",
    "read",
    "validated",
]

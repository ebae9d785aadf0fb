"""Settings files: TOML that people write, read into checked models.

Errors name file, line and field.
"""

from pubsub_emulator.files.settings.fields import Location, Misplaced, Model, StrictModel
from pubsub_emulator.files.settings.reading import (
    Bundle,
    Problem,
    SettingsError,
    parse,
    read,
    validated,
)

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

"""Names that are in other rooms now. They work in this release, and warn."""

import warnings
from importlib import import_module
from typing import Final

_HOMES: Final = {
    **dict.fromkeys(
        ("Doing", "Grid", "Line", "Shown", "made_safe"),
        "pubsub_emulator.files.pages",
    ),
    **dict.fromkeys(
        ("PREVIEW", "printable", "words"),
        "pubsub_emulator.runtime.framework.words",
    ),
}


def __getattr__(name: str) -> object:
    """Return a name from its new module."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    message = f"{__name__}.{name} is now {home}.{name}"
    warnings.warn(message, DeprecationWarning, stacklevel=2)
    found: object = getattr(import_module(home), name)
    return found

"""`pubsub vectors check`: shows which cases of files hold."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pubsub_emulator.cli.screen import say, say_document
from pubsub_emulator.laboratory.vectors import CheckedFile, check_files

_SHOWN: Final = 10


def check_paths(paths: Sequence[Path], *, as_json: bool) -> bool:
    """Check all files, print the results, and return whether every case passes.

    Raises `InputError` before anything is checked.
    """
    results = check_files(paths)
    if as_json:
        say_document(json.dumps([result.document() for result in results], indent=1))
    else:
        for result in results:
            _show(result)
    return not any(result.failed for result in results)


def _show(result: CheckedFile) -> None:
    """Print how many cases of a file passed, and why the first others failed."""
    unchecked = (
        f"; not computed here: {', '.join(result.format.unchecked)}"
        if result.format.unchecked
        else ""
    )
    say(
        f"{result.path}: {result.format.name}: {result.passed} passed, {len(result.failed)}"
        f" failed{unchecked}"
    )
    for name, reason in result.failed[:_SHOWN]:
        say(f"  {name}: {reason}")
    if len(result.failed) > _SHOWN:
        say(f"  and {len(result.failed) - _SHOWN} more")

"""`pubsub vectors check`: shows which cases of files hold."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pubsub_emulator.cli.screen import say, say_document
from pubsub_emulator.laboratory.vectors import Checked, check_files

_SHOWN: Final = 10


def check_paths(paths: Sequence[Path], *, as_json: bool) -> bool:
    """Check all files.

    Returns whether every case passes. Raises `InputError` before anything is checked.
    """
    results = check_files(paths)
    if as_json:
        say_document(json.dumps([each.document() for each in results], indent=1))
    else:
        for each in results:
            _show(each)
    return not any(each.failed for each in results)


def _show(each: Checked) -> None:
    unchecked = (
        f"; not computed here: {', '.join(each.format.unchecked)}" if each.format.unchecked else ""
    )
    say(
        f"{each.path}: {each.format.name}: {each.passed} passed, {len(each.failed)}"
        f" failed{unchecked}"
    )
    for name, reason in each.failed[:_SHOWN]:
        say(f"  {name}: {reason}")
    if len(each.failed) > _SHOWN:
        say(f"  and {len(each.failed) - _SHOWN} more")

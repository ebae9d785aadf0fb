"""The words by which a user calls this program."""

import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

NAME: Final = "pubsub"
_COMMAND: Final = re.compile(r"(?<![\w/.-])pubsub(?= [a-z])")


def program() -> str:
    """Return the word by which a user can call this program.

    It is `pubsub` if that is on PATH, and otherwise the relative path of the script beside this
    Python.
    """
    script = Path(sys.executable).with_name(NAME)
    if shutil.which(NAME) is not None or not script.is_file():
        return NAME
    here = Path.cwd()
    near = script.is_relative_to(here) and script.parent != here
    return shlex.quote(str(script.relative_to(here) if near else script))


def callable_here(hint: str) -> str:
    """Replace `pubsub` in a hint such as `pubsub prism --help` by `program()`."""
    return _COMMAND.sub(lambda _: program(), hint)

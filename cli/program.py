"""The program itself: what a user types to call it, and the process that it is."""

import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

import click

NAME: Final = "pubsub"
_COMMAND: Final = re.compile(r"(?<![\w/.-])pubsub(?= [a-z])")


class OwnProcess:
    """What click's context holds where this program is the process, and no test or host calls it."""


def be_small() -> None:
    """Spare memory that Arrow would take, if this process is the program's own."""
    context = click.get_current_context(silent=True)
    if context is not None and context.find_object(OwnProcess) is not None:
        from pubsub_emulator.spark_audit.engine.memory import spare

        spare()


def program() -> str:
    """`pubsub` if it is on PATH, else the relative path of the script beside this interpreter."""
    script = Path(sys.executable).with_name(NAME)
    if shutil.which(NAME) is not None or not script.is_file():
        return NAME
    here = Path.cwd()
    near = script.is_relative_to(here) and script.parent != here
    return shlex.quote(str(script.relative_to(here) if near else script))


def callable_here(hint: str) -> str:
    """A hint such as `pubsub serve, then pubsub prism --help`, with `pubsub` replaced by `program()`."""
    return _COMMAND.sub(lambda _: program(), hint)

"""`pubsub clean`."""

import sys
from pathlib import Path

import click

from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.contents.shown import age_words, described, size_words
from pubsub_emulator.cli.exits import INFRASTRUCTURE
from pubsub_emulator.cli.screen import say
from pubsub_emulator.files.errors import InputError
from pubsub_emulator.files.shown import safe
from pubsub_emulator.inspection.outputs import Output, find, removable
from pubsub_emulator.inspection.removal import remove


def clean(folder: Path, now: float, *, unfinished: bool, yes: bool) -> Result:
    """Remove the outputs in a folder that are not kept, and that the user agrees to remove.

    Raises `InputError` if the user must be asked and standard input is not a terminal.
    """
    offered = removable(find(folder, now).outputs, unfinished=unfinished)
    if not offered:
        say(f"{folder}: nothing to remove")
    elif not yes and not _is_asked():
        raise InputError(
            f"{folder}: outputs that can be removed: {len(offered):,}; there is no terminal to ask"
            " at, so repeat the command with --yes"
        )
    removed: list[Output] = []
    failed = False
    for output in offered:
        if not yes and not _agreed(output, now):
            continue
        try:
            gone = remove(output, now)
        except OSError as error:
            failed = True
            say(f"{output.path}: not removed: {error.strerror or error}", aside=True)
            continue
        if gone:
            removed.append(output)
            say(f"removed {output.path}, {size_words(output.size)}")
        else:
            say(f"{output.path}: not removed: it was changed meanwhile")
    return Result(
        {"removed": [described(output) for output in removed]}, INFRASTRUCTURE if failed else 0
    )


def _is_asked() -> bool:
    """Return whether somebody can answer a question."""
    return sys.stdin.isatty()


def _agreed(output: Output, now: float) -> bool:
    """Ask whether to remove an output. `now` is the present time in seconds since 1970."""
    facts = ", ".join(
        (
            output.kind.value,
            size_words(output.size),
            age_words(now - output.changed),
            output.made_by,
        )
    )
    return click.confirm(safe(f"remove {output.path} ({facts})?"), err=True)

"""`pubsub clean`: its arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli.base.extras import Command
from pubsub_emulator.cli.base.options import option
from pubsub_emulator.cli.base.paths import NamedPath
from pubsub_emulator.cli.base.result import Result, with_json_option


@click.command(
    "clean",
    cls=Command,
    epilog=(
        "\b\nExamples:\n  pubsub clean out\n  pubsub clean out --unfinished --yes\n\n"
        "\b\nExit codes:\n  0 done, 2 there is no terminal to ask at, 4 an output could not be"
        " removed\n"
    ),
)
@click.argument("folder", type=NamedPath(exists=True, file_okay=False), default=".")
@option("--unfinished", is_flag=True, help="Only unfinished outputs of stopped commands.")
@option("--yes", is_flag=True, help="Remove without asking.")
@with_json_option
def command(folder: Path, *, unfinished: bool, yes: bool) -> Result:
    """Remove outputs in a FOLDER that can be made again, and ask before each.

    The default is the current folder. Runs, audits whose history still exists, and the unfinished
    outputs of stopped commands can be removed. Histories, sessions and findings are kept, and so
    are folders that contain anything else. `pubsub list` shows everything.
    """
    from time import time

    from pubsub_emulator.cli.contents.cleaning import clean

    return clean(folder, time(), unfinished=unfinished, yes=yes)

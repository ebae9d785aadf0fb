"""`pubsub list`: its arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli.base.extras import Command
from pubsub_emulator.cli.base.paths import NamedPath
from pubsub_emulator.cli.base.result import Result, with_json_option


@click.command(
    "list", cls=Command, epilog="\b\nExamples:\n  pubsub list\n  pubsub list out --json\n"
)
@click.argument("folder", type=NamedPath(exists=True, file_okay=False), default=".")
@with_json_option
def command(folder: Path) -> Result:
    """Show the runs, histories, audits, sessions and findings in a FOLDER and the folders below.

    The default is the current folder. For each output there is its size, its age, the command that
    made it, and whether `pubsub clean` offers to remove it. Outputs are recognised by their
    content. Links are not followed.
    """
    from time import time

    from pubsub_emulator.cli.contents.shown import document, show_outputs
    from pubsub_emulator.inspection.outputs import find

    now = time()
    outputs = find(folder, now)
    show_outputs(folder, outputs, now)
    return Result(document(outputs))

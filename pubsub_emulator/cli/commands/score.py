"""`pubsub score`: its arguments and help."""

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import Command, Need
from pubsub_emulator.cli.base.result import Result, with_json_option


@click.command(
    "score",
    cls=Command,
    needs=(Need("audit"),),
    epilog=(
        "\b\nExample:\n  pubsub score out/large out/large-audit\n\n\b\nExit codes:\n  0 exactly the"
        " planted cheats were found, 1 too few or too many, 2 HISTORY does not list its planted\n "
        " cheats, 3 that list is not readable\n"
    ),
)
@click.argument("history", type=options.HISTORY)
@click.argument("audit", type=options.HISTORY)
@with_json_option
def command(history: str, audit: str) -> Result:
    """Compare the cheats planted in HISTORY with the findings of AUDIT.

    AUDIT is the output of `pubsub audit`.
    """
    from pubsub_emulator.cli.commands.simulate.run import run_score

    return run_score(history, audit)

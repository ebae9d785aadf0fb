"""`pubsub score`: its arguments and help."""

import click

from pubsub_emulator.cli import options
from pubsub_emulator.cli.result import Result, with_json_option


@click.command(
    "score",
    epilog="\b\nExample:\n  pubsub score out/large out/large-audit\n"
    "\n\b\nExit codes:\n  0 every planted cheat was found and nothing else, 1 not so, 2 HISTORY does not say which\n"
    "  cheats were planted, 3 the truth is not readable\n",
)
@click.argument("history", type=options.HISTORY)
@click.argument("audit", type=options.HISTORY)
@with_json_option
def command(history: str, audit: str) -> Result:
    """Hold the findings of AUDIT, the output of `pubsub audit`, against the cheats that HISTORY says were planted."""
    from pubsub_emulator.cli.simulate import run_score

    return run_score(history, audit)

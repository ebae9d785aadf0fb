"""`pubsub tour`: its arguments and help."""

import click

from pubsub_emulator.cli.base.extras import Command, Need
from pubsub_emulator.cli.base.result import Result, with_json_option


@click.command(
    "tour",
    cls=Command,
    needs=(Need("prism"),),  # acts of other distributions
    epilog="\b\nExamples:\n  pubsub tour\n  pubsub tour --json\n",
)
@with_json_option
def command() -> Result:
    """Show every system in a minute: short acts on one network, and one digest.

    The acts are relay-chain pub-sub, PRISM, ICRC-72, its replay, and the distributor. Each prints
    what happened and which command to try next.
    """
    from pubsub_emulator.cli.commands.tour.run import take_tour

    return take_tour()

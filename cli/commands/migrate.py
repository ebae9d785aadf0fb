"""`pubsub migrate`: its arguments and help."""

import click

from pubsub_emulator.cli import options
from pubsub_emulator.cli.result import Result, with_json_option


@click.command("migrate", epilog="\b\nExample:\n  pubsub migrate out/old/history\n")
@click.argument("history", type=options.HISTORY)
@with_json_option
def command(history: str) -> Result:
    """Bring a HISTORY of an older format up to the present one, in its place.

    Every file is checked against its manifest first; data stays as it is, manifests are written anew, each naming the
    one before it. A migration that was interrupted goes on with the same command. Outputs of audits are not migrated:
    an audit makes them again.
    """
    from pubsub_emulator.cli.migrate import run_migrate

    return run_migrate(history)

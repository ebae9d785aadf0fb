"""`pubsub migrate`: its arguments and help."""

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.result import Result, with_json_option


@click.command("migrate", epilog="\b\nExample:\n  pubsub migrate out/old/history\n")
@click.argument("history", type=options.HISTORY)
@with_json_option
def command(history: str) -> Result:
    """Convert a HISTORY of an older format to the present one, in place.

    First, every file is checked against its manifest. Data files do not change. Manifests are written again, each
    naming the previous one. The same command continues an interrupted migration. Outputs of audits are not migrated;
    audit again instead. An audit judges blocks by the present rules, whichever version made them.
    """
    from pubsub_emulator.cli.commands.migrate.run import run_migrate

    return run_migrate(history)

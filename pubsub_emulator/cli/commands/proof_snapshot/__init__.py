"""`pubsub proof-snapshot`: its arguments and help."""

import sys
from pathlib import Path

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import Command
from pubsub_emulator.cli.base.options import option
from pubsub_emulator.cli.exits import FINDINGS


@click.command(
    "proof-snapshot",
    cls=Command,
    epilog=(
        "\b\nExamples:\n  pubsub proof-snapshot prices.toml --out prices.proof-snapshot\n"
        "  pubsub proof-snapshot prices.toml --check prices.proof-snapshot --tolerance 2%\n"
        "  pubsub proof-snapshot prices.toml --check prices.proof-snapshot --diff\n"
        "\n\b\nExit codes:\n  0 written, or within the tolerance, 1 exceeded\n"
    ),
)
@click.argument("scenario", shell_complete=options.complete_scenario)
@option("--out", type=options.NEW_FILE_AND_FOLDER, help="File to write proof sizes to.")
@option("--check", "kept", type=options.FILE, help="File to compare proof sizes with.")
@option("--tolerance", default="0%", help="The share by which a size may grow.")
@option(
    "--diff",
    is_flag=True,
    help="With --check: show every changed figure, including those within the tolerance.",
)
def command(
    scenario: str, out: Path | None, kept: Path | None, tolerance: str, *, diff: bool
) -> None:
    """Write the proof sizes of SCENARIO to a small text file, or check whether they have grown.

    SCENARIO is a TOML file or a bundled name. A changed count, for example of deliveries, always
    exceeds the tolerance, since other work was done.
    """
    from pubsub_emulator.cli.commands.proof_snapshot.run import check_snapshot, write_snapshot

    if (out is None) == (kept is None):
        raise click.UsageError("give either --out or --check")
    if diff and kept is None:
        raise click.UsageError("--diff goes with --check")
    if out is not None:
        write_snapshot(scenario, out)
    elif kept is not None and check_snapshot(scenario, kept, tolerance, diff=diff):
        sys.exit(FINDINGS)

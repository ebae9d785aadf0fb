"""`pubsub fixtures`: its arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli import options


@click.command(
    "fixtures",
    epilog="\b\nExamples:\n  pubsub fixtures --out out/fixtures\n  pubsub replay out/fixtures\n",
)
@options.new_out
def command(out: Path) -> None:
    """Write test vectors for any implementation: blocks with their pre-state, proof, verdict and post-state."""
    from pubsub_emulator.cli.fixtures import run_fixtures

    run_fixtures(out)

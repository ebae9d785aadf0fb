"""`pubsub run`: its arguments and help."""

from pathlib import Path

import click

from cli import options


@click.command(
    "run",
    epilog="\b\nExamples:\n  pubsub run my-network.toml --out out/my-network\n  pubsub run demo --out out/demo-again\n",
)
@click.argument("scenario")
@options.new_out
def command(scenario: str, out: Path) -> None:
    """Run a network from SCENARIO, a TOML file or the name of one that comes with the project, and keep its history."""
    from cli.run import run_scenario

    run_scenario(scenario, out)

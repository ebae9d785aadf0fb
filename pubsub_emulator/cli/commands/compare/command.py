"""`pubsub compare`: its arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.result import Result, with_json_option


@click.command(
    "compare",
    epilog="\b\nExamples:\n  pubsub compare shipped my_rules.py --scenario my-network.toml\n"
    "  pubsub compare out/one out/two --tolerance 5\n  pubsub compare git:main my-network.toml --markdown\n"
    "\n\b\nExit codes:\n  0, and 1 if a figure changes by more than --tolerance\n",
)
@click.argument("sides", nargs=-1, required=True, metavar="A B …")
@options.rules
@click.option(
    "--scenario",
    default="demo",
    show_default=True,
    shell_complete=options.complete_scenario,
    help="What is run with files of rules, `shipped` and git revisions: a TOML file or a bundled name.",
)
@click.option("--tolerance", type=click.FloatRange(min=0), metavar="PERCENT", help="Exit with code 1 beyond it.")
@click.option("--all", "every", is_flag=True, help="Also show the figures that do not differ.")
@click.option("--plot", type=options.OUT, help="Folder for pictures of the changes.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the table for a pull request.")
@with_json_option
def command(
    sides: tuple[str, ...], scenario: str, tolerance: float | None, plot: Path | None, *, every: bool, as_markdown: bool
) -> Result:
    """Compare A with B and others: a table of the figures that differ, then the first block that differs, and why.

    Each is a folder of `pubsub run`, a history, a folder of `pubsub audit`, a scenario, a file of rules, `shipped` for
    the shipped rules, or git:REVISION of this repository. Scenarios, rules and revisions are run first.
    """
    if len(sides) < 2:
        raise click.UsageError("two or more are compared, not one")
    from pubsub_emulator.cli.commands.compare.run import run_compare

    return run_compare(sides, scenario, tolerance, plot, every=every, as_markdown=as_markdown)

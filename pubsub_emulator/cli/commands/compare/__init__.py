"""`pubsub compare`: its arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import Command, Need
from pubsub_emulator.cli.base.options import option
from pubsub_emulator.cli.base.result import Result, with_json_option


def _has_folder(places: tuple[str, ...]) -> bool:
    """Return whether a run, a history or an audit is compared, and not only scenarios and rules."""
    return any(Path(place).is_dir() for place in places)


@click.command(
    "compare",
    cls=Command,
    needs=(Need("audit", "places", _has_folder), Need("plot", "plot")),
    epilog=(
        "\b\nExamples:\n  pubsub compare shipped my_rules.py --scenario my-network.toml\n  pubsub"
        " compare out/one out/two --tolerance 5\n  pubsub compare git:main my-network.toml"
        " --markdown\n\n\b\nExit codes:\n  0, and 1 if a figure changes by more than --tolerance\n"
    ),
)
@click.argument("places", nargs=-1, required=True, metavar="A B …")
@options.rules
@option(
    "--scenario",
    default="demo",
    shell_complete=options.complete_scenario,
    help=(
        "Scenario for files of rules, `shipped` and git revisions: a TOML file or a bundled name."
    ),
)
@option(
    "--tolerance",
    type=click.FloatRange(min=0),
    metavar="PERCENT",
    help="Exit with code 1 if a figure changes by more.",
)
@options.own_cheats
@option("--all", "every", is_flag=True, help="Also show the figures that do not differ.")
@option("--plot", type=options.OUT, help="Folder for pictures of the changes.")
@option("--markdown", is_flag=True, help="Print the table for a pull request.")
@with_json_option
def command(**given: object) -> Result:
    """Compare A with B and others: figures that differ, then the first block that differs and why.

    Each is a folder of `pubsub run`, a history, a folder of `pubsub audit`, a scenario, a file of
    rules, `shipped` for the shipped rules, or git:REVISION of this repository. Scenarios, rules and
    revisions are run first. A revision does not know the strategies of --cheats.
    """
    from pubsub_emulator.cli.commands.compare.run import run_compare

    return options.filled(run_compare, given)

"""`pubsub explore`: its arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli import options


@click.command(
    "explore",
    epilog="\b\nExamples:\n  pubsub explore demo --out demo.html\n  pubsub explore mine.toml --out out/mine.html\n",
)
@click.argument("scenario", shell_complete=options.complete_scenario)
@options.own_cheats
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The page to write; an older one there is replaced.",
)
def command(scenario: str, out: Path) -> None:
    """Run a network from SCENARIO and write the page of its run: every block, its proof and where its bytes went.

    SCENARIO is a TOML file or the name of one that comes with the project. The page is one HTML file that opens
    offline. Equal scenarios give equal pages, so a run of `pubsub run` is explored by its scenario.
    """
    from pubsub_emulator.cli.explore import write_explorer

    write_explorer(scenario, out)

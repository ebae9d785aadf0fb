"""`pubsub vectors`: its command, its arguments and help."""

import sys
from pathlib import Path

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.groups import Group
from pubsub_emulator.cli.base.options import option
from pubsub_emulator.cli.exits import FINDINGS


@click.group("vectors", cls=Group)
def command() -> None:
    """Check golden vectors, for other implementations of these systems."""


@command.command(
    "check",
    epilog=(
        "\b\nExamples:\n  pubsub vectors check tests/vectors/tries\n  pubsub vectors check"
        " my-vectors.json --json\n\n\b\nExit codes:\n  0 every case passes, 1 some fail, 2 a file"
        " has an unknown format\n"
    ),
)
@click.argument("paths", type=options.ANY, nargs=-1, required=True)
@option("--json", "as_json", is_flag=True, help="Print JSON on standard output.")
def check(paths: tuple[Path, ...], *, as_json: bool) -> None:
    """Compute every case of the vector files at PATHS again, and print how many pass.

    A folder means its .json files. Fields of a format that are not computed here are named.
    """
    from pubsub_emulator.cli.commands.vectors.run import check_paths

    if not check_paths(paths, as_json=as_json):
        sys.exit(FINDINGS)

"""`pubsub new`: its arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import Command
from pubsub_emulator.cli.base.options import option


@click.command(
    "new",
    cls=Command,
    epilog=(
        "\b\nExamples:\n  pubsub new mine.toml\n  pubsub new prices.toml --like oracle\n  pubsub"
        " new mine.toml --schema\n  pubsub new --list\n  pubsub new --schema >"
        " scenario.schema.json\n"
    ),
)
@click.argument("file", required=False, type=options.NEW_FILE_AND_FOLDER)
@option(
    "--like",
    metavar="NAME",
    shell_complete=options.complete_scenario,
    help="Copy a bundled scenario.",
)
@option(
    "--schema", is_flag=True, help="Also write the JSON Schema for editors; without FILE, print it."
)
@option("--list", "listing", is_flag=True, help="List the bundled scenarios and end.")
def command(file: Path | None, like: str | None, *, schema: bool, listing: bool) -> None:
    """Write a commented scenario to FILE, ready to run and to edit.

    A scenario defines who publishes what and how often, who subscribes, and who cheats.
    """
    from pubsub_emulator.cli.commands.new.run import list_scenarios, schema_text, write_scenario
    from pubsub_emulator.cli.screen import say_document

    if listing:
        list_scenarios()
    elif file is not None:
        write_scenario(file, like, schema=schema)
    elif schema and like is None:
        say_document(schema_text().rstrip("\n"))
    else:
        raise click.UsageError("FILE is missing, for example: pubsub new mine.toml")

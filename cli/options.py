"""Arguments and options that several commands have in common."""

from pathlib import Path
from typing import Final

import click
from click.shell_completion import CompletionItem

OUT: Final = click.Path(file_okay=False, path_type=Path)
FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER: Final = click.Path(exists=True, file_okay=False, path_type=Path)
ANY: Final = click.Path(exists=True, path_type=Path)

engine: Final = click.option(
    "--engine",
    type=click.Choice(["spark", "python"]),
    default="spark",
    show_default=True,
    help="What verifies; both come to the same rows, and plain Python starts at once.",
)
master: Final = click.option(
    "--master", default=None, help="Spark master; without one, Spark runs inside of this program."
)


def _load_cheats(_context: click.Context, _parameter: click.Parameter, files: tuple[Path, ...]) -> tuple[Path, ...]:
    if files:
        from pubsub_emulator.cli.cheats import load_strategies

        for path in files:
            load_strategies(path)
    return files


own_cheats: Final = click.option(
    "--cheats",
    type=FILE,
    multiple=True,
    is_eager=True,
    expose_value=False,
    callback=_load_cheats,
    metavar="FILE",
    help="Python file with strategies of your own, which then have a name; may be given repeatedly.",
)
new_out: Final = click.option("--out", type=OUT, required=True, help="Folder to make; it must not exist or be empty.")


def complete_scenario(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of the scenarios that come with the project, and files."""
    from pubsub_emulator.emulator.scenario.file import bundled_scenarios

    named = [CompletionItem(name) for name in bundled_scenarios() if name.startswith(incomplete)]
    return [*named, CompletionItem(incomplete, type="file")]


def complete_strategy(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Names of cheating strategies."""
    from pubsub_emulator.collator.cheats import STRATEGIES

    return [name for name in STRATEGIES if name.startswith(incomplete)]

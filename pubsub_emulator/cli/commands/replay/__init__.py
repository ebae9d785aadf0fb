"""`pubsub replay`: its arguments and help."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.result import Result, with_json_option

if TYPE_CHECKING:
    from pubsub_emulator.runtime.rules import Rules


@click.command(
    "replay",
    epilog=(
        "\b\nExamples:\n  pubsub replay out/surprises/omit-node-0f3c.json\n  pubsub replay"
        " out/fixtures\n\n\b\nExit codes:\n  0 all as expected, 1 surprises\n"
    ),
)
@click.argument("paths", type=options.ANY, nargs=-1, required=True)
@options.rules
@with_json_option
def command(paths: tuple[Path, ...], rules: "Rules") -> Result:
    """Replay fixtures, and the surprises and differences of `pubsub fuzz`.

    PATHS are JSON files, or folders of them. Surprises of a campaign with --rules are judged by
    the same rules.
    """
    from pubsub_emulator.cli.commands.replay.run import run_replay

    return run_replay(paths, rules)

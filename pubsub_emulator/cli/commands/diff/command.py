"""`pubsub diff`: its arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.result import Result, with_json_option


@click.command(
    "diff",
    epilog="\b\nExamples:\n  pubsub diff out/one/history out/two/history\n  pubsub diff out/fixtures their/fixtures\n"
    "\n\b\nExit codes:\n  0 equal, 1 different\n",
)
@click.argument("a", type=options.FOLDER)
@click.argument("b", type=options.FOLDER)
@with_json_option
def command(a: Path, b: Path) -> Result:
    """Find the first block, storage key and trie node that differ between two histories or folders of fixtures."""
    from pubsub_emulator.cli.commands.diff.run import run_diff

    return run_diff(a, b)

"""`pubsub diff`: its arguments and help."""

import sys
from pathlib import Path

import click

from cli import options
from cli.exits import FINDINGS


@click.command(
    "diff",
    epilog="\b\nExamples:\n  pubsub diff out/one/history out/two/history\n  pubsub diff out/fixtures their/fixtures\n"
    "\n\b\nExit codes:\n  0 equal, 1 different\n",
)
@click.argument("a", type=options.FOLDER)
@click.argument("b", type=options.FOLDER)
def command(a: Path, b: Path) -> None:
    """Find the first block, storage key and trie node in which A and B differ: histories, or folders of fixtures."""
    from cli.diff import run_diff

    if run_diff(a, b):
        sys.exit(FINDINGS)

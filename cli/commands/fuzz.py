"""`pubsub fuzz`: its arguments and help."""

import sys
from pathlib import Path

import click

from cli import options
from cli.exits import FINDINGS


@click.command(
    "fuzz",
    epilog="\b\nExamples:\n  pubsub fuzz --cases 20000 --seed 7\n"
    "  pubsub fuzz --cases 500 --strategy omit-node --strategy stale-root\n"
    "\n\b\nExit codes:\n  0 every verdict was the one due, 1 surprises\n",
)
@click.option("--cases", type=click.IntRange(min=0), default=5000, show_default=True, help="Cheats to try.")
@click.option("--seed", default="0", show_default=True, help="The same seed tries the same cheats.")
@click.option("--strategy", "strategies", multiple=True, metavar="NAME", help="Only this one; may be given repeatedly.")
@click.option("--out", type=options.OUT, default=Path("out/surprises"), show_default=True, help="Folder for surprises.")
@click.option("--list", "listing", is_flag=True, help="Show every strategy and end.")
def command(cases: int, seed: str, strategies: tuple[str, ...], out: Path, *, listing: bool) -> None:
    """Try cheats against the verifier: kept cases first, then new ones, alone and in combination.

    Every verdict is compared with the one that was due. What surprises is shrunk and written as a small file for
    `pubsub replay`.
    """
    from cli.fuzz import list_strategies, run_fuzz

    if listing:
        list_strategies()
    elif run_fuzz(cases, seed, strategies, out):
        sys.exit(FINDINGS)

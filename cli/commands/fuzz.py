"""`pubsub fuzz`: its arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli import options
from pubsub_emulator.cli.result import Result, tells


@click.command(
    "fuzz",
    epilog="\b\nExamples:\n  pubsub fuzz --cases 20000 --seed 7\n"
    "  pubsub fuzz --cases 500 --strategy omit-node --strategy stale-root\n"
    "  pubsub fuzz --cases 1000000 --seed 7 --master spark://127.0.0.1:7077\n"
    "\n\b\nExit codes:\n  0 every verdict was the one due, 1 surprises\n",
)
@click.option("--cases", type=click.IntRange(min=0), default=5000, show_default=True, help="Cheats to try.")
@click.option("--seed", default="0", show_default=True, help="The same seed tries the same cheats.")
@click.option(
    "--strategy",
    "strategies",
    multiple=True,
    metavar="NAME",
    help="Only this one; may be given repeatedly.",
    shell_complete=options.complete_strategy,
)
@options.own_cheats
@click.option("--out", type=options.OUT, default=Path("out/surprises"), show_default=True, help="Folder for surprises.")
@click.option(
    "--master",
    default=None,
    help="Spark master that tries them, for instance local[*]; without one, this process does.",
)
@click.option("--list", "listing", is_flag=True, help="Show every strategy and end.")
@tells
def command(
    cases: int, seed: str, strategies: tuple[str, ...], out: Path, master: str | None, *, listing: bool
) -> Result:
    """Try cheats against the verifier: kept cases first, then new ones, alone and in combination.

    Every verdict is compared with the one that was due. What surprises is shrunk and written as a small file for
    `pubsub replay`. The same seed tries the same cheats, wherever they are tried.
    """
    from pubsub_emulator.cli.fuzz import list_strategies, run_fuzz

    return list_strategies() if listing else run_fuzz(cases, seed, strategies, out, master)

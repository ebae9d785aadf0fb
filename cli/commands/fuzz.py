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
    "  pubsub fuzz --target fixture --target candidate --minutes 10 --out out/mutations\n"
    "  pubsub fuzz --target all --cases 100000\n"
    "  pubsub fuzz --cases 2000 --verifier 'interop/rust/target/release/replay --verify-proofs'\n"
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
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME",
    help="Mutate what this reader of strangers' files takes, instead of trying cheats; `all` for each of them.",
)
@click.option("--minutes", type=click.FloatRange(min=0), default=None, help="With --target: end after so many minutes.")
@click.option(
    "--verifier",
    metavar="CMD",
    default=None,
    help="Another verifier: a program that reads cases and answers verdicts, line by line; both judge every case.",
)
@click.option("--list", "listing", is_flag=True, help="Show every strategy, or with --target every target, and end.")
@tells
def command(  # noqa: PLR0917  # its options
    cases: int,
    seed: str,
    strategies: tuple[str, ...],
    out: Path,
    master: str | None,
    targets: tuple[str, ...],
    minutes: float | None,
    verifier: str | None,
    *,
    listing: bool,
) -> Result:
    """Try cheats against the verifier: kept cases first, then new ones, alone and in combination.

    Every verdict is compared with the one that was due. What surprises is shrunk and written as a small file for
    `pubsub replay`. The same seed tries the same cheats, wherever they are tried.

    With --target, files that a stranger may have made are mutated: every reader must take one or refuse it in its own
    words. Inputs that show something new are kept in the folder `corpus` of --out, and the next campaign starts there.
    """
    if targets:
        from pubsub_emulator.cli.fuzz_targets import list_targets, run_targets

        return list_targets() if listing else run_targets(targets, cases, seed, minutes, out)
    from pubsub_emulator.cli.fuzz import list_strategies, run_fuzz

    if verifier is not None and not listing:
        from pubsub_emulator.cli.verifier import run_verifier

        if master is not None:
            raise click.UsageError("--verifier runs in this process: leave --master out")
        return run_verifier(verifier, cases, seed, strategies, out)
    return list_strategies() if listing else run_fuzz(cases, seed, strategies, out, master)

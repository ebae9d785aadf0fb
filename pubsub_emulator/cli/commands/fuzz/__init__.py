"""`pubsub fuzz`: its arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.options import option, repeatable
from pubsub_emulator.cli.base.result import Result, with_json_option


@click.command(
    "fuzz",
    epilog=(
        "\b\nExamples:\n  pubsub fuzz --cases 20000 --seed 7\n  pubsub fuzz --cases 500 --strategy"
        " omit-node --strategy stale-root\n  pubsub fuzz --minutes 600 --corpus out/corpus\n "
        " pubsub fuzz --target fixture --target candidate --minutes 10 --out out/mutations\n "
        " pubsub fuzz --target all --cases 100000\n  pubsub fuzz --target icrc --cases 200 --out"
        " out/stories\n  pubsub fuzz --target icrc --replay out/stories/icrc-0123456789ab\n  pubsub"
        " fuzz --cases 2000 --verifier 'interop/rust/target/release/replay"
        " --verify-proofs'\n\n\b\nExit codes:\n  0 every verdict was as expected, 1 surprises\n"
    ),
)
@option(
    "--cases",
    type=click.IntRange(min=0),
    help="Cases to try: 5000 by default, or as many as --minutes allow.",
)
@option("--seed", default="0", help="The same seed tries the same cheats.")
@repeatable(
    "--strategy",
    "strategies",
    metavar="NAME",
    says="Only this one",
    shell_complete=options.complete_strategy,
)
@options.own_cheats
@options.rules
@option("--out", type=options.OUT, default=Path("out/surprises"), help="Folder for surprises.")
@option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME",
    help=(
        "Mutate the input of this reader of untrusted data, instead of trying cheats; `all` for"
        " every reader."
    ),
)
@option("--minutes", type=click.FloatRange(min=0), help="End after this many minutes.")
@option(
    "--corpus",
    type=options.OUT,
    help=(
        "Folder of cases that reached something new. The campaign starts from them, adds to them,"
        " and continues where the last one ended. With --verifier they are tried first, and none"
        " are added."
    ),
)
@option(
    "--replay",
    "again",
    type=options.FILE,
    help="With one --target: read this file, for instance a surprise, instead of mutating.",
)
@option(
    "--verifier",
    metavar="CMD",
    help=(
        "Another verifier: a program that reads cases and writes verdicts, line by line. Both judge"
        " every case."
    ),
)
@option(
    "--list",
    "listing",
    is_flag=True,
    help="List the strategies, or with --target the targets, and end.",
)
@with_json_option
def command(
    *, targets: tuple[str, ...], again: Path | None, listing: bool, **given: object
) -> Result:
    """Try cheats against the verifier: kept cases first, then new ones, alone and in combination.

    Every verdict is compared with the expected one. Surprises are shrunk; the smallest case of each
    group is written as a file for `pubsub replay`. The same seed tries the same cheats on any
    machine. docs/howto/fuzz-for-weeks.md says what to do with a surprise.

    With --target, files that a stranger may have made are mutated: every reader must take one or
    refuse it in its own words. Inputs that show something new are kept in the folder `corpus` of
    --out, and the next campaign starts there.
    """
    from pubsub_emulator.cli.commands.fuzz.campaigns import Campaign

    request = options.filled(Campaign, given)
    if again is not None or targets:
        from pubsub_emulator.cli.commands.fuzz.target_runs import (
            list_targets,
            replay_targets,
            run_targets,
        )

        if request.rules.digest:
            raise click.UsageError("--target reads files by the shipped rules and takes no --rules")
        if again is not None:
            return replay_targets(targets, again)
        if request.corpus is not None:
            raise click.UsageError("--target stores its corpus in --out and takes no --corpus")
        return list_targets() if listing else run_targets(targets, request)
    from pubsub_emulator.cli.commands.fuzz.run import list_strategies, run_fuzz, run_verifier

    if listing:
        return list_strategies()
    return (
        run_fuzz(request) if request.verifier is None else run_verifier(request.verifier, request)
    )

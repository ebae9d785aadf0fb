"""`pubsub run`: its arguments and help."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import Command, Need
from pubsub_emulator.cli.base.options import option
from pubsub_emulator.cli.base.result import Result, with_json_option

if TYPE_CHECKING:
    from pubsub_emulator.runtime.rules import Rules


@click.command(
    "run",
    cls=Command,
    needs=(Need("audit", "history"),),
    epilog=(
        "\b\nExamples:\n  pubsub run my-network.toml --out out/my-network\n  pubsub run demo --out"
        " out/demo-again\n  pubsub run my-network.toml --cheats my_cheats.py --out out/my-network\n"
        "  pubsub run my-network.toml --out out/my-network --json > figures.json\n  pubsub audit"
        " out/my-network/history --out out/my-audit --engine python\n  pubsub run demo --out"
        " out/again --history out/growing\n  pubsub run my-network.toml --rules my_rules.py --out"
        " out/my-network --watch\n  pubsub run session.json --out out/session\n"
    ),
)
@click.argument("scenario", shell_complete=options.complete_scenario)
@options.own_cheats
@options.rules
@option(
    "--out",
    type=options.OUT,
    required=True,
    help="Folder to create; only an earlier run in it is replaced.",
)
@option("--keep", is_flag=True, help="Do not replace an earlier run.")
@option(
    "--watch",
    is_flag=True,
    help="Run again when SCENARIO or the file of --rules changes, and compare.",
)
@option(
    "--explorer", is_flag=True, help="Also write the page of `pubsub explore`, OUT/explorer.html."
)
@option(
    "--history",
    type=options.AUDIT_OUT,
    metavar="HISTORY",
    help=(
        "Folder or URI to write the history to, segment by segment, for `pubsub audit HISTORY"
        " --follow`. By default it is written to OUT/history when the run ends."
    ),
)
@with_json_option
def command(
    scenario: str,
    out: Path,
    history: str | None,
    *,
    rules: "Rules",
    explorer: bool,
    keep: bool,
    watch: bool,
) -> Result:
    """Run a network from SCENARIO, a TOML file or a bundled name, and write its history.

    The file of a session, as `write` in `pubsub step` and `pubsub lab` save it, is played again,
    all its acts included. docs/scenarios.md has every field; `pubsub step SCENARIO` runs one step
    by step. The digest printed last is one hash over every relay block, candidate, verdict and
    delivery: equal runs have equal digests, on any machine.
    """
    from pubsub_emulator.cli.commands.run.run import run_again_and_again, run_scenario

    if watch:
        return run_again_and_again(
            scenario,
            rules,
            lambda now: run_scenario(scenario, out, history, explorer=explorer, rules=now),
        )
    return run_scenario(scenario, out, history, explorer=explorer, keep=keep, rules=rules)

"""`pubsub experiment`: its arguments and help."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import Command, Need
from pubsub_emulator.cli.base.options import option, repeatable
from pubsub_emulator.cli.base.result import Result, with_json_option

if TYPE_CHECKING:
    from pubsub_emulator.runtime.rules import Rules


@click.command(
    "experiment",
    cls=Command,
    needs=(Need("plot"),),
    epilog=(
        "\b\nExamples:\n  pubsub experiment --sweep keys=16,256,4096 --out out/keys\n  pubsub"
        " experiment --sweep update_rate=0,0.1,1 --set keys=1024 --cache none,slots --out"
        " out/rates\n  pubsub experiment --preset attacker --out out/attacker\n"
    ),
)
@option(
    "--sweep",
    "swept",
    metavar="FIELD=V1,V2,…",
    help="The field of the workload to vary, and its values.",
)
@repeatable("--set", "settings", metavar="FIELD=VALUE", says="Another field")
@option("--cache", "policies", default="none,nodes,slots", help="Cache policies to compare.")
@option("--y", default="pov", help="What the plot shows.")
@option(
    "--preset",
    type=click.Choice(["cache-policies", "latency", "unused-budget", "attacker"]),
    help="A predefined question instead of a sweep; docs/findings.md has the answers.",
)
@options.rules
@options.new_out
@with_json_option
def command(  # noqa: PLR0917  # click passes each option by name
    swept: str | None,
    settings: tuple[str, ...],
    policies: str,
    y: str,
    preset: str | None,
    rules: "Rules",
    out: Path,
) -> Result:
    """Measure what blocks cost and how long deliveries take; write tables and plots.

    Tables are CSV and JSON, plots are SVG and PNG. Rates are shares from 0 to 1 of the keys in each
    relay block, sizes are bytes. An unknown field name lists all fields.
    """
    from pubsub_emulator.cli.commands.experiment.run import parse_policies, run_question, run_sweep

    if (swept is None) == (preset is None):
        raise click.UsageError("give either --sweep or --preset")
    if preset is not None:
        return run_question(preset, out, rules)
    return run_sweep(swept or "", settings, parse_policies(policies), y, out, rules)

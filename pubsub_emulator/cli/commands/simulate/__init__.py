"""`pubsub simulate`: its arguments and help."""

from typing import TYPE_CHECKING

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import ON_SPARK, Command, Need
from pubsub_emulator.cli.base.options import option
from pubsub_emulator.cli.base.result import Result, with_json_option

if TYPE_CHECKING:
    from pubsub_emulator.runtime.rules import Rules


@click.command(
    "simulate",
    cls=Command,
    needs=(Need("audit"), *ON_SPARK),
    epilog=(
        "\b\nExamples:\n  pubsub simulate --networks 4 --blocks 1000 --seed 7 --out out/many"
        " --engine python\n  pubsub simulate --networks 100 --blocks 4000 --seed 7 --out out/large"
        " --master local[2]\n  pubsub audit out/large --out out/large-audit --master local[2]\n "
        " pubsub score out/large out/large-audit\n"
    ),
)
@option(
    "--networks",
    type=options.POSITIVE,
    required=True,
    help="Number of networks, each with its own relay chain.",
)
@option(
    "--blocks",
    type=options.POSITIVE,
    required=True,
    help=(
        "Parachain candidates per network, including refused ones. A network ends with the relay"
        " block that judges the last of them, so it has a few more."
    ),
)
@option("--seed", default="0", help="The same seed makes the same networks.")
@option(
    "--out",
    type=options.AUDIT_OUT,
    required=True,
    help="History to write; an interrupted run is continued.",
)
@option(
    "--cheat-rate",
    type=click.FloatRange(0, 0.5),
    default=0.04,
    help="Share of all turns at which a collator tries to cheat.",
)
@option(
    "--unjudged",
    is_flag=True,
    help=(
        "Do not check the blocks of honest collators, whose authors executed them: the same history"
        " in a little less time. The audit judges every block."
    ),
)
@options.master
@options.engine
@options.rules
@with_json_option
def command(  # noqa: PLR0917  # click passes each option by name
    networks: int,
    blocks: int,
    seed: str,
    out: str,
    cheat_rate: float,
    unjudged: bool,
    master: str | None,
    engine: str,
    rules: "Rules",
) -> Result:
    """Simulate large histories: many networks, one per task, with cheats of every strategy.

    The table `truth` lists each cheat with its network, chain, block, collator, strategy and
    expected verdict. The audit never reads it; `pubsub score` compares an audit with it. Each
    network has twelve parachains, each of which reads at least five publishers. The output depends
    only on the seed. Complete networks are not simulated again.
    """
    from pubsub_emulator.cli.commands.simulate.run import run_simulate
    from pubsub_emulator.primitives.draws import MILLION
    from pubsub_emulator.spark_audit.simulate.run import SimulationSettings

    simulation = SimulationSettings(
        networks, blocks, seed, round(cheat_rate * MILLION), unjudged, rules
    )
    return run_simulate(simulation, out, master=master, engine=engine)

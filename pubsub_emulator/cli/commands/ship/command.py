"""`pubsub ship`: its arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli.base import options


@click.command(
    "ship",
    epilog="\b\nExample:\n  pubsub ship --out dist/spark\n"
    "  spark-submit --master spark://host:7077 --archives dist/spark/pubsub.tar.gz#pubsub \\\n"
    "    --conf spark.executorEnv.PYTHONPATH=pubsub dist/spark/pubsub.py audit HISTORY --out OUT\n",
)
@options.new_out
def command(out: Path) -> None:
    """Pack this program and its dependencies for the machines of a Spark cluster, which need only Python.

    The archive fits workers with this Python version and platform. `docs/howto/audit-on-a-cluster.md` has recipes for
    clusters.
    """
    from pubsub_emulator.cli.commands.ship.run import run_ship

    run_ship(out)

"""`pubsub ship`: its arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import Command, Need

ENVIRONMENT = "pubsub.tar.gz"
PROGRAM = "pubsub.py"


@click.command(
    "ship",
    cls=Command,
    needs=(Need("audit"),),
    epilog=(
        "\b\nExample:\n  pubsub ship --out dist/spark\n  spark-submit --master spark://host:7077"
        " --archives dist/spark/pubsub.tar.gz#pubsub \\\n    --conf"
        " spark.executorEnv.PYTHONPATH=pubsub dist/spark/pubsub.py audit HISTORY --out OUT\n"
    ),
)
@options.new_out
def command(out: Path) -> None:
    """Pack this program and its dependencies for a Spark cluster, which then needs only Python.

    The archive fits workers with this Python version and platform.
    `docs/howto/audit-on-a-cluster.md` has recipes for clusters.
    """
    import platform

    from pubsub_emulator.cli.screen import files
    from pubsub_emulator.files.output import new_folder
    from pubsub_emulator.spark_audit.spark.ship import LAUNCHER, build_environment

    with new_folder(out) as folder:
        build_environment(folder / ENVIRONMENT)
        (folder / PROGRAM).write_text(LAUNCHER, encoding="utf-8")
    version = ".".join(platform.python_version_tuple()[:2])
    archive = f"for --archives; workers need Python {version} on {platform.machine()}"
    files("written:", ((out / ENVIRONMENT, archive), (out / PROGRAM, "what spark-submit runs")))

"""`pubsub ship`: the files for submitting an audit to a cluster."""

import platform
from pathlib import Path

from pubsub_emulator.cli.base.output import new_folder
from pubsub_emulator.cli.screen import files
from pubsub_emulator.spark_audit.spark.ship import LAUNCHER, build_environment

ENVIRONMENT = "pubsub.tar.gz"
PROGRAM = "pubsub.py"


def run_ship(out: Path) -> None:
    """Run the command. Raises `ShipError`, `InputError`."""
    with new_folder(out) as folder:
        build_environment(folder / ENVIRONMENT)
        (folder / PROGRAM).write_text(LAUNCHER, encoding="utf-8")
    version = ".".join(platform.python_version_tuple()[:2])
    files(
        "written:",
        (
            (out / ENVIRONMENT, f"for --archives; workers need Python {version} on {platform.machine()}"),
            (out / PROGRAM, "what spark-submit runs"),
        ),
    )

"""What a Spark worker runs. Importing this module imports no pyspark: it is shipped by name."""

import gc
import json
from functools import cache
from pathlib import Path

from pubsub_emulator.spark_audit.engine.engine import Unit


def run_unit(unit: Unit, out: str, task: tuple[int, str]) -> tuple[int, str]:
    """Run the unit on a numbered task, and hand back its number and its receipt as JSON."""
    _settle()
    number, text = task
    return number, json.dumps(unit(text, Path(out)))


@cache
def _settle() -> None:
    """Spare what a worker has imported from the full collection that pyspark asks for after each partition."""
    gc.freeze()

"""What a Spark worker runs. Importing this module imports no pyspark: it is shipped by name."""

import json
from pathlib import Path

from spark_audit.mapping import Unit


def run_unit(unit: Unit, out: str, task: tuple[int, str]) -> tuple[int, str]:
    """Run the unit on a numbered task, and hand back its number and its receipt as JSON."""
    number, text = task
    return number, json.dumps(unit(text, Path(out)))

"""The functions that Spark's workers run. Importing this module imports no pyspark: it is shipped by name."""

import gc
import json
from collections.abc import Iterable, Iterator
from functools import cache

from pubsub_emulator.spark_audit.engine.engine import Unit
from pubsub_emulator.spark_audit.engine.rules import Named, choose_named


def run_units(unit: Unit, out: str, rules: Named, tasks: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Run the unit on each task, and hand back the task's number and its receipt as JSON."""
    choose_named(rules)
    _settle()
    for number, text in tasks:
        yield number, json.dumps(unit(text, out))


@cache
def _settle() -> None:
    """Spare what a worker has imported from the full collection that pyspark asks for after each partition."""
    gc.freeze()

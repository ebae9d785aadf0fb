"""The function that Spark's workers run.

It is in a module that does not import pyspark, since pickling refers to it by name.
"""

import gc
import json
from collections.abc import Iterable, Iterator
from functools import cache

from pubsub_emulator.spark_audit.engine.engine import Unit


def run_units(unit: Unit, out: str, tasks: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Run the unit on each task of a partition.

    Yields the task's number with its receipt as JSON.
    """
    _settle()
    for number, text in tasks:
        yield number, json.dumps(unit(text, out))


@cache
def _settle() -> None:
    """Exempt everything that a worker has imported from garbage collection, at the first call.

    pyspark starts a full collection after each partition, which would visit all these objects.
    """
    gc.freeze()

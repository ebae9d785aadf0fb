"""The functions that Spark's workers run. Importing this module imports no pyspark: it is shipped by name."""

import gc
import json
from collections.abc import Iterator
from functools import cache
from typing import Final

import pyarrow as pa

from pubsub_emulator.spark_audit.engine.engine import Unit
from pubsub_emulator.spark_audit.engine.rules import Named, choose_named

ANSWER: Final = "number long, receipt string"
"""The columns that come back, as Spark writes a schema."""


def run_units(unit: Unit, out: str, rules: Named, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run the unit on each row of `number` and `task`, and hand back its number and its receipt as JSON."""
    choose_named(rules)
    _settle()
    for batch in batches:
        for number, text in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            receipt = json.dumps(unit(text, out))
            yield pa.RecordBatch.from_pydict({"number": [number], "receipt": [receipt]})


@cache
def _settle() -> None:
    """Spare what a worker has imported from the full collection that pyspark asks for after each partition."""
    gc.freeze()

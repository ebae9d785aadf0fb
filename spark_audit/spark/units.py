"""What a Spark worker runs. Importing this module imports no pyspark: it is shipped by name."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from spark_audit.mapping import Unit
from spark_audit.task import Task
from spark_audit.work import ChainTask, habits_task, verify_task


class Broadcast(Protocol):
    """The tasks, sent to each worker once."""

    @property
    def value(self) -> Sequence[str]:
        """Their JSON, in order."""


def run_units(unit: Unit, out: str, tasks: Broadcast, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run the units whose numbers arrive in column `id`, and hand back their receipts as JSON."""
    folder = Path(out)
    for batch in batches:
        at: list[int] = batch.to_pydict()["id"]
        receipts = [json.dumps(unit(tasks.value[number], folder)) for number in at]
        yield pa.RecordBatch.from_pydict({"at": pa.array(at, pa.int64()), "receipt": pa.array(receipts, pa.string())})


def verify(text: str, out: Path) -> dict[str, Any]:
    """Judge the segment that a task names."""
    return verify_task(Task.from_json(text), out)


def habits(text: str, out: Path) -> dict[str, Any]:
    """Look through the chain that a task names."""
    return habits_task(ChainTask.from_json(text), out)

"""Units of work given out and their receipts collected, by this process or by Spark.

A unit is a function of a module, so that it travels by name; its task is text, and its receipt is JSON. Units know
nothing of each other, so what comes out is the same whoever runs them and however they are cut.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from pubsub_emulator.primitives.errors import PubsubError

Unit = Callable[[str, Path], dict[str, Any]]
"""Does the task that the text describes; what it writes stands below the folder."""

Report = Callable[[int], None]
"""Told how many units are done."""


class EngineLost(PubsubError):
    """The engine cannot be started, or was lost with work undone."""


class Mapper(Protocol):
    """Who runs units."""

    name: str

    def map(self, unit: Unit, tasks: Sequence[str], out: Path, report: Report) -> list[dict[str, Any]]:
        """The receipts of all tasks, in their order. Raises `EngineLost`, and what the unit raises in this process."""

    def close(self) -> None:
        """Stop what was started."""


class PythonMapper:
    """Everything in this process, one unit after the other."""

    name = "python"

    def map(self, unit: Unit, tasks: Sequence[str], out: Path, report: Report) -> list[dict[str, Any]]:
        """The receipts of all tasks, in their order."""
        receipts = []
        for done, text in enumerate(tasks, 1):
            receipts.append(unit(text, out))
            report(done)
        return receipts

    def close(self) -> None:
        """Nothing was started."""


def open_mapper(name: str, master: str | None = None) -> Mapper:
    """The mapper called `name`, `spark` or `python`. Raises `EngineLost` when Spark cannot be started."""
    if name == "python":
        return PythonMapper()
    try:
        from pubsub_emulator.spark_audit.spark.job import SparkMapper  # noqa: PLC0415  # a JVM's library, loaded when it is wanted
    except ImportError as error:
        raise EngineLost(f"the Spark engine needs the extra `audit`: {error}") from None
    return SparkMapper(master)

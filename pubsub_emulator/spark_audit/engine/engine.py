"""Units of work given out and their receipts collected: by this process, by processes beside it, or by Spark.

A unit is a function of a module, which travels by name; its task is text, its receipt JSON. They know nothing of each
other, so what comes out is the same whoever runs them.
"""

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Protocol

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.spark_audit.engine.pace import heard_by

Answer = dict[str, Any]
"""A receipt as it travels: JSON, which the caller of a unit knows the shape of."""

Unit = Callable[[str, str], Answer]
"""Does the task that the text describes; what it writes is below the address."""

Report = Callable[[float], None]
"""Called with the units done, shares of unfinished ones included where the engine knows them."""

ENGINES: Final = ("auto", "python", "pool", "spark")


_MASTER: Final = re.compile(
    r"local(\[(\*|\d+)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|yarn|k8s://\S+"
    r"|spark://(\[[0-9a-fA-F:]+\]|[^\s:,/]+):\d{1,5}(,(\[[0-9a-fA-F:]+\]|[^\s:,/]+):\d{1,5})*"
)


_LAST_PORT: Final = 65_535


class WrongMaster(PubsubError):
    """A text that is no Spark master."""


class EngineLost(PubsubError):
    """The engine cannot be started, or was lost with work undone."""

    is_infrastructure = True


def check_form(master: str) -> None:
    """Raises `WrongMaster` for a text that is no master's URL."""
    if master.startswith("sc://"):
        raise WrongMaster(f"{master}: Spark Connect gives no units of an audit out; name the cluster's own master")
    ports = re.findall(r":(\d+)(?=,|$)", master) if master.startswith("spark://") else []
    if _MASTER.fullmatch(master) is None or any(int(port) > _LAST_PORT for port in ports):
        raise WrongMaster(
            f"{master} is no Spark master; one is local, local[2], local[*], spark://HOST:PORT, yarn or k8s://URL"
        )


@dataclass(frozen=True, slots=True)
class UnitTask:
    """What a unit is to do; the unit knows how to read the text."""

    def to_json(self) -> str:
        """The task as text for a worker."""
        return json.dumps(asdict(self))


class Mapper(Protocol):
    """Runs units of work, here or on workers."""

    name: str

    @property
    def cores(self) -> int:
        """How many units run at the same time."""

    def map(
        self, unit: Unit, tasks: Sequence[str], out: str, report: Report, weights: Sequence[int] | None = None
    ) -> list[Answer]:
        """All receipts in the order of tasks, heavy ones first. Raises `EngineLost`, and what a unit here raises."""

    def close(self) -> None:
        """Stop all workers."""


class PythonMapper:
    """Everything in this process, one unit after the other."""

    name = "python"
    cores = 1

    def map(
        self, unit: Unit, tasks: Sequence[str], out: str, report: Report, weights: Sequence[int] | None = None
    ) -> list[Answer]:
        """The receipts of all tasks, in their order."""
        del weights  # all are done by one
        receipts: list[Answer] = []
        with heard_by(lambda share: report(len(receipts) + share)):
            for text in tasks:
                receipts.append(unit(text, out))  # the listener counts them
                report(len(receipts))
        return receipts

    def close(self) -> None:
        """Do nothing: no worker was started."""


def heaviest_first(count: int, weights: Sequence[int] | None) -> list[int]:
    """The order in which to give out tasks: a long one that comes last is waited for by all."""
    return list(range(count)) if weights is None else sorted(range(count), key=lambda at: (-weights[at], at))


def usable_cores() -> int:
    """The cores that this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1

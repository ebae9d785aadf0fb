"""The interface between an audit and the engines that run its units of work.

A unit is a function of a module, so that a worker can import it by name. Its task is a text, its
receipt is JSON. Units are independent of each other, so the result is the same on every engine.
"""

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Protocol

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.spark_audit.engine.pace import listening

Answer = dict[str, Any]
"""A receipt. It is JSON, whose fields the caller of a unit knows."""

Unit = Callable[[str, str], Answer]
"""A function that runs a task, given as JSON, writes the result below an address, and returns the
receipt."""

Report = Callable[[float], None]
"""Called with the number of units done, including shares of unfinished ones if the engine knows
them."""

ENGINES: Final = ("auto", "python", "pool", "spark")
"""Names of the engines. `auto` chooses one, see `choice`."""


_MASTER: Final = re.compile(
    r"local(\[(\*|\d+)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|yarn|k8s://\S+"
    r"|spark://(\[[0-9a-fA-F:]+\]|[^\s:,/]+):\d{1,5}(,(\[[0-9a-fA-F:]+\]|[^\s:,/]+):\d{1,5})*"
)


_LAST_PORT: Final = 65_535


class WrongMaster(PubsubError):
    """A text that is not the URL of a Spark master."""


class EngineLost(PubsubError):
    """The engine cannot be started, or was lost before all units were done."""

    is_infrastructure = True


def check_form(master: str) -> None:
    """Raise `WrongMaster` if a text does not look like the URL of a Spark master.

    It is a quick check of arguments and does not connect to the master.
    """
    if master.startswith("sc://"):
        raise WrongMaster(
            f"{master}: Spark Connect cannot run units of an audit; name the cluster's own master"
        )
    ports = re.findall(r":(\d+)(?=,|$)", master) if master.startswith("spark://") else []
    if _MASTER.fullmatch(master) is None or any(int(port) > _LAST_PORT for port in ports):
        raise WrongMaster(
            f"{master} is not a Spark master such as local, local[2], local[*], spark://HOST:PORT,"
            " yarn or k8s://URL"
        )


@dataclass(frozen=True, slots=True)
class UnitTask:
    """The base of tasks: dataclasses whose fields can be written as JSON."""

    def to_json(self) -> str:
        """Return the task as text for a worker."""
        return json.dumps(asdict(self))


class Mapper(Protocol):
    """An engine: it runs units of work, here or on workers."""

    name: str

    @property
    def cores(self) -> int:
        """How many units can run at the same time."""

    def map(
        self,
        unit: Unit,
        tasks: Sequence[str],
        out: str,
        report: Report,
        weights: Sequence[int] | None = None,
    ) -> list[Answer]:
        """Run a unit on all tasks and return the receipts in the order of the tasks.

        Tasks with a large weight are started first. Raises `EngineLost` if the engine fails. An
        engine that runs units in this process also lets their exceptions through.
        """

    def close(self) -> None:
        """Stop all workers."""


class PythonMapper:
    """The engine that runs units one after another in this process."""

    name = "python"
    cores = 1

    def map(
        self,
        unit: Unit,
        tasks: Sequence[str],
        out: str,
        report: Report,
        weights: Sequence[int] | None = None,
    ) -> list[Answer]:
        """Run a unit on all tasks and return the receipts."""
        # The order does not matter for a single worker.
        del weights
        receipts: list[Answer] = []
        with listening(lambda share: report(len(receipts) + share)):
            for text in tasks:
                # Not a comprehension: the listener above needs the number of receipts so far.
                receipts.append(unit(text, out))
                report(len(receipts))
        return receipts

    def close(self) -> None:
        """Do nothing, as there are no workers."""


def heaviest_first(count: int, weights: Sequence[int] | None) -> list[int]:
    """Return the order in which to start tasks.

    A long task that is started last would keep all other workers waiting.
    """
    if weights is None:
        return list(range(count))
    return sorted(range(count), key=lambda index: (-weights[index], index))


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1

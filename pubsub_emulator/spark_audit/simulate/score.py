"""The comparison of an audit with the truth, which shows how many planted cheats it found."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.reader import Fault, History
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.rows import BLOCK_PLACE
from pubsub_emulator.spark_audit.history.storage import Store
from pubsub_emulator.spark_audit.judge.findings import Severity
from pubsub_emulator.spark_audit.judge.results import Results
from pubsub_emulator.spark_audit.simulate.run import PLAN
from pubsub_emulator.spark_audit.simulate.unit import RECEIPTS

_PLACE: Final = (*BLOCK_PLACE, "collator")
"""Columns that identify a block and its collator."""

Charge = tuple[Any, ...]
"""The columns `_PLACE` of a block, and a verdict."""


class NoTruth(PubsubError):
    """A history that does not state which cheats were planted."""


@dataclass(slots=True)
class Score:
    """The comparison's result.

    `planted` includes the cheats that are `gone`.

    A finding is right if block, collator and verdict are those of a planted cheat. Findings of
    severity `info` are not counted.
    """

    planted: Counter[str] = field(default_factory=Counter)
    """Planted cheats by strategy."""
    caught: Counter[str] = field(default_factory=Counter)
    """Planted cheats for which there is the right finding, by strategy."""
    gone: Counter[str] = field(default_factory=Counter)
    """Planted cheats by strategy that the simulation counted but that `truth` does not list any
    more. Their segments were lost, so there cannot be findings about them."""
    uncommitted: int = 0
    """Data files of the history that no manifest named when it was audited."""
    missed: list[Charge] = field(default_factory=list)
    """Planted cheats without the right finding."""
    wrong: list[Charge] = field(default_factory=list)
    """Findings that do not match a planted cheat."""
    faults: list[Fault] = field(default_factory=list)
    """Parts of the truth that could not be read."""

    @property
    def recall(self) -> float:
        """The share of planted cheats that were found; 1 if there are none."""
        return self.caught.total() / self.planted.total() if self.planted else 1.0

    @property
    def precision(self) -> float:
        """The share of findings that are right; 1 if there are none."""
        total = self.caught.total() + len(self.wrong)
        return self.caught.total() / total if total else 1.0


def score(history: Address, audit: Address) -> Score:
    """Compare an audit's findings with the truth in its history.

    Raises `NoTruth`, `CommitError`, `ResultError`.
    """
    result = Score()
    planted: dict[Charge, str] = {}
    opened = History.open(history)
    result.faults += opened.faults
    if not opened.files(schema.TRUTH) and not opened.root.exists(RECEIPTS):
        raise NoTruth(
            f"{opened.root} has no table truth: it was not simulated, and nothing can be scored"
        )
    for row in _truth(opened, result.faults):
        planted[_charge(row, row["verdict"])] = row["strategy"]
        result.planted[row["strategy"]] += 1
    result.gone = _counted(opened.root) - result.planted
    result.planted += result.gone
    results = Results.open(audit)
    result.uncommitted = results.report.get("uncommitted_files") or 0
    for row in _findings(results):
        charge = _charge(row, row["code"])
        strategy = planted.pop(charge, None)
        if strategy is None:
            result.wrong.append(charge)
        else:
            result.caught[strategy] += 1
    result.missed = list(planted)
    return result


def _charge(row: Row, code: str) -> Charge:
    """Return the accusation that a row makes: block, collator and verdict."""
    return (*(row[name] for name in _PLACE), code)


def _counted(history: Store) -> Counter[str]:
    """Return the planted cheats that the simulation counted, by strategy."""
    total: Counter[str] = Counter()
    for name in history.names(RECEIPTS):
        if name != PLAN and name.endswith(".json"):
            total.update(_cheats(history, f"{RECEIPTS}/{name}"))
    return total


def _cheats(history: Store, path: str) -> dict[str, int]:
    """Return the planted cheats of a network by its receipt. Raises `NoTruth` for a damaged one."""
    try:
        cheats = json.loads(history.read(path))["cheats"]
        counts = {str(name): count for name, count in cheats.items() if count >= 0}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NoTruth(f"{history}/{path}: not a receipt of a simulation ({error})") from None
    return counts


def _truth(history: History, faults: list[Fault]) -> Iterator[Row]:
    """Yield the rows of `truth`."""
    return history.rows(history.files(schema.TRUTH), faults)


def _findings(results: Results) -> Iterator[Row]:
    """Yield the findings that are not of severity `info`."""
    for group in results.groups(schema.FINDINGS, [*_PLACE, "code", "severity"]):
        yield from (row for row in group.to_pylist() if row["severity"] != Severity.INFO.value)

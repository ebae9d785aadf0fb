"""The comparison of an audit with the truth: which planted cheats it found."""

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
from pubsub_emulator.spark_audit.judge.findings import Severity
from pubsub_emulator.spark_audit.judge.results import Results
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

    A finding is right if block, collator and verdict are those of a planted cheat. Findings of
    severity `info` are not counted.
    """

    planted: Counter[str] = field(default_factory=Counter)
    """Planted cheats by strategy."""
    caught: Counter[str] = field(default_factory=Counter)
    """Planted cheats for which there is the right finding, by strategy."""
    missed: list[Charge] = field(default_factory=list)
    """Planted cheats without the right finding."""
    wrong: list[Charge] = field(default_factory=list)
    """Findings that match no planted cheat."""
    faults: list[Fault] = field(default_factory=list)
    """Parts of the truth that could not be read."""

    @property
    def recall(self) -> float:
        """The share of planted cheats that were found; 1 if there are none."""
        return self.caught.total() / self.planted.total() if self.planted else 1.0

    @property
    def precision(self) -> float:
        """The share of findings that are right; 1 if there are none."""
        found = self.caught.total() + len(self.wrong)
        return self.caught.total() / found if found else 1.0


def score(history: Address, audit: Address) -> Score:
    """Compare an audit's findings with the truth in its history.

    Raises `NoTruth`, `CommitError`, `ResultError`.
    """
    out = Score()
    due: dict[Charge, str] = {}
    opened = History.open(history)
    out.faults += opened.faults
    if not opened.files(schema.TRUTH) and not opened.root.exists(RECEIPTS):
        raise NoTruth(
            f"{opened.root} has no table truth: it was not simulated, and nothing can be scored"
        )
    for row in _truth(opened, out.faults):
        due[_charge(row, row["verdict"])] = row["strategy"]
        out.planted[row["strategy"]] += 1
    for row in _findings(Results.open(audit)):
        charge = _charge(row, row["code"])
        strategy = due.pop(charge, None)
        if strategy is None:
            out.wrong.append(charge)
        else:
            out.caught[strategy] += 1
    out.missed = list(due)
    return out


def _charge(row: Row, code: str) -> Charge:
    """Return the accusation that a row makes: block, collator and verdict."""
    return (*(row[name] for name in _PLACE), code)


def _truth(history: History, faults: list[Fault]) -> Iterator[Row]:
    """Yield the rows of `truth`."""
    return history.rows(history.files(schema.TRUTH), faults)


def _findings(results: Results) -> Iterator[Row]:
    """Yield the findings that are not of severity `info`."""
    for group in results.groups(schema.FINDINGS, [*_PLACE, "code", "severity"]):
        yield from (row for row in group.to_pylist() if row["severity"] != Severity.INFO.value)

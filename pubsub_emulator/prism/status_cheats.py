"""Cheats of a PRISM server with one operation's status, as named objects (EV-41).

Each changes what one stream tells; `spark_audit.spark.statuses` finds it beside the truths.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from pubsub_emulator.events.cheats import Cheat
from pubsub_emulator.prism.core.status import OperationStatus, Update


class Told(NamedTuple):
    """A status told while truth number `turn` was in force."""

    turn: int
    update: Update


Answers: TypeAlias = Sequence[Told]


def _at(due: Answers, status: OperationStatus) -> int:
    return next(at for at, each in enumerate(due) if each.update.status is status)


def _instead(due: Answers, at: int, update: Update) -> list[Told]:
    return [*due[:at], due[at]._replace(update=update), *due[at + 1 :]]


def _foretell(due: Answers, _others: Answers) -> list[Told]:
    level = _at(due, OperationStatus.CONFIRMATION_LEVEL)
    return _instead(due, level, due[-1].update)


def _deny(due: Answers, _others: Answers) -> list[Told]:
    return _instead(due, _at(due, OperationStatus.IN_BLOCK), Update(OperationStatus.CANCELLED))


def _inflate(due: Answers, _others: Answers) -> list[Told]:
    at = _at(due, OperationStatus.CONFIRMATION_LEVEL)
    return _instead(due, at, due[at].update._replace(level=due[at].update.level + 100))


def _misplace(due: Answers, _others: Answers) -> list[Told]:
    update = due[-1].update
    if update.place is None:
        raise ValueError("the last status has no place")
    return _instead(due, len(due) - 1, update._replace(place=update.place._replace(number=update.place.number + 1)))


def _borrow(due: Answers, others: Answers) -> list[Told]:
    lent = next(each.update for each in others if each.update.place is not None)
    return _instead(due, _at(due, OperationStatus.PENDING), lent)


def _repeat(due: Answers, _others: Answers) -> list[Told]:
    at = _at(due, OperationStatus.CONFIRMATION_LEVEL)
    return [*due[: at + 1], due[at], *due[at + 1 :]]


def _hark_back(due: Answers, _others: Answers) -> list[Told]:
    at = _at(due, OperationStatus.CONFIRMATION_LEVEL)
    return [*due[: at + 1], Told(due[at].turn, due[at - 1].update), *due[at + 1 :]]


_CHEATS: Final[tuple[Cheat[Told], ...]] = (
    Cheat("foretell", "says that an operation is approved before it is", "invented", _foretell),
    Cheat("deny", "says that an operation in a block was cancelled", "invented", _deny),
    Cheat("inflate", "says that more blocks confirm an operation than do", "altered", _inflate),
    Cheat("misplace", "says that an operation is in another block", "altered", _misplace),
    Cheat("borrow-answer", "tells the status of another operation", "altered", _borrow),
    Cheat("repeat-answer", "tells a status twice in a row", "doubled", _repeat),
    Cheat("hark-back", "tells an earlier status again, though no block was taken back", "out of order", _hark_back),
    Cheat("hide-end", "never tells that an operation was approved", "withheld", lambda due, _: list(due[:-1])),
    Cheat("keep-silent", "tells nothing", "withheld", lambda _due, _others: []),
)
STATUS_CHEATS: Final = {cheat.name: cheat for cheat in _CHEATS}
"""`change` gets one operation's statuses, each told at its turn, and those of another one. Those due are PENDING and
IN_BLOCK, both again after a reorganisation, levels, and APPROVED."""

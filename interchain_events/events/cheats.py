"""The cheats of a broadcaster, as named objects (EV-41).

Each cheat takes the events that an honest broadcaster would deliver in one stream, and returns
those that the cheating one delivers. The systems that use this log have their own cheats.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from interchain_events.events.rows import Row, event_id

E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class BroadcasterCheat(Generic[E]):
    """One way to cheat."""

    name: str
    words: str
    """The broadcaster's behaviour, as a verb in the third person."""
    found_as: str
    """The name under which the audit of deliveries must report it."""
    change: Callable[[Sequence[E], Sequence[E]], list[E]]
    """A function that returns the delivered events. Its arguments are the events that are due, at
    least three, and some events that are not due."""


def _invent(due: Sequence[Row], _others: Sequence[Row]) -> list[Row]:
    """Return the due events and an invented one after the second."""
    invented = due[1]._replace(id=event_id(due[1].id, 0), body='{"invented":true}')
    return [due[0], due[1], invented, *due[2:]]


def _second(due: Sequence[Row], **columns: Any) -> list[Row]:
    """Return the due events, with the given columns of the second one replaced."""
    return [due[0], due[1]._replace(**columns), *due[2:]]


def _push(due: Sequence[Row], others: Sequence[Row]) -> list[Row]:
    """Return the due events and one that is not due, in order."""
    return sorted([*due, *others[:1]], key=lambda row: row.seq)


_CHEATS: Final[tuple[BroadcasterCheat[Row], ...]] = (
    BroadcasterCheat("drop", "leaves an event out", "missing", lambda due, _: [*due[:1], *due[2:]]),
    BroadcasterCheat(
        "repeat", "delivers an event twice", "doubled", lambda due, _: [*due[:2], *due[1:]]
    ),
    BroadcasterCheat(
        "reorder", "swaps two events", "out of order", lambda due, _: [due[1], due[0], *due[2:]]
    ),
    BroadcasterCheat("invent", "delivers an event that never existed", "invented", _invent),
    BroadcasterCheat(
        "alter",
        "changes an event's fields",
        "altered",
        lambda due, _: _second(due, body='{"altered":true}'),
    ),
    BroadcasterCheat(
        "rename", "changes an event's kind", "altered", lambda due, _: _second(due, kind="Made.Up")
    ),
    BroadcasterCheat("loop", "delivers everything again", "doubled", lambda due, _: [*due, *due]),
    BroadcasterCheat("push", "delivers events that were not requested", "not asked for", _push),
)
CHEATS: Final = {cheat.name: cheat for cheat in _CHEATS}
"""All cheats by name."""

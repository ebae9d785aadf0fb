"""Cheats of a broadcaster with the events that it owes a client, as named objects (EV-41).

Each takes what an honest one would have delivered in one stream, and gives what this one delivers; `found_as` is what
`spark_audit.spark.deliveries` must say of it. The systems on this plane have cheats of their own in their rooms.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from pubsub_emulator.events.rows import Row, event_id

E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class Cheat(Generic[E]):
    """One way to cheat. `change` gets the events due, and events that were not; there are at least three due."""

    name: str
    words: str
    found_as: str
    change: Callable[[Sequence[E], Sequence[E]], list[E]]


def _invent(due: Sequence[Row], _others: Sequence[Row]) -> list[Row]:
    made_up = due[1]._replace(id=event_id(due[1].id, 0), body='{"invented":true}')
    return [due[0], due[1], made_up, *due[2:]]


def _second(due: Sequence[Row], **columns: Any) -> list[Row]:
    return [due[0], due[1]._replace(**columns), *due[2:]]


def _push(due: Sequence[Row], others: Sequence[Row]) -> list[Row]:
    return sorted([*due, *others[:1]], key=lambda row: row.seq)


_CHEATS: Final[tuple[Cheat[Row], ...]] = (
    Cheat("drop", "leaves an event out", "missing", lambda due, _: [*due[:1], *due[2:]]),
    Cheat("repeat", "delivers an event twice", "doubled", lambda due, _: [*due[:2], *due[1:]]),
    Cheat("reorder", "swaps two events", "out of order", lambda due, _: [due[1], due[0], *due[2:]]),
    Cheat("invent", "delivers an event that never was", "invented", _invent),
    Cheat("alter", "changes an event's fields", "altered", lambda due, _: _second(due, body='{"altered":true}')),
    Cheat("rename", "changes an event's kind", "altered", lambda due, _: _second(due, kind="Made.Up")),
    Cheat("loop", "delivers everything again", "doubled", lambda due, _: [*due, *due]),
    Cheat("push", "delivers what was not asked for", "not asked for", _push),
)
CHEATS: Final = {cheat.name: cheat for cheat in _CHEATS}

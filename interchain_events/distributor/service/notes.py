"""The log lines of the notes that the state machine emits."""

import logging
from typing import Final, NamedTuple

from interchain_events.distributor.core.messages import Note

log = logging.getLogger("pubsub.distributor")


class _Line(NamedTuple):
    """The log line of one kind of note."""

    level: int
    words: str
    place: str = "network"
    """The name of the field with the note's place."""


_LINES: Final = {
    "conflict": _Line(logging.WARNING, "an id that is known was published with other content"),
    "revoked": _Line(
        logging.WARNING,
        "an adapter accepted an event that its network does not have; it is published again",
    ),
    "alarm": _Line(
        logging.ERROR, "an adapter accepts an event again and again, and its network lacks it"
    ),
    "dead-letter": _Line(logging.WARNING, "a publication or notification was given up", "target"),
    "quarantine": _Line(logging.WARNING, "an event has no id and is published on no other network"),
    "too-old": _Line(logging.INFO, "an event is older than the setting `retain` and is left out"),
    "expired": _Line(logging.INFO, "an event older than the setting `retain` was forgotten"),
    "rewind": _Line(logging.WARNING, "a network reverted events; its log is read again"),
    "gap": _Line(logging.WARNING, "an adapter left out an event of its log"),
    "no-hook": _Line(
        logging.WARNING, "an adapter accepts no subscription to all events; its log is read instead"
    ),
    "subscription-ended": _Line(
        logging.INFO, "a subscriber ended its subscription with status 410", "subscription"
    ),
}
"""The lines by kind of note. There is none for `store-lost`, because the engine logs losses with
their number."""


def log_note(note: Note) -> None:
    """Log a note, if there is a line for its kind."""
    line = _LINES.get(note.kind)
    if line is None:
        return
    fields = {line.place: note.place, "id": note.id, "detail": _detail(note), "kind": note.kind}
    match note.kind:
        case "quarantine" | "gap":
            # These events have no id, so the note's `id` has the number in the log.
            fields["id"] = ""
            fields["number"] = note.id
        case "conflict" if note.place == "publish":
            fields[line.place] = ""
    log.log(line.level, "%s", line.words, extra={"fields": fields})


def _detail(note: Note) -> str:
    """Return the detail of a note in words."""
    match note.kind:
        case "rewind" if " to " in note.detail:
            before, _, cut = note.detail.partition(" to ")
            return f"the last number was {before}, and of those only numbers up to {cut} are left"
        case "rewind":
            return f"number {note.detail}"
        case "revoked":
            return f"accepted {note.detail} times" if note.detail != "1" else ""
    return note.detail

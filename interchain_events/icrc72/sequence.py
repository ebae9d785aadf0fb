"""The path of one event as a sequence diagram, in text or SVG."""

from collections.abc import Iterable, Mapping
from html import escape
from itertools import chain as chained
from typing import NamedTuple

from interchain_events.icrc72.ic.errors import CandidError, shown
from interchain_events.icrc72.ic.messaging import Happening
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.methods import CONFIRM, HANDLE, HANDLE_TRUSTED, PUBLISH
from pubsub_emulator.files.shown import safe


class Arrow(NamedTuple):
    """A message in the diagram."""

    round: int
    sender: str
    """The name of the canister."""
    receiver: str
    words: str
    """The label."""


def way(
    happenings: Iterable[Happening], names: Mapping[Principal, str], namespace: str, number: int
) -> list[Arrow]:
    """Return the messages that publish, relay, notify and confirm one event of a namespace.

    `number` is the id of the event. `names` are those of canisters; others are shown by their ids.
    """
    found: list[Arrow] = []
    # The notifications of the event by sender and id, to recognise their confirmations.
    notes: dict[tuple[Principal, int], int] = {}
    for each in happenings:
        if each.kind not in {"execute", "refuse"}:
            continue
        words = _words(each, namespace, number, notes)
        if words:
            refused = "refused: " if each.kind == "refuse" else ""
            sender, receiver = (names.get(who, who.text) for who in (each.sender, each.receiver))
            found.append(Arrow(each.round, sender, receiver, refused + words))
    return found


def _words(
    each: Happening, namespace: str, number: int, notes: dict[tuple[Principal, int], int]
) -> str:
    """Return the label of a message, or an empty text if it does not concern the event."""
    try:
        if each.method == CONFIRM.name:
            mine = [item for item in CONFIRM.value(each.data) if (each.receiver, item) in notes]
            return f"confirm notification {shown(mine[0])}" if mine else ""
        if each.method == PUBLISH.name:
            sent = {(event.namespace, event.eventId) for event in PUBLISH.value(each.data)}
            return f"publish event {shown(number)}" if (namespace, number) in sent else ""
        if each.method in {HANDLE.name, HANDLE_TRUSTED.name}:
            for note in HANDLE.value(each.data):
                if (note.namespace, note.eventId) == (namespace, number):
                    notes[each.sender, note.notificationId] = number
                    return f"notification {shown(note.notificationId)} of event {shown(number)}"
    except CandidError:
        pass
    return ""


def as_text(arrows: list[Arrow]) -> str:
    """Return the diagram as text with a line for each message."""
    rows = [(each.round, f"{each.sender} -> {each.receiver}", each.words) for each in arrows]
    width = max((len(way) for _, way, _ in rows), default=0)
    return "\n".join(f"round {at:>5}  {way:<{width}}  {words}" for at, way, words in rows)


def as_svg(arrows: list[Arrow]) -> str:
    """Return the diagram as SVG: a line for each canister, and an arrow for each message."""
    ends = chained.from_iterable((each.sender, each.receiver) for each in arrows)
    actors = list(dict.fromkeys(ends))
    wide = 180 * max(len(actors), 1) + 90
    high = 44 * len(arrows) + 80
    place = {name: 150 + 180 * at for at, name in enumerate(actors)}
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}"'
            ' font-family="sans-serif" font-size="12">'
        ),
        '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">',
        '<path d="M0,0 L8,4 L0,8 z" fill="#333"/></marker></defs>',
        f'<rect width="{wide}" height="{high}" fill="#fff"/>',
    ]
    for name, x in place.items():
        parts.append(
            f'<text x="{x}" y="24" text-anchor="middle"'
            f' font-weight="bold">{escape(safe(name))}</text>'
        )
        parts.append(f'<line x1="{x}" y1="34" x2="{x}" y2="{high - 20}" stroke="#bbb"/>')
    for at, each in enumerate(arrows):
        y = 66 + 44 * at
        one, two = place[each.sender], place[each.receiver]
        dashed = ' stroke-dasharray="4 3"' if each.words.startswith("refused") else ""
        parts.append(f'<text x="8" y="{y + 4}" fill="#777">round {each.round}</text>')
        parts.append(
            f'<line x1="{one}" y1="{y}" x2="{two}" y2="{y}" stroke="#333"{dashed}'
            ' marker-end="url(#tip)"/>'
        )
        middle = (one + two) // 2
        parts.append(
            f'<text x="{middle}" y="{y - 6}" text-anchor="middle">{escape(safe(each.words))}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])

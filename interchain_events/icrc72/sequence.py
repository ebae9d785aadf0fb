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
    arrows: list[Arrow] = []
    # The notifications of the event by sender and id, to recognise their confirmations.
    notes: dict[tuple[Principal, int], int] = {}
    for happening in happenings:
        if happening.kind not in {"execute", "refuse"}:
            continue
        words = _words(happening, namespace, number, notes)
        if words:
            refused = "refused: " if happening.kind == "refuse" else ""
            sender = names.get(happening.sender, happening.sender.text)
            receiver = names.get(happening.receiver, happening.receiver.text)
            arrows.append(Arrow(happening.round, sender, receiver, refused + words))
    return arrows


def _words(
    happening: Happening, namespace: str, number: int, notes: dict[tuple[Principal, int], int]
) -> str:
    """Return the label of a message, or an empty text if it does not concern the event."""
    try:
        if happening.method == CONFIRM.name:
            confirmed = [
                item
                for item in CONFIRM.value(happening.data)
                if (happening.receiver, item) in notes
            ]
            return f"confirm notification {shown(confirmed[0])}" if confirmed else ""
        if happening.method == PUBLISH.name:
            sent = {(event.namespace, event.eventId) for event in PUBLISH.value(happening.data)}
            return f"publish event {shown(number)}" if (namespace, number) in sent else ""
        if happening.method in {HANDLE.name, HANDLE_TRUSTED.name}:
            for note in HANDLE.value(happening.data):
                if (note.namespace, note.eventId) == (namespace, number):
                    notes[happening.sender, note.notificationId] = number
                    return f"notification {shown(note.notificationId)} of event {shown(number)}"
    except CandidError:
        pass
    return ""


def as_text(arrows: list[Arrow]) -> str:
    """Return the diagram as text with a line for each message."""
    rows = [(arrow.round, f"{arrow.sender} -> {arrow.receiver}", arrow.words) for arrow in arrows]
    width = max((len(way) for _, way, _ in rows), default=0)
    return "\n".join(f"round {round_:>5}  {way:<{width}}  {words}" for round_, way, words in rows)


def as_svg(arrows: list[Arrow]) -> str:
    """Return the diagram as SVG: a line for each canister, and an arrow for each message."""
    ends = chained.from_iterable((arrow.sender, arrow.receiver) for arrow in arrows)
    actors = list(dict.fromkeys(ends))
    wide = 180 * max(len(actors), 1) + 90
    high = 44 * len(arrows) + 80
    place = {name: 150 + 180 * index for index, name in enumerate(actors)}
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
    for index, arrow in enumerate(arrows):
        y = 66 + 44 * index
        start = place[arrow.sender]
        end = place[arrow.receiver]
        dashed = ' stroke-dasharray="4 3"' if arrow.words.startswith("refused") else ""
        parts.append(f'<text x="8" y="{y + 4}" fill="#777">round {arrow.round}</text>')
        parts.append(
            f'<line x1="{start}" y1="{y}" x2="{end}" y2="{y}" stroke="#333"{dashed}'
            ' marker-end="url(#tip)"/>'
        )
        middle = (start + end) // 2
        label = escape(safe(arrow.words))
        parts.append(f'<text x="{middle}" y="{y - 6}" text-anchor="middle">{label}</text>')
    return "\n".join([*parts, "</svg>", ""])

"""The way of one message, as a sequence diagram: text, and SVG without any library."""

from collections.abc import Iterable, Mapping
from html import escape
from typing import NamedTuple

from pubsub_emulator.eventplane.ic.errors import CandidError
from pubsub_emulator.eventplane.ic.principal import Principal
from pubsub_emulator.eventplane.ic.trace import Happening
from pubsub_emulator.eventplane.ic.words import shown
from pubsub_emulator.eventplane.icrc72.services import codec


class Arrow(NamedTuple):
    """Something that went from one to another."""

    round: int
    sender: str
    receiver: str
    words: str


def way(happenings: Iterable[Happening], names: Mapping[Principal, str], namespace: str, number: int) -> list[Arrow]:
    """Everything that happened to one event of a namespace: publishing, relaying, notifying, confirming."""
    found: list[Arrow] = []
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


def _words(each: Happening, namespace: str, number: int, notes: dict[tuple[Principal, int], int]) -> str:
    if each.method not in {
        "icrc72_publish",
        "icrc72_handle_notification",
        "icrc72_handle_notification_trusted",
        "icrc72_confirm_notifications",
    }:
        return ""
    try:
        (items,) = codec(each.method).args.decode(each.data)
    except CandidError:
        return ""
    if each.method == "icrc72_confirm_notifications":
        mine = [item for item in items if (each.receiver, item) in notes]
        return f"confirm notification {shown(mine[0])}" if mine else ""
    for item in items:
        if item.namespace == namespace and item.eventId == number:
            if each.method == "icrc72_publish":
                return f"publish event {shown(number)}"
            notes[each.sender, item.notificationId] = number
            return f"notification {shown(item.notificationId)} of event {shown(number)}"
    return ""


def as_text(arrows: list[Arrow]) -> str:
    """One line per arrow."""
    width = max((len(f"{each.sender} -> {each.receiver}") for each in arrows), default=0)
    return "\n".join(
        f"round {each.round:>5}  {f'{each.sender} -> {each.receiver}':<{width}}  {each.words}" for each in arrows
    )


def as_svg(arrows: list[Arrow]) -> str:
    """The diagram: a lifeline per participant, an arrow per message, rounds at the side."""
    actors = list(dict.fromkeys(name for each in arrows for name in (each.sender, each.receiver)))
    wide, high = 180 * max(len(actors), 1) + 90, 44 * len(arrows) + 80
    place = {name: 150 + 180 * at for at, name in enumerate(actors)}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" font-family="sans-serif" font-size="12">',
        '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">',
        '<path d="M0,0 L8,4 L0,8 z" fill="#333"/></marker></defs>',
        f'<rect width="{wide}" height="{high}" fill="#fff"/>',
    ]
    for name, x in place.items():
        parts.append(f'<text x="{x}" y="24" text-anchor="middle" font-weight="bold">{escape(name)}</text>')
        parts.append(f'<line x1="{x}" y1="34" x2="{x}" y2="{high - 20}" stroke="#bbb"/>')
    for at, each in enumerate(arrows):
        y = 66 + 44 * at
        one, two = place[each.sender], place[each.receiver]
        dashed = ' stroke-dasharray="4 3"' if each.words.startswith("refused") else ""
        parts.append(f'<text x="8" y="{y + 4}" fill="#777">round {each.round}</text>')
        parts.append(f'<line x1="{one}" y1="{y}" x2="{two}" y2="{y}" stroke="#333"{dashed} marker-end="url(#tip)"/>')
        middle = (one + two) // 2
        parts.append(f'<text x="{middle}" y="{y - 6}" text-anchor="middle">{escape(each.words)}</text>')
    return "\n".join([*parts, "</svg>", ""])


__all__ = ["Arrow", "as_svg", "as_text", "way"]

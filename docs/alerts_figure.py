"""Draws the picture of `icrc72-alerts.md` from a run: `python docs/alerts_figure.py`.

A publisher on one subnet and a subscriber on another register, the orchestrator assigns their
broadcasters, and one event goes all the way. Each arrow is a message of that run, in its order.
Members get their alerts through their broadcasters; the picture draws these directly.
"""

from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

from interchain_events.icrc72 import App, Principal, methods
from interchain_events.icrc72.alerts import BrokerAlert, MemberAlert
from interchain_events.icrc72.facts import (
    EntriesFact,
    ExitFact,
    PublisherFact,
    RelayerFact,
    RelayFact,
    SubscriberFact,
)
from interchain_events.icrc72.ic.canister import Context
from interchain_events.icrc72.ic.messaging import Happening, Recorder
from interchain_events.icrc72.namespaces import is_system, system_owner
from interchain_events.testing import Canisters

PICTURE: Final = Path(__file__).parent / "figures" / "icrc72-alerts.svg"
_NAMESPACE: Final = "org.example.price"
_LINES: Final = ("publisher", "entry", "orchestrator", "exit", "subscriber")
"""The canisters from left to right."""
_NOTIFIED: Final = "handle_notification"
_CONFIRM: Final = "confirm_notifications"
_WORDS: Final = {
    RelayerFact: "relayer:add",
    RelayFact: "relay:add",
    SubscriberFact: "subscriber:add",
    PublisherFact: "publisher:add",
    EntriesFact: "publisher:broadcaster:add",
    ExitFact: "subscriber:broadcaster:add",
}
"""The end of the key of each kind of fact."""


class Price(App):
    """A publisher with one event for each call."""

    def on_call(self, ctx: Context, _method: str, _argument: bytes) -> None:
        """Publish an event."""
        self.emit(ctx, _NAMESPACE, {"usd": 1})
        ctx.reply(b"")


class Arrow(NamedTuple):
    """A message of the run."""

    sender: str
    receiver: str
    words: str
    alert: bool = False


def arrows() -> list[Arrow]:
    """Run the registrations, the assignment and an event, and return their messages in order."""
    lab = Canisters()
    recorder = Recorder()
    lab.network.observers.append(recorder)
    subscriber = lab.install(App, 1, subscriptions={_NAMESPACE: {}})
    lab.network.step(60)
    publisher = lab.install(Price, 0, publications={_NAMESPACE: {}})
    lab.network.step(60)
    lab.call(publisher, "publish", b"")
    lab.network.step(20)
    places = (publisher, lab.broadcasters[0], lab.orchestrator, lab.broadcasters[1], subscriber)
    names = dict(zip(places, _LINES, strict=True))
    found: dict[Arrow, None] = {}
    for happening in recorder.happenings:
        if happening.kind == "send" and {happening.sender, happening.receiver} <= names.keys():
            for arrow in _of(happening, names):
                # Alerts are confirmed as well, but the picture has only the event's confirmation.
                if arrow.words != _CONFIRM or _NOTIFIED in {each.words for each in found}:
                    found[arrow] = None
    return list(found)


def _of(call: Happening, names: dict[Principal, str]) -> Iterator[Arrow]:
    """Yield the arrows of a call; none if it is about something else."""
    sender = names[call.sender]
    receiver = names[call.receiver]
    if call.method == methods.REGISTER_SUBSCRIPTION.name:
        items = methods.REGISTER_SUBSCRIPTION.value(call.data)
        if any(each.namespace == _NAMESPACE for each in items):
            yield Arrow(sender, receiver, "register_subscription")
    elif call.method == methods.REGISTER_PUBLICATION.name:
        yield Arrow(sender, receiver, "register_publication")
    elif call.method == methods.PUBLISH.name:
        for event in methods.PUBLISH.value(call.data):
            if event.namespace == _NAMESPACE:
                relayed = " (relay)" if sender == "entry" else ""
                yield Arrow(sender, receiver, f"icrc72_publish{relayed}")
            elif is_system(event.namespace):
                owner = system_owner(event.namespace)
                for fact in MemberAlert.read(event.data).adds:
                    if owner is not None and type(fact) in _WORDS:
                        yield Arrow(sender, owner[0], _WORDS[type(fact)], alert=True)
    elif call.method == methods.HANDLE.name:
        for note in methods.HANDLE.value(call.data):
            if note.namespace == _NAMESPACE:
                yield Arrow(sender, receiver, _NOTIFIED)
            elif sender == "orchestrator":
                for assigned in BrokerAlert.read(note.data).adds:
                    if getattr(assigned, "namespace", "") == _NAMESPACE:
                        yield Arrow(sender, receiver, _WORDS[type(assigned)], alert=True)
    elif call.method == methods.CONFIRM.name and sender == "subscriber":
        yield Arrow(sender, receiver, _CONFIRM)


def drawing(messages: Iterable[Arrow]) -> str:
    """Return the picture: a line for each canister, and a numbered blue arrow for each alert."""
    messages = list(messages)
    high = 42 * len(messages) + 90
    place = {name: 90 + 170 * at for at, name in enumerate(_LINES)}
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 {high}"'
            ' font-family="sans-serif" font-size="13" role="img">'
        ),
        "<title>Registrations, the six alerts of an assignment, and an event</title>",
        (
            '<defs><marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8"'
            ' markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>'
        ),
        f'<rect width="860" height="{high}" fill="#fff"/>',
    ]
    for name, x in place.items():
        parts.append(f'<text x="{x}" y="30" text-anchor="middle" font-weight="bold">{name}</text>')
        parts.append(
            f'<line x1="{x}" y1="42" x2="{x}" y2="{high - 20}" stroke="#999"'
            ' stroke-dasharray="3 4"/>'
        )
    alerts = 0
    for at, each in enumerate(messages):
        y = 80 + 42 * at
        one = place[each.sender]
        two = place[each.receiver]
        color = "#000"
        words = each.words
        if each.alert:
            alerts += 1
            color = "#06c"
            words = f"{alerts}  {words}"
        parts.append(
            f'<line x1="{one}" y1="{y}" x2="{two}" y2="{y}" stroke="{color}" stroke-width="1.5"'
            ' marker-end="url(#a)"/>'
        )
        parts.append(
            f'<text x="{(one + two) // 2}" y="{y - 6}" text-anchor="middle"'
            f' fill="{color}">{escape(words)}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(drawing(arrows()), encoding="utf-8")

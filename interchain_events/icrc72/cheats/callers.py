"""Publishers, subscribers and strangers that cheat (IC-50).

They make calls that they must not make, or do not answer as they must.
"""

from collections.abc import Callable
from typing import Final, Literal

from interchain_events.icrc72 import keys, methods
from interchain_events.icrc72.cheats.stage import NAMESPACE, Actor, Cheat, Deed, Stage
from interchain_events.icrc72.client import EventNotification
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.canister import Context
from interchain_events.icrc72.ic.errors import Trap
from interchain_events.icrc72.inbox import Inbox
from interchain_events.icrc72.memory import nothing
from interchain_events.icrc72.messages import (
    Event,
    PublicationRegistration,
    PublicationUpdate,
    SubscriptionRegistration,
)
from interchain_events.icrc72.namespaces import system_namespace
from interchain_events.icrc72.values import Value, array, blob, map_, nat


def _publishing(make: Callable[[Stage], Event]) -> Deed:
    """Return a deed in which the publisher adds the event of `make` to three honest ones."""

    def deed(stage: Stage) -> None:
        stage.emit(3)
        stage.say(stage.teller, stage.entry, methods.PUBLISH, (make(stage),))

    return deed


def _copies(stage: Stage) -> None:
    """Let a second publisher, who is allowed, use an id of the first one."""
    second = stage.near
    orchestrator = stage.system.orchestrator
    publication: Variant[Literal["namespace"], str] = Variant("namespace", NAMESPACE)
    allowed = (keys.list_key("publishers:allowed"), array([blob(second)]))
    update = PublicationUpdate(publication, allowed)
    stage.say(stage.teller, orchestrator, methods.UPDATE_PUBLICATION, (update,))
    registration = PublicationRegistration(NAMESPACE, ())
    stage.say(second, orchestrator, methods.REGISTER_PUBLICATION, (registration,))
    stage.network.step(30)
    stage.emit(3)
    stage.say(second, stage.entry, methods.PUBLISH, (stage.event(second, 2),))


def _early(stage: Stage) -> None:
    """Let a canister publish that has never got an entry."""
    stage.say(stage.stranger, stage.exit, methods.PUBLISH, (stage.event(stage.stranger, 1),))


def _confirms(stage: Stage) -> None:
    """Let a stranger confirm notifications for a subscriber that is stopped."""
    stage.network.stop(stage.far)
    stage.network.step(2)
    stage.emit(3)
    numbers = tuple(stage.system.broadcaster(stage.exit).state.pending)
    stage.say(stage.stranger, stage.exit, methods.CONFIRM, numbers)
    stage.network.start(stage.far)


def _floods(stage: Stage) -> None:
    """Register more subscriptions than the quota, which is 5 on the stage."""
    items = tuple(SubscriptionRegistration(f"flood.n{number}", ()) for number in range(9))
    stage.say(stage.stranger, stage.system.orchestrator, methods.REGISTER_SUBSCRIPTION, items)


def _fakes(role: str) -> Deed:
    """Return a deed in which a stranger notifies a broadcaster or a subscriber."""

    def deed(stage: Stage) -> None:
        target = stage.far
        name = NAMESPACE
        if role == "broadcaster":
            target = stage.exit
            name = system_namespace("broadcaster", stage.exit)
        note = EventNotification(
            1,
            1,
            None,
            timestamp=1,
            namespace=name,
            data=map_({}),
            headers=None,
            source=stage.stranger,
            filter=None,
        )
        stage.say(stage.stranger, target, methods.HANDLE, (note,))

    return deed


def _bombs(stage: Stage) -> None:
    """Send a small message that claims a vector of a billion nulls."""
    stage.shout(
        stage.stranger, stage.exit, "icrc72_publish", bytes.fromhex("4449444c016d7f01008094ebdc03")
    )


class _Traps(Actor):
    def on_event(self, _ctx: Context, _event: EventNotification) -> None:
        raise Trap("always")


class _Mute(Actor):
    def init(self, ctx: Context) -> None:
        # The state of the inbox stays; only its code is replaced.
        self.inbox.__class__ = _MuteInbox
        super().init(ctx)


class _MuteInbox(Inbox):
    """An inbox that confirms system events until the first event arrives, and nothing after it."""

    def _confirm(self, ctx: Context) -> None:
        if self.state.counts.get("notifications"):
            self.state.confirm = nothing()
        super()._confirm(ctx)


class _Withholding(Actor):
    """A subscriber that never answers trusted notifications, because it keeps calling itself."""

    def update(self, ctx: Context, method: str, arg: bytes) -> None:
        if method in {"icrc72_handle_notification_trusted", "for ever"}:
            ctx.call(ctx.me, "for ever", b"")
        else:
            super().update(ctx, method, arg)


def _joined_by(code: type[Actor], rounds: int = 0) -> Deed:
    """Return a deed in which a subscriber of this class joins, and gets events."""

    def deed(stage: Stage) -> None:
        stage.actor(1, None, {NAMESPACE: {}}, code)
        stage.network.step(60)
        stage.emit(3)
        stage.network.step(rounds)

    return deed


def _other_headers(*more: tuple[str, Value]) -> Callable[[Stage], Event]:
    return lambda stage: stage.event(stage.teller, 4, 3, headers=more)


CHEATS: Final = (
    Cheat("PublishesEarly", "publisher", _early),
    Cheat("ForgesSource", "publisher", _publishing(lambda stage: stage.event(stage.near, 4, 3))),
    Cheat(
        "PlantsHeaders", "publisher", _publishing(_other_headers((keys.BROADCASTER, blob(b"x"))))
    ),
    Cheat("UsesForeignIds", "publisher", _copies),
    Cheat(
        "Equivocates",
        "publisher",
        _publishing(lambda s: s.event(s.teller, 2, 1)._replace(data=map_({"n": nat(9)}))),
    ),
    Cheat("BreaksChain", "publisher", _publishing(lambda stage: stage.event(stage.teller, 9, 7))),
    Cheat("ConfirmsOthers", "subscriber", _confirms),
    Cheat("AlwaysTraps", "subscriber", _joined_by(_Traps)),
    Cheat("Floods", "subscriber", _floods),
    Cheat("FakeBroadcaster", "outsider", _fakes("subscriber")),
    Cheat("FakeOrchestrator", "outsider", _fakes("broadcaster")),
    Cheat("Bombs", "outsider", _bombs),
    Cheat("NeverConfirms", "subscriber", _joined_by(_Mute, 300)),
    Cheat(
        "WithholdsReply",
        "subscriber",
        _joined_by(_Withholding, 150),
        publication={keys.TRUSTED: True},
    ),
)

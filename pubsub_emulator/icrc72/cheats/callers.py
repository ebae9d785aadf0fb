"""Publishers, subscribers and strangers: calls that they should not make, answers that they owe."""

from collections.abc import Callable
from typing import Final, Literal

from pubsub_emulator.icrc72 import keys
from pubsub_emulator.icrc72.cheats.stage import NAMESPACE, Actor, Cheat, Deed, Stage
from pubsub_emulator.icrc72.client import EventNotification
from pubsub_emulator.icrc72.ic.candid.types import Variant
from pubsub_emulator.icrc72.ic.canister import Context
from pubsub_emulator.icrc72.ic.errors import Trap
from pubsub_emulator.icrc72.inbox import Inbox
from pubsub_emulator.icrc72.messages import Event, PublicationRegistration, PublicationUpdate, SubscriptionRegistration
from pubsub_emulator.icrc72.namespaces import system_namespace
from pubsub_emulator.icrc72.values import Value, array, blob, map_, nat


def _brings(make: Callable[[Stage], Event]) -> Deed:
    def deed(stage: Stage) -> None:
        stage.emit(3)
        stage.say(stage.teller, stage.entry, "icrc72_publish", (make(stage),))

    return deed


def _copies(stage: Stage) -> None:
    """A second publisher with an id of the first."""
    who, there = stage.near, stage.system.orchestrator
    named: Variant[Literal["namespace"], str] = Variant("namespace", NAMESPACE)
    change = PublicationUpdate(named, (keys.list_key("publishers:allowed"), array([blob(who)])))
    stage.say(stage.teller, there, "icrc72_update_publication", (change,))
    stage.say(who, there, "icrc72_register_publication", (PublicationRegistration(NAMESPACE, ()),))
    stage.network.step(30)
    stage.emit(3)
    stage.say(who, stage.entry, "icrc72_publish", (stage.event(2, None, source=who),))


def _early(stage: Stage) -> None:
    event = stage.event(1, None, source=stage.stranger)
    stage.say(stage.stranger, stage.exit, "icrc72_publish", (event,))


def _confirms(stage: Stage) -> None:
    stage.network.stop(stage.far)
    stage.network.step(2)
    stage.emit(3)
    numbers = tuple(stage.system.broadcaster(stage.exit).state.pending)
    stage.say(stage.stranger, stage.exit, "icrc72_confirm_notifications", numbers)
    stage.network.start(stage.far)


def _floods(stage: Stage) -> None:
    items = tuple(SubscriptionRegistration(f"flood.n{at}", ()) for at in range(9))
    stage.say(stage.stranger, stage.system.orchestrator, "icrc72_register_subscription", items)


def _fakes(role: str) -> Deed:
    def deed(stage: Stage) -> None:
        target = stage.exit if role == "broadcaster" else stage.far
        name = system_namespace("broadcaster", stage.exit) if role == "broadcaster" else NAMESPACE
        note = EventNotification(1, 1, None, 1, name, map_({}), None, stage.stranger, None)
        stage.say(stage.stranger, target, "icrc72_handle_notification", (note,))

    return deed


def _bombs(stage: Stage) -> None:
    stage.shout(stage.stranger, stage.exit, "icrc72_publish", bytes.fromhex("4449444c016d7f01008094ebdc03"))


class _Traps(Actor):
    def on_event(self, ctx: Context, event: EventNotification) -> None:
        del ctx, event
        raise Trap("always")


def _traps(stage: Stage) -> None:
    app = _Traps(stage.system.orchestrator, stage.system.settings, subscriptions={NAMESPACE: {}}, publications={})
    stage.network.create(1, app)
    stage.network.step(60)
    stage.emit(3)


class _Mute(Actor):
    """A subscriber that confirms its alerts, then takes everything and confirms no event."""

    def init(self, ctx: Context) -> None:
        self.inbox.__class__ = _MuteInbox
        super().init(ctx)


class _MuteInbox(Inbox):
    def _confirm(self, ctx: Context) -> None:
        if self.state.counts.get("notifications"):
            self.state.confirm.clear()
        super()._confirm(ctx)


class _Withholding(Actor):
    """A subscriber that never answers a trusted batch: it waits for itself without end."""

    def update(self, ctx: Context, method: str, arg: bytes) -> None:
        if method in {"icrc72_handle_notification_trusted", "for ever"}:
            ctx.call(ctx.me, "for ever", b"")
        else:
            super().update(ctx, method, arg)


def _withholds(stage: Stage) -> None:
    app = _Withholding(stage.system.orchestrator, stage.system.settings, subscriptions={NAMESPACE: {}}, publications={})
    stage.network.create(1, app)
    stage.network.step(60)
    stage.emit(3)
    stage.network.step(150)


def _never_confirms(stage: Stage) -> None:
    app = _Mute(stage.system.orchestrator, stage.system.settings, subscriptions={NAMESPACE: {}}, publications={})
    stage.network.create(1, app)
    stage.network.step(60)
    stage.emit(3)
    stage.network.step(300)


def _other_headers(*more: tuple[str, Value]) -> Callable[[Stage], Event]:
    return lambda stage: stage.event(4, 3, headers=more)


CHEATS: Final = (
    Cheat("PublishesEarly", "publisher", _early),
    Cheat("ForgesSource", "publisher", _brings(lambda stage: stage.event(4, 3, source=stage.near))),
    Cheat("PlantsHeaders", "publisher", _brings(_other_headers((keys.BROADCASTER, blob(b"x"))))),
    Cheat("UsesForeignIds", "publisher", _copies),
    Cheat("Equivocates", "publisher", _brings(lambda s: s.event(2, 1)._replace(data=map_({"n": nat(9)})))),
    Cheat("BreaksChain", "publisher", _brings(lambda stage: stage.event(9, 7))),
    Cheat("ConfirmsOthers", "subscriber", _confirms),
    Cheat("AlwaysTraps", "subscriber", _traps),
    Cheat("Floods", "subscriber", _floods),
    Cheat("FakeBroadcaster", "outsider", _fakes("subscriber")),
    Cheat("FakeOrchestrator", "outsider", _fakes("broadcaster")),
    Cheat("Bombs", "outsider", _bombs),
    Cheat("NeverConfirms", "subscriber", _never_confirms),
    Cheat("WithholdsReply", "subscriber", _withholds, publication={keys.TRUSTED: True}),
)

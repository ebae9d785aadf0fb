"""The stage on which a cheat acts (IC-50, RP-14), and what the audit says at the end.

A cheat says who cheats and how: a broadcaster or an app with other code, or calls that somebody makes who should not.
The stage is the same for all: two subnets with a broadcaster each, a publisher on one, listeners on both, a stranger.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, cast

from pubsub_emulator.icrc72 import keys
from pubsub_emulator.icrc72.archive import whole_log
from pubsub_emulator.icrc72.audit.core import Audit
from pubsub_emulator.icrc72.audit.record import Finding
from pubsub_emulator.icrc72.broadcaster.core import Broadcaster
from pubsub_emulator.icrc72.client import App, Config, EventNotification
from pubsub_emulator.icrc72.deployment import Brokers, PubSub, deploy
from pubsub_emulator.icrc72.ic.canister import BOUNDED, Context
from pubsub_emulator.icrc72.ic.network import CanisterNetwork
from pubsub_emulator.icrc72.ic.principal import ANONYMOUS, Principal
from pubsub_emulator.icrc72.ic.schedule import Schedule
from pubsub_emulator.icrc72.ic.stable import decode, encode
from pubsub_emulator.icrc72.messages import Event, ReplayRegistration
from pubsub_emulator.icrc72.services import codec
from pubsub_emulator.icrc72.settings import DEFAULTS, Settings
from pubsub_emulator.icrc72.values import Pairs, map_, nat

NAMESPACE: Final = "stage.events"
SAY: Final = "say"


class Actor(App):
    """An app that makes any call that it is told to make, and publishes what it is told to."""

    def on_call(self, ctx: Context, method: str, arg: bytes) -> None:
        """`say`: make a call; a namespace: publish."""
        if method == SAY:
            target, called, raw = cast("tuple[Principal, str, bytes]", decode(arg))
            ctx.call(target, called, raw, lambda _ctx, _answer: None, kind=BOUNDED)
        else:
            self.emit(ctx, method, {"n": int(arg)})
        ctx.reply(b"")

    def on_event(self, ctx: Context, event: EventNotification) -> None:
        """Remember the event."""
        del ctx
        self.data.append(event.eventId)


@dataclass(slots=True)
class Stage:
    """The network on which a cheat acts."""

    system: PubSub
    audit: Audit
    teller: Principal
    near: Principal
    far: Principal
    stranger: Principal

    @property
    def network(self) -> CanisterNetwork:
        """The network."""
        return self.system.network

    @property
    def entry(self) -> Principal:
        """The publisher's broadcaster."""
        return self.system.broadcasters[0]

    @property
    def exit(self) -> Principal:
        """The broadcaster of the far listener."""
        return self.system.broadcasters[1]

    def emit(self, count: int = 6) -> None:
        """Let the publisher make events."""
        for number in range(1, count + 1):
            self.network.submit(ANONYMOUS, self.teller, NAMESPACE, b"%d" % number)
            self.network.step()
        self.network.step(40)

    def say(self, who: Principal, to: Principal, method: str, *values: object) -> None:
        """Let an actor call somebody."""
        self.shout(who, to, method, codec(method).args.encode(*values))

    def shout(self, who: Principal, to: Principal, method: str, raw: bytes) -> None:
        """Let an actor call somebody with any bytes."""
        self.network.submit(ANONYMOUS, who, SAY, encode((to, method, raw)))
        self.network.step(14)

    def replay(self, who: Principal, start: int, end: int | None) -> None:
        """Let a listener ask for a replay."""
        subscriber = self.system.app(who).subscriber
        if subscriber is not None:
            subscriber.state.ever_asked = True
        self.say(
            who, self.system.orchestrator, "icrc77_register_replay", (ReplayRegistration(NAMESPACE, (start, end), ()),)
        )
        self.network.step(80)

    def event(
        self, number: int, prev: int | None, *, headers: Pairs | None = None, source: Principal | None = None
    ) -> Event:
        """An event of the publisher, as it pleases a cheat."""
        data = map_({"n": nat(number)})
        return Event(number, prev, self.network.time(0), NAMESPACE, data, source or self.teller, headers)


Deed = Callable[[Stage], None]


@dataclass(frozen=True, slots=True)
class Cheat:
    """Somebody who cheats, how, and what the audit calls it."""

    name: str
    role: str
    deed: Deed = Stage.emit
    broker: Brokers = Broadcaster
    teller: type[App] = Actor
    publication: Config | None = None
    far: Config | None = None
    settings: Settings = DEFAULTS


def run(cheat: Cheat | None, schedule: Schedule | None = None) -> list[Finding]:
    """Let a cheat act, or nobody; what the audit finds."""
    network = CanisterNetwork(2, schedule=schedule)
    settings = replace(DEFAULTS, subscriptions=5) if cheat is None else replace(cheat.settings, subscriptions=5)
    broker = Broadcaster if cheat is None else cheat.broker
    system = deploy(network, broadcasters=(0, 1), settings=settings, make=broker)
    audit = Audit(system.orchestrator, system.broadcasters)
    network.observers.append(audit)
    config: Config = {keys.REPLAY: True} if cheat is None or cheat.publication is None else cheat.publication
    made = (Actor if cheat is None else cheat.teller)(
        system.orchestrator, settings, publications={NAMESPACE: config}, subscriptions={}
    )
    teller = network.create(0, made)
    far_config = {} if cheat is None or cheat.far is None else cheat.far
    near = network.create(0, Actor(system.orchestrator, settings, subscriptions={NAMESPACE: {}}, publications={}))
    far = network.create(
        1, Actor(system.orchestrator, settings, subscriptions={NAMESPACE: far_config}, publications={})
    )
    stranger = network.create(1, Actor(system.orchestrator, settings, publications={}, subscriptions={}))
    stage = Stage(system, audit, teller, near, far, stranger)
    network.step(90)
    (Stage.emit if cheat is None else cheat.deed)(stage)
    network.step(160)
    return judged(stage)


def judged(stage: Stage) -> list[Finding]:
    """The audit's findings at the end."""
    logs: dict[Principal, dict[tuple[str, int], Event]] = {}
    alive = stage.network.running()
    for who in alive:
        canister = stage.network.canister(who)
        if isinstance(canister, App) and canister.publisher is not None:
            events = whole_log(stage.network, canister.publisher)
            logs[who] = {(event.namespace, event.eventId): event for event in events}
    return stage.audit.finish(logs, alive)

"""The stage on which a cheat acts (IC-50, RP-14).

A cheat is a broadcaster or an app with dishonest code, or a deed: calls that a canister must not
make. The stage is the same for all: two subnets with a broadcaster each, a publisher on one,
subscribers on both, and a stranger. The audit watches, and must name the cheat.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, cast

from interchain_events.icrc72.audit.core import Audit
from interchain_events.icrc72.audit.record import Finding
from interchain_events.icrc72.broadcaster.core import Broadcaster
from interchain_events.icrc72.client import App, Config, EventNotification
from interchain_events.icrc72.deployment import Brokers, PubSub, deploy
from interchain_events.icrc72.ic.canister import BOUNDED, Context
from interchain_events.icrc72.ic.messaging import Schedule
from interchain_events.icrc72.ic.network import CanisterNetwork
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.ic.stable import decode, encode
from interchain_events.icrc72.keys import REPLAY
from interchain_events.icrc72.messages import Event, ReplayRegistration
from interchain_events.icrc72.methods import REGISTER_REPLAY, A, Method, R
from interchain_events.icrc72.settings import DEFAULTS
from interchain_events.icrc72.values import Pairs, map_, nat

NAMESPACE: Final = "stage.events"
"""The namespace of the publisher on the stage."""
SAY: Final = "say"
"""The method that lets an actor make a call."""
Configs = dict[str, Config]
"""Configurations by namespace or pattern."""


class Actor(App):
    """An app that makes calls and publishes events on command."""

    def on_call(self, ctx: Context, method: str, arg: bytes) -> None:
        """Make the call in the argument of `say`, or publish a number in the namespace `method`."""
        if method == SAY:
            target, called, raw = cast("tuple[Principal, str, bytes]", decode(arg))
            ctx.call(target, called, raw, lambda _ctx, _answer: None, kind=BOUNDED)
        else:
            self.emit(ctx, method, {"n": int(arg)})
        ctx.reply(b"")

    def on_event(self, _ctx: Context, event: EventNotification) -> None:
        """Remember the id of the event."""
        self.data.append(event.eventId)


@dataclass(slots=True)
class Troupe:
    """A publish-subscribe system with actors."""

    system: PubSub

    @property
    def network(self) -> CanisterNetwork:
        """Return the network."""
        return self.system.network

    def actor(
        self,
        subnet: int,
        published: Configs | None = None,
        followed: Configs | None = None,
        make: type[App] = Actor,
    ) -> Principal:
        """Install an actor with its publications and subscriptions, and return its id."""
        app = make(
            self.system.orchestrator,
            self.system.settings,
            publications=published or {},
            subscriptions=followed or {},
        )
        return self.network.create(subnet, app)

    def tell(self, who: Principal, namespace: str, numbers: Iterable[int], rounds: int = 1) -> None:
        """Let an actor publish numbers, and step the network by `rounds` after each."""
        for number in numbers:
            self.network.submit(ANONYMOUS, who, namespace, b"%d" % number)
            self.network.step(rounds)

    def say(self, who: Principal, to: Principal, method: Method[A, R], value: A) -> None:
        """Let an actor call a method of a canister."""
        self.shout(who, to, method.name, method.argument(value))

    def shout(self, who: Principal, to: Principal, method: str, raw: bytes) -> None:
        """Let an actor call a method with any bytes, and wait for the answer."""
        self.network.submit(ANONYMOUS, who, SAY, encode((to, method, raw)))
        self.network.step(14)

    def replay(self, who: Principal, namespace: str, start: int, end: int | None) -> None:
        """Let an actor ask for a replay."""
        # Otherwise its subscriber would drop the events of a replay that it did not ask for.
        subscriber = self.system.app(who).subscriber
        if subscriber is not None:
            subscriber.state.ever_asked = True
        self.say(
            who,
            self.system.orchestrator,
            REGISTER_REPLAY,
            (ReplayRegistration(namespace, (start, end), ()),),
        )

    def event(
        self, source: Principal, number: int, prev: int | None = None, headers: Pairs | None = None
    ) -> Event:
        """Return an event of the stage's namespace with any id, predecessor and headers."""
        return Event(
            number,
            prev,
            self.network.time(0),
            namespace=NAMESPACE,
            data=map_({"n": nat(number)}),
            source=source,
            headers=headers,
        )


@dataclass(slots=True)
class Stage(Troupe):
    """The system on which a cheat acts."""

    audit: Audit
    teller: Principal
    """The publisher."""
    near: Principal
    """A subscriber on the publisher's subnet."""
    far: Principal
    """A subscriber on the other subnet."""
    stranger: Principal
    """An app without publications and subscriptions."""

    @property
    def entry(self) -> Principal:
        """Return the publisher's broadcaster."""
        return self.system.broadcasters[0]

    @property
    def exit(self) -> Principal:
        """Return the broadcaster of the far subscriber."""
        return self.system.broadcasters[1]

    def emit(self, count: int = 6) -> None:
        """Let the publisher make events, and wait until they are delivered."""
        self.tell(self.teller, NAMESPACE, range(1, count + 1))
        self.network.step(40)

    def replayed(self, start: int = 2, end: int = 7, events: int = 8) -> None:
        """Let the publisher make events, and the far subscriber ask for a replay of some."""
        self.emit(events)
        self.replay(self.far, NAMESPACE, start, end)
        self.network.step(80)


Deed = Callable[[Stage], None]
"""Acts on the stage."""


class Cheat(NamedTuple):
    """A cheat: its name in the audit's findings, and how it differs from an honest stage."""

    name: str
    role: str
    """The role of the cheating canister."""
    deed: Deed = Stage.emit
    broker: Brokers = Broadcaster
    """Makes the broadcasters."""
    teller: type[App] = Actor
    """The class of the publisher."""
    publication: Config | None = None
    """The configuration of the publication."""
    far: Config | None = None
    """The configuration of the far subscription."""


HONEST: Final = Cheat("", "nobody")
"""No cheat at all: the audit must find nothing."""


def run(cheat: Cheat = HONEST, schedule: Schedule | None = None) -> list[Finding]:
    """Let a cheat act on the stage, and return the audit's findings."""
    network = CanisterNetwork(2, schedule=schedule)
    system = deploy(
        network, broadcasters=(0, 1), settings=replace(DEFAULTS, subscriptions=5), make=cheat.broker
    )
    audit = Audit(system.orchestrator, system.broadcasters)
    network.observers.append(audit)
    troupe = Troupe(system)
    teller = troupe.actor(0, {NAMESPACE: cheat.publication or {REPLAY: True}}, make=cheat.teller)
    near = troupe.actor(0, None, {NAMESPACE: {}})
    far = troupe.actor(1, None, {NAMESPACE: cheat.far or {}})
    stage = Stage(system, audit, teller, near, far, troupe.actor(1))
    network.step(90)
    cheat.deed(stage)
    network.step(160)
    return audit.finish(system.logs(), network.running())

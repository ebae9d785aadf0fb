"""The three deployments of a publish-subscribe system (IC-36, I12).

The same cores run in different canisters: orchestrator and each broadcaster apart (`orchestrator`),
both in one canister (`broadcaster`), or both in the canister of the only publisher (`direct`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from interchain_events.icrc72.archive import whole_log
from interchain_events.icrc72.broadcaster.core import Broadcaster
from interchain_events.icrc72.client import App, Config
from interchain_events.icrc72.errors import Icrc72Error
from interchain_events.icrc72.ic.canister import Canister
from interchain_events.icrc72.ic.network import CanisterNetwork
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.messages import Event
from interchain_events.icrc72.orchestrator.core import Orchestrator
from interchain_events.icrc72.orchestrator.publications import Hook
from interchain_events.icrc72.orchestrator.state import Broker
from interchain_events.icrc72.publisher.core import Publisher
from interchain_events.icrc72.role import Core, RoleCanister
from interchain_events.icrc72.settings import DEFAULTS, Settings

KINDS: Final = ("direct", "broadcaster", "orchestrator")

"""The kinds of deployments."""

Brokers = Callable[[Principal, Settings], Broadcaster]
"""Makes a broadcaster's core from the orchestrator's id and settings. Cheats make other ones."""
C = TypeVar("C", bound=Core)


@dataclass(slots=True)
class PubSub:
    """A publish-subscribe system on a network."""

    network: CanisterNetwork
    kind: str
    """One of `KINDS`."""
    orchestrator: Principal
    settings: Settings
    broadcasters: list[Principal] = field(default_factory=list)

    @property
    def registry(self) -> Orchestrator:
        """Return the core of the orchestrator."""
        return self._core(self.orchestrator, Orchestrator)

    @property
    def brokers(self) -> Mapping[Principal, Broker]:
        """Return the broadcasters from the orchestrator's point of view.

        The result is empty if the orchestrator is a foreign implementation.
        """
        emulated = isinstance(self.network.canister(self.orchestrator), RoleCanister)
        return self.registry.state.brokers if emulated else {}

    def broadcaster(self, identity: Principal) -> Broadcaster:
        """Return the core of a broadcaster. Raises `Icrc72Error` if the canister is not one."""
        return self._core(identity, Broadcaster)

    def publisher(self, identity: Principal) -> Publisher:
        """Return the core of a publisher. Raises `Icrc72Error` if the canister is not one."""
        return self._core(identity, Publisher)

    def _core(self, identity: Principal, kind: type[C]) -> C:
        """Return the core of a kind in a canister. Raises `Icrc72Error` if it has none."""
        canister = self.network.canister(identity)
        if isinstance(canister, RoleCanister):
            for core in canister.cores:
                if isinstance(core, kind):
                    return core
        raise Icrc72Error(f"{identity.text} is not a {kind.name}")

    def app(self, identity: Principal) -> App:
        """Return an app. Raises `Icrc72Error` if the canister is not one."""
        canister = self.network.canister(identity)
        if not isinstance(canister, App):
            raise Icrc72Error(f"{identity.text} is not an app")
        return canister

    def logs(self) -> dict[Principal, dict[tuple[str, int], Event]]:
        """Return the logs of all apps that publish, each by namespace and id."""
        logs: dict[Principal, dict[tuple[str, int], Event]] = {}
        for host in self.network.hosts():
            if isinstance(host.code, App) and host.code.publisher is not None:
                log = whole_log(self.network, host.code.publisher)
                logs[host.id] = {(event.namespace, event.eventId): event for event in log}
        return logs

    def unrest(self, followers: Iterable[Principal]) -> list[str]:
        """Return a phrase for each running subscriber and broadcaster that is not at rest.

        A subscriber is not at rest while it misses or holds events, and a broadcaster while it has
        notifications in its queues.
        """
        running = set(self.network.running())
        phrases: list[str] = []
        for follower in followers:
            subscriber = self.app(follower).subscriber if follower in running else None
            if subscriber is not None:
                state = subscriber.state
                waiting = subscriber.holding()
                if state.gaps or state.current or waiting:
                    phrases.append(
                        f"{follower.text[:5]}: gaps {len(state.gaps)}, asks {state.current}, holds"
                        f" {waiting}"
                    )
        brokers = self.brokers if self.orchestrator in running else {}
        for identity in self.broadcasters:
            dead = identity in brokers and brokers[identity].dead
            if dead or identity not in running:
                continue
            for follower, queue in self.broadcaster(identity).state.queues.items():
                if queue.live or queue.replayed or queue.system:
                    queued = f"{queue.live}, {queue.replayed} and {queue.system}"
                    phrases.append(
                        f"{identity.text[:5]} holds {queued} notifications for {follower.text[:5]}"
                    )
        return phrases

    def successor(self, identity: Principal) -> Canister:
        """Return new code for an upgrade: the same app with its configuration, or a broadcaster."""
        old = self.network.canister(identity)
        if not isinstance(old, App):
            return RoleCanister([Broadcaster(self.orchestrator, self.settings)])
        published: dict[str, Config] = {}
        if old.publisher is not None:
            for name, publication in old.publisher.state.mine.items():
                published[name] = dict(publication.config)
        followed: dict[str, Config] = {}
        if old.subscriber is not None:
            for pattern, wanted in old.subscriber.state.wanted.items():
                followed[pattern] = dict(wanted.config)
        return type(old)(
            self.orchestrator, self.settings, publications=published, subscriptions=followed
        )

    def install(self, subnet: int, app: type[App]) -> Principal:
        """Install an app on a subnet."""
        return self.network.create(subnet, app(self.orchestrator, self.settings))

    def add_broadcaster(self, subnet: int, make: Brokers = Broadcaster) -> Principal:
        """Put another broadcaster on the list and install it."""
        identity = self.network.next_id(subnet)
        self.registry.add_broadcaster(identity)
        self.network.create(subnet, RoleCanister([make(self.orchestrator, self.settings)]))
        self.broadcasters.append(identity)
        return identity


def deploy(
    network: CanisterNetwork,
    kind: str = "orchestrator",
    *,
    broadcasters: Sequence[int] = (0,),
    settings: Settings = DEFAULTS,
    may_publish: Hook | None = None,
    make: Brokers = Broadcaster,
    valid: tuple[Principal, str] | None = None,
) -> PubSub:
    """Deploy an orchestrator on subnet 0, and a broadcaster on each subnet in `broadcasters`.

    A subnet that is listed twice gets two. With kind `broadcaster`, one canister is both and serves
    all subnets; kind `direct` is deployed by `deploy_direct`. `valid` is a list canister and a list
    to which the orchestrator refers questions for valid broadcasters (IC-35e). Raises `Icrc72Error`
    for another kind.
    """
    if kind not in {"broadcaster", "orchestrator"}:
        raise Icrc72Error(f"{kind!r} is not `broadcaster` or `orchestrator`")
    me = network.next_id(0)
    if kind == "broadcaster":
        core = Orchestrator([me], settings, may_publish=may_publish, everywhere=True, valid=valid)
        network.create(0, RoleCanister([core, make(me, settings)]))
        return PubSub(network, kind, me, settings, [me])
    network.create(
        0, RoleCanister([Orchestrator([], settings, may_publish=may_publish, valid=valid)])
    )
    system = PubSub(network, kind, me, settings)
    for subnet in broadcasters:
        system.add_broadcaster(subnet, make)
    return system


def deploy_direct(
    network: CanisterNetwork,
    publications: Mapping[str, Config],
    app: type[App] = App,
    *,
    settings: Settings = DEFAULTS,
) -> PubSub:
    """Deploy a publisher on subnet 0 that is its own orchestrator and broadcaster."""
    me = network.next_id(0)
    extra = (Orchestrator([me], settings, everywhere=True), Broadcaster(me, settings))
    network.create(0, app(me, settings, publications=publications, extra=extra))
    return PubSub(network, "direct", me, settings, [me])

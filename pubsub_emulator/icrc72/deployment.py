"""The three deployments (IC-36, I12): the same cores in one canister, in two kinds, or each apart."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from pubsub_emulator.icrc72.archive import whole_log
from pubsub_emulator.icrc72.broadcaster.core import Broadcaster
from pubsub_emulator.icrc72.client import App, Config
from pubsub_emulator.icrc72.errors import Icrc72Error
from pubsub_emulator.icrc72.ic.canister import Canister
from pubsub_emulator.icrc72.ic.network import CanisterNetwork
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.messages import Event
from pubsub_emulator.icrc72.orchestrator.core import Orchestrator
from pubsub_emulator.icrc72.orchestrator.publications import Hook
from pubsub_emulator.icrc72.orchestrator.state import Broker
from pubsub_emulator.icrc72.publisher.core import Publisher
from pubsub_emulator.icrc72.role import Core, RoleCanister
from pubsub_emulator.icrc72.settings import DEFAULTS, Settings

KINDS: Final = ("direct", "broadcaster", "orchestrator")

Brokers = Callable[[Principal, Settings], Broadcaster]
C = TypeVar("C", bound=Core)


@dataclass(slots=True)
class PubSub:
    """A publish-subscribe system on a network: who is where, and how more are added."""

    network: CanisterNetwork
    kind: str
    orchestrator: Principal
    settings: Settings
    broadcasters: list[Principal] = field(default_factory=list)

    @property
    def registry(self) -> Orchestrator:
        """The orchestrator's core."""
        return self._core(self.orchestrator, Orchestrator)

    @property
    def brokers(self) -> Mapping[Principal, Broker]:
        """The broadcasters as an emulated orchestrator knows them; none where the orchestrator is somebody else's."""
        emulated = isinstance(self.network.canister(self.orchestrator), RoleCanister)
        return self.registry.state.brokers if emulated else {}

    def broadcaster(self, identity: Principal) -> Broadcaster:
        """A broadcaster's core."""
        return self._core(identity, Broadcaster)

    def publisher(self, identity: Principal) -> Publisher:
        """A publisher's core."""
        return self._core(identity, Publisher)

    def _core(self, identity: Principal, kind: type[C]) -> C:
        canister = self.network.canister(identity)
        for core in canister.cores if isinstance(canister, RoleCanister) else ():
            if isinstance(core, kind):
                return core
        raise Icrc72Error(f"{identity.text} is no {kind.name}")

    def app(self, identity: Principal) -> App:
        """An app."""
        canister = self.network.canister(identity)
        if not isinstance(canister, App):
            raise Icrc72Error(f"{identity.text} is not an app")
        return canister

    def logs(self) -> dict[Principal, dict[tuple[str, int], Event]]:
        """The log of every app that publishes, by namespace and id."""
        found: dict[Principal, dict[tuple[str, int], Event]] = {}
        for host in self.network.hosts():
            if isinstance(host.code, App) and host.code.publisher is not None:
                log = whole_log(self.network, host.code.publisher)
                found[host.id] = {(each.namespace, each.eventId): each for each in log}
        return found

    def unrest(self, followers: Iterable[Principal]) -> list[str]:
        """Everything that is still under way to followers that run, one phrase each."""
        running = set(self.network.running())
        found: list[str] = []
        for who in followers:
            subscriber = self.app(who).subscriber if who in running else None
            if subscriber is not None:
                state, held = subscriber.state, subscriber.holding()
                if state.gaps or state.current or held:
                    found.append(f"{who.text[:5]}: gaps {len(state.gaps)}, asks {state.current}, holds {held}")
        brokers = self.brokers if self.orchestrator in running else {}
        for identity in self.broadcasters:
            dead = identity in brokers and brokers[identity].dead
            queues = self.broadcaster(identity).state.queues if identity in running and not dead else {}
            for who, queue in queues.items():
                if queue.live or queue.replayed or queue.system:
                    queued = f"{queue.live}, {queue.replayed} and {queue.system}"
                    found.append(f"{identity.text[:5]} holds {queued} notifications for {who.text[:5]}")
        return found

    def successor(self, who: Principal) -> Canister:
        """New code for what runs there: the same app with the same configuration, or a broadcaster."""
        old = self.network.canister(who)
        if not isinstance(old, App):
            return RoleCanister([Broadcaster(self.orchestrator, self.settings)])
        mine = {} if old.publisher is None else old.publisher.state.mine
        wanted = {} if old.subscriber is None else old.subscriber.state.wanted
        published: dict[str, Config] = {name: dict(each.config) for name, each in mine.items()}
        followed: dict[str, Config] = {name: dict(each.config) for name, each in wanted.items()}
        return type(old)(self.orchestrator, self.settings, publications=published, subscriptions=followed)

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
    """An orchestrator on subnet 0, and a broadcaster on each subnet that is named, once per naming.

    `valid` is a list canister and its list: whoever asks for valid broadcasters is sent there (IC-35e). With kind
    `broadcaster` one canister is both, for all subnets. Kind `direct` is made by `deploy_direct`.
    """
    if kind not in {"broadcaster", "orchestrator"}:
        raise Icrc72Error(f"{kind!r} is not `broadcaster` or `orchestrator`")
    me = network.next_id(0)
    if kind == "broadcaster":
        core = Orchestrator([me], settings, may_publish=may_publish, everywhere=True, valid=valid)
        network.create(0, RoleCanister([core, make(me, settings)]))
        return PubSub(network, kind, me, settings, [me])
    network.create(0, RoleCanister([Orchestrator([], settings, may_publish=may_publish, valid=valid)]))
    made = PubSub(network, kind, me, settings)
    for subnet in broadcasters:
        made.add_broadcaster(subnet, make)
    return made


def deploy_direct(
    network: CanisterNetwork, publications: Mapping[str, Config], app: type[App] = App, *, settings: Settings = DEFAULTS
) -> PubSub:
    """A publisher on subnet 0 that registers and serves its subscribers itself."""
    me = network.next_id(0)
    extra = (Orchestrator([me], settings, everywhere=True), Broadcaster(me, settings))
    network.create(0, app(me, settings, publications=publications, extra=extra))
    return PubSub(network, "direct", me, settings, [me])

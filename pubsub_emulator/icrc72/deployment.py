"""The three deployments (IC-36): the same cores in one canister, in two kinds, or each apart."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pubsub_emulator.icrc72.broadcaster.core import Broadcaster
from pubsub_emulator.icrc72.client import App, Config
from pubsub_emulator.icrc72.errors import Icrc72Error
from pubsub_emulator.icrc72.ic.network import CanisterNetwork
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.orchestrator.core import Orchestrator
from pubsub_emulator.icrc72.orchestrator.publications import Hook
from pubsub_emulator.icrc72.role import RoleCanister
from pubsub_emulator.icrc72.settings import DEFAULTS, Settings

KINDS: Final = ("direct", "broadcaster", "orchestrator")

Brokers = Callable[[Principal, Settings], Broadcaster]


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
        canister = self.network.canister(self.orchestrator)
        if isinstance(canister, RoleCanister):
            for core in canister.cores:
                if isinstance(core, Orchestrator):
                    return core
        raise Icrc72Error("the orchestrator is gone")

    def broadcaster(self, identity: Principal) -> Broadcaster:
        """A broadcaster's core."""
        canister = self.network.canister(identity)
        if isinstance(canister, RoleCanister):
            for core in canister.cores:
                if isinstance(core, Broadcaster):
                    return core
        raise Icrc72Error(f"{identity.text} is not a broadcaster")

    def app(self, identity: Principal) -> App:
        """An app."""
        canister = self.network.canister(identity)
        if not isinstance(canister, App):
            raise Icrc72Error(f"{identity.text} is not an app")
        return canister

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

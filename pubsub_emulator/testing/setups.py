"""Small networks as data that prints as the code that makes it, for shrunk counterexamples."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pubsub_emulator.emulator.network import CollatorConfig, Network, NetworkConfig, ParachainConfig
from pubsub_emulator.emulator.network.parachain import Pace
from pubsub_emulator.emulator.relay.runtime import RelayConfig
from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.runtime.pallet_subscriber.config import CachePolicy, RuntimeSpec, merge_subscriptions

Collators = tuple[tuple[str, ...], ...]
"""The strategies of each collator, which it follows at every turn; empty for an honest one."""

HONEST: Collators = ((), ())


@dataclass(frozen=True, slots=True)
class SubscriberSetup:
    """A subscriber: its items, cache policy, collators and pace; `cache` names a `CachePolicy`."""

    para: int
    items: Mapping[int, tuple[PubsubKey, ...]]
    collators: Collators = HONEST
    cache: str = "slots"
    pace: Pace = field(default_factory=Pace)

    def config(self) -> ParachainConfig:
        """The parachain's configuration."""
        wanted = merge_subscriptions([(ParaId(para), list(keys)) for para, keys in self.items.items()])
        spec = RuntimeSpec(ParaId(self.para), wanted, cache=CachePolicy(self.cache))
        return ParachainConfig(spec, tuple(CollatorConfig(names) for names in self.collators), self.pace)


@dataclass(frozen=True, slots=True)
class NetworkSetup:
    """A network: publishers and subscribers."""

    publishers: tuple[int, ...]
    subscribers: tuple[SubscriberSetup, ...]
    seed: str = "network"

    def config(self) -> NetworkConfig:
        """The network's configuration; publishers that need it are registered from the start."""
        relay = RelayConfig()
        publishing = [ParaId(para) for para in self.publishers]
        chains = [subscriber.config() for subscriber in self.subscribers]
        chains += [ParachainConfig.publisher(RuntimeSpec(para, {})) for para in publishing]
        registered = tuple(para for para in publishing if not relay.pubsub.is_system(para))
        return NetworkConfig(tuple(chains), relay, registered, seed=self.seed.encode())

    def network(self) -> Network:
        """The network at genesis. Raises `PubsubError` for what cannot work."""
        return Network(self.config())

"""Small networks as data, whose `repr` is code that creates them, for shrunk counterexamples."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pubsub_emulator.emulator.network import CollatorConfig, Network, NetworkConfig, ParachainConfig
from pubsub_emulator.emulator.network.parachain import Pace
from pubsub_emulator.emulator.relay.runtime import RelayConfig
from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.runtime.pallet_subscriber.config import (
    CachePolicy,
    RuntimeSpec,
    merge_subscriptions,
)

Collators = tuple[tuple[str, ...], ...]
"""The strategies of each collator, which it uses at every turn. An honest one has an empty tuple.
"""

HONEST: Collators = ((), ())
"""Two honest collators."""


@dataclass(frozen=True, slots=True)
class SubscriberSetup:
    """A subscriber."""

    para: int
    items: Mapping[int, tuple[PubsubKey, ...]]
    """The keys that it subscribes to, by publisher."""
    collators: Collators = HONEST
    cache: str = "slots"
    """The value of a `CachePolicy`."""
    pace: Pace = field(default_factory=Pace)

    def config(self) -> ParachainConfig:
        """Return the configuration of the parachain."""
        subscriptions = merge_subscriptions(
            [(ParaId(para), list(keys)) for para, keys in self.items.items()]
        )
        spec = RuntimeSpec(ParaId(self.para), subscriptions, cache=CachePolicy(self.cache))
        return ParachainConfig(
            spec, tuple(CollatorConfig(names) for names in self.collators), self.pace
        )


@dataclass(frozen=True, slots=True)
class NetworkSetup:
    """A network of publishers and subscribers."""

    publishers: tuple[int, ...]
    subscribers: tuple[SubscriberSetup, ...]
    seed: str = "network"

    def config(self) -> NetworkConfig:
        """Return the configuration of the network.

        Publishers that need a registration are registered from the start.
        """
        relay = RelayConfig()
        publishing = [ParaId(para) for para in self.publishers]
        chains = [subscriber.config() for subscriber in self.subscribers]
        chains += [ParachainConfig.publisher(RuntimeSpec(para, {})) for para in publishing]
        registered = tuple(para for para in publishing if not relay.pubsub.is_system(para))
        return NetworkConfig(tuple(chains), relay, registered, seed=self.seed.encode())

    def network(self) -> Network:
        """Return the network at genesis. Raises `PubsubError` if it cannot work."""
        return Network(self.config())

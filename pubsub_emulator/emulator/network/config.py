"""The configuration of a network at genesis."""

from dataclasses import dataclass, field, replace

from pubsub_emulator.emulator.fork import Fork, Forks
from pubsub_emulator.emulator.network.arguments import refuse
from pubsub_emulator.emulator.network.parachain import HONEST, CollatorConfig, Pace
from pubsub_emulator.emulator.relay.runtime import RelayConfig
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec


@dataclass(frozen=True, slots=True)
class ParachainConfig:
    """One parachain: its runtime, its collators, and when it builds blocks."""

    spec: RuntimeSpec
    collators: tuple[CollatorConfig, ...] = (HONEST, HONEST)
    pace: Pace = field(default_factory=Pace)
    fork: Fork | None = None
    """What the chain's first state is written over."""

    @staticmethod
    def publisher(spec: RuntimeSpec) -> "ParachainConfig":
        """A parachain with one honest collator that builds only when it has something to send."""
        return ParachainConfig(spec, (HONEST,), Pace(on_demand=True))


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """A network at genesis: registered `publishers`, open `channels` (sender, recipient), and the `fork` below it."""

    parachains: tuple[ParachainConfig, ...]
    relay: RelayConfig = field(default_factory=RelayConfig)
    publishers: tuple[ParaId, ...] = ()
    channels: tuple[tuple[ParaId, ParaId], ...] = ()
    seed: bytes = b"network"
    segment_length: int = 100
    """Relay blocks between two checkpoints of all chains."""
    fork: Fork | None = None
    unjudged: bool = False
    """An honest author's own outcome counts as the verdict on its block: the same history, without the second walk and
    execution. Verifiers are then tried by cheats alone, and by whoever audits the history."""


def with_forks(config: NetworkConfig, forks: Forks) -> NetworkConfig:
    """The same network on forked states. Raises `BadRequest` for a parachain that it does not have."""
    for para in forks.parachains.keys() - {each.spec.para_id for each in config.parachains}:
        refuse(f"a fork of parachain {para}, which is not of this network")
    chains = tuple(replace(each, fork=forks.parachains.get(each.spec.para_id)) for each in config.parachains)
    return replace(config, parachains=chains, fork=forks.relay)

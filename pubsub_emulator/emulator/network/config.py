"""The configuration of a network at genesis."""

from dataclasses import dataclass, field, replace

from pubsub_emulator.emulator.fork import Forks
from pubsub_emulator.emulator.network.arguments import refuse
from pubsub_emulator.emulator.network.parachain import HONEST, CollatorConfig, Pace
from pubsub_emulator.emulator.relay.runtime import RelayConfig
from pubsub_emulator.emulator.relay.validators import validator_seeds
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.fork import Fork
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec
from pubsub_emulator.runtime.rules import Rules


@dataclass(frozen=True, slots=True)
class ParachainConfig:
    """The configuration of one parachain: its runtime, collators and pace."""

    spec: RuntimeSpec
    collators: tuple[CollatorConfig, ...] = (HONEST, HONEST)
    pace: Pace = field(default_factory=Pace)
    fork: Fork | None = None
    """The state into which the genesis is written, or `None` for an empty state."""

    @staticmethod
    def publisher(spec: RuntimeSpec) -> "ParachainConfig":
        """Return a parachain with one honest collator that builds only when messages wait."""
        return ParachainConfig(spec, (HONEST,), Pace(on_demand=True))


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """The configuration of a network at genesis."""

    parachains: tuple[ParachainConfig, ...]
    relay: RelayConfig = field(default_factory=RelayConfig)
    publishers: tuple[ParaId, ...] = ()
    """The parachains that are registered as publishers."""
    channels: tuple[tuple[ParaId, ParaId], ...] = ()
    """Open message channels as (sender, recipient)."""
    seed: bytes = b"network"
    """The seed of all draws and keys."""
    segment_length: int = 100
    """The number of relay blocks between two checkpoints of all chains."""
    fork: Fork | None = None
    """The block that the relay chain continues from, if any."""
    unjudged: bool = False
    """Whether to accept honest blocks without verifying them.

    The author's own outcome is then taken as the verdict. This saves walking the proof and
    executing the block a second time. The history is the same, but the verifier only runs on blocks
    of cheating collators and in later audits.
    """

    @property
    def rules(self) -> Rules:
        """Return the rules of the relay chain.

        The runtime of a parachain names these or the shipped ones.
        """
        return self.relay.pubsub.rules


def with_validators(config: NetworkConfig) -> NetworkConfig:
    """Return the same network, with validators if blocks of a parachain show relay headers.

    Networks without a relay parent offset have no validators: their relay headers have no seals, so
    that the hashes and digests of their histories stay the same as before UP-12.
    """
    has_offset = any(chain.spec.relay_parent_offset for chain in config.parachains)
    if not has_offset or config.relay.validators:
        return config
    return replace(config, relay=replace(config.relay, validators=validator_seeds(config.seed)))


def with_forks(config: NetworkConfig, forks: Forks) -> NetworkConfig:
    """Return the same network on forked states.

    Raises `BadRequest` if a fork belongs to a parachain that the network does not have.
    """
    for para in forks.parachains.keys() - {chain.spec.para_id for chain in config.parachains}:
        refuse(f"a fork of parachain {para}, which is not in this network")
    chains = tuple(
        replace(chain, fork=forks.parachains.get(chain.spec.para_id)) for chain in config.parachains
    )
    return replace(config, parachains=chains, fork=forks.relay)

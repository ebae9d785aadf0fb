"""The metadata of small chains."""

from pubsub_emulator.emulator.network import Network, NetworkConfig, ParachainConfig
from pubsub_emulator.emulator.relay.runtime import RelayConfig
from pubsub_emulator.node.at import At, metadata
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec


def metadata_of_chains(version: int = 14) -> dict[str, bytes]:
    """Return the metadata of a relay chain and a parachain with accounts."""
    spec = RuntimeSpec(ParaId(2000), {}, accounts=True)
    network = Network(NetworkConfig((ParachainConfig(spec),), RelayConfig(accounts=True)))
    chain, genesis = network.parachain(2000), network.relay.header.hash()
    return {
        "relay": metadata(
            At(network.relay.runtime, network.relay.header, network.relay.state, genesis), version
        ),
        "parachain": metadata(At(None, chain.header, chain.state, genesis), version),
    }

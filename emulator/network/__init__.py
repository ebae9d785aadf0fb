"""One network: relay chain, parachains and collators, stepped relay block by relay block."""

from pubsub_emulator.emulator.network.network import (
    Network,
    NetworkConfig,
    ParachainConfig,
    Snapshot,
    Step,
    UnknownCall,
    UnknownParachain,
)

__all__ = [
    "Network",
    "NetworkConfig",
    "ParachainConfig",
    "Snapshot",
    "Step",
    "UnknownCall",
    "UnknownParachain",
]

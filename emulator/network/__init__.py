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
from pubsub_emulator.emulator.network.parachain import Pace

__all__ = ["Network", "NetworkConfig", "Pace", "ParachainConfig", "Snapshot", "Step", "UnknownCall", "UnknownParachain"]

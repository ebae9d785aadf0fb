"""A network of relay chain, parachains and collators, which is stepped by relay blocks."""

from pubsub_emulator.emulator.network.config import NetworkConfig, ParachainConfig
from pubsub_emulator.emulator.network.network import Network, UnknownCall
from pubsub_emulator.emulator.network.parachain import CollatorConfig, Pace
from pubsub_emulator.emulator.network.step import Snapshot, Step, UnknownParachain

__all__ = [
    "CollatorConfig",
    "Network",
    "NetworkConfig",
    "Pace",
    "ParachainConfig",
    "Snapshot",
    "Step",
    "UnknownCall",
    "UnknownParachain",
]

"""The scenarios of the distributor's rules (`ied.md`, section 8), each played in virtual time."""

from pubsub_emulator.distributor.simulation.scenarios import publishing, replicating, subscribing
from pubsub_emulator.distributor.simulation.stage import SCENARIOS, play

__all__ = ["SCENARIOS", "play", "publishing", "replicating", "subscribing"]

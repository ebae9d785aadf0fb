"""The scenarios of the distributor's rules (`ied.md`, section 8), each played in virtual time."""

from interchain_events.distributor.simulation.scenarios import publishing, replicating, subscribing
from interchain_events.distributor.simulation.stage import SCENARIOS, play

__all__ = ["SCENARIOS", "play", "publishing", "replicating", "subscribing"]

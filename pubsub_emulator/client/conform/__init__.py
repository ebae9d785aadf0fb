"""Holds a running relay chain with its parachains to the rules of publishing, through what every node has.

`mapping` says what the chain calls things, `driver` acts and reads, `story` has what rules are tested with, `checks`
and `effects` have one function for each rule.
"""

from pubsub_emulator.client.conform import checks, effects
from pubsub_emulator.client.conform.driver import Driver
from pubsub_emulator.client.conform.mapping import Mapping, read_mapping
from pubsub_emulator.client.conform.story import RULES, Finding, conform

__all__ = ["RULES", "Driver", "Finding", "Mapping", "checks", "conform", "effects", "read_mapping"]

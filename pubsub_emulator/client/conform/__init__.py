"""Tests whether a running relay chain with its parachains follows the rules of publishing.

Only methods that every node has are used. `mapping` holds the chain's own names, `trial` makes
calls, reads results and compares them, and `checks` and `effects` contain the rules. They compute
the expected values from the rules alone, and never use the code of a runtime.
"""

from pubsub_emulator.client.conform import checks, effects
from pubsub_emulator.client.conform.mapping import Mapping, read_mapping
from pubsub_emulator.client.conform.trial import RULES, Finding, Trial, conform

__all__ = ["RULES", "Finding", "Mapping", "Trial", "checks", "conform", "effects", "read_mapping"]

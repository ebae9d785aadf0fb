"""Tests whether a running relay chain with its parachains follows the rules of publishing.

Only methods that every node has are used. `mapping` has the chain's own names, `trial` acts, reads
and requires, and `checks` and `effects` contain the rules. Expected values are computed there from
the rules, and never by the code of a runtime.
"""

from pubsub_emulator.client.conform import checks, effects
from pubsub_emulator.client.conform.mapping import Mapping, read_mapping
from pubsub_emulator.client.conform.trial import RULES, Finding, Trial, conform

__all__ = ["RULES", "Finding", "Mapping", "Trial", "checks", "conform", "effects", "read_mapping"]

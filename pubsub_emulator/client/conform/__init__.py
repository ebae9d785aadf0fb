"""Holds a running relay chain with its parachains to the rules of publishing, through what every node has.

`mapping` says what the chain calls things, `trial` acts, reads and requires, `checks` and `effects` have the rules.
What is expected is computed there from the rules, and never by the code of a runtime.
"""

from pubsub_emulator.client.conform import checks, effects
from pubsub_emulator.client.conform.mapping import Mapping, read_mapping
from pubsub_emulator.client.conform.trial import RULES, Finding, Trial, conform

__all__ = ["RULES", "Finding", "Mapping", "Trial", "checks", "conform", "effects", "read_mapping"]

"""Holds a running relay chain with its parachains to the rules of publishing, through what every node has.

`mapping` says what the chain calls things, `driver` acts and reads, `checks` has one function for each rule.
"""

from pubsub_emulator.client.conform.checks import Finding, conform
from pubsub_emulator.client.conform.mapping import Mapping, read_mapping

__all__ = ["Finding", "Mapping", "conform", "read_mapping"]

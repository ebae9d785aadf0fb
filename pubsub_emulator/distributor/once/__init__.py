"""Doing something once: claims with leases that are committed, released or revoked."""

from pubsub_emulator.eventplane.once.claims import Claim, claim, commit, release, revoke
from pubsub_emulator.eventplane.once.memory import MemoryStore
from pubsub_emulator.eventplane.once.once import Once
from pubsub_emulator.eventplane.once.stores import open_store
from pubsub_emulator.eventplane.once.transaction import DueRow, Store, StoreError, Transaction

__all__ = [
    "Claim",
    "DueRow",
    "MemoryStore",
    "Once",
    "Store",
    "StoreError",
    "Transaction",
    "claim",
    "commit",
    "open_store",
    "release",
    "revoke",
]

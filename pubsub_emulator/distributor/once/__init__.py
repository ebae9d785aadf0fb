"""Doing something once: claims with leases that are committed, released or revoked (ID-3, ID-4)."""

from pubsub_emulator.distributor.once.claims import Claim, claim, commit, release, revoke
from pubsub_emulator.distributor.once.memory import MemoryStore
from pubsub_emulator.distributor.once.stores import open_store
from pubsub_emulator.distributor.once.transaction import DueRow, Store, Transaction

__all__ = [
    "Claim",
    "DueRow",
    "MemoryStore",
    "Store",
    "Transaction",
    "claim",
    "commit",
    "open_store",
    "release",
    "revoke",
]

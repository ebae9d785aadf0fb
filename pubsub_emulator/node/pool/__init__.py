"""The pool of one chain: signed extrinsics that wait for a block. Pure: no clock, no sockets, no other chain."""

from pubsub_emulator.node.pool.pool import MAX_BYTES, MAX_EXTRINSICS, MOST_EXTRINSIC, Pool, PoolChange, Refused, check

__all__ = ["MAX_BYTES", "MAX_EXTRINSICS", "MOST_EXTRINSIC", "Pool", "PoolChange", "Refused", "check"]

"""The weights of the pallet, computed from its accesses.

They use the reference weights of a node on RocksDB:

ref_time    25 µs a read, 100 µs a write, 15 µs of computing a call, 2 ns a value byte (copied,
            hashed, written)
proof_size  a read adds at most one full branch and a leaf to a proof if the path above is shared:
            700 bytes; reading an entry also adds the entry, counted as the largest possible one,
            since its length is not known before

Every function lists the accesses that it counts. The figures are for both TTL policies.
"""

from typing import Final

from pubsub_emulator.primitives.pubsub import entry_length
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.pallet_pubsub.config import Config, TtlPolicy

READ: Final = Weight(25_000_000, 700)
WRITE: Final = Weight(100_000_000, 0)
CALL: Final = Weight(15_000_000, 0)
PER_VALUE_BYTE: Final = Weight(2_000, 0)


def _read_entry(config: Config) -> Weight:
    return READ + Weight(0, entry_length(config.max_value_length))


def _index_writes(config: Config) -> int:
    return 1 if config.ttl_policy is TtlPolicy.EXPIRY_INDEX else 0


def publish(config: Config, value_length: int) -> Weight:
    """Return the weight of a `Publish` of a value of `value_length` bytes.

    It reads registration, count, size and the old entry. It writes entry, child root, count, size,
    the TTL row and, in the expiry index, the old row and the new one.
    """
    writes = WRITE * (5 + 2 * _index_writes(config))
    return CALL + READ * 3 + _read_entry(config) + writes + PER_VALUE_BYTE * value_length


def remove_key(config: Config) -> Weight:
    """Return the weight of removing one entry.

    It reads the entry and writes entry, TTL row and expiry index.
    """
    return _read_entry(config) + WRITE * (2 + _index_writes(config))


def _remove_keys(config: Config, keys: int) -> Weight:
    """Return the weight of removing `keys` entries of one publisher.

    Its two counters, its child root and its lap mark are included.
    """
    return READ * 2 + WRITE * 4 + remove_key(config) * keys


def register_publisher() -> Weight:
    """Return the weight of either registration.

    It reads registration, counter, para owner, account and its holds, and writes four of them.
    """
    return CALL + READ * 5 + WRITE * 4


def deregister_publisher(config: Config, keys: int | None = None) -> Weight:
    """Return the weight of either deregistration of a publisher with `keys` keys.

    If the number is not known yet, it counts as `MaxStoredKeys`.
    """
    keys = config.max_stored_keys if keys is None else keys
    return CALL + READ * 4 + WRITE * 5 + _remove_keys(config, keys)


def delete_keys(config: Config, keys: int) -> Weight:
    """Return the weight of either deletion of `keys` named keys.

    Absent keys are read too.
    """
    return CALL + READ + _remove_keys(config, keys)


def on_idle_base() -> Weight:
    """Return the weight of a sweep that examines nothing.

    It reads and writes the cursor, and finds the end of the table at most twice.
    """
    return CALL + READ * 3 + WRITE


def examine_row() -> Weight:
    """Return the weight of reading one row of `TtlData` or of the expiry index."""
    return READ


def enter_publisher() -> Weight:
    """Return the weight of entering a publisher in a lap: its mark is read."""
    return READ


def leave_publisher() -> Weight:
    """Return the weight of leaving a publisher before its last row: its mark is written."""
    return WRITE


def resume_publisher() -> Weight:
    """Return the weight of resuming a publisher at its mark.

    It needs one more seek, and the mark is removed.
    """
    return READ + WRITE


def expire_key(config: Config) -> Weight:
    """Return the weight of removing one expired entry.

    It counts as the only entry of its publisher.
    """
    return _remove_keys(config, 1)

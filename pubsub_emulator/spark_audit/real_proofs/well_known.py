"""The relay keys that real collators prove, for the attribution of a real proof's bytes."""

from typing import Final

from pubsub_emulator.primitives import storage_keys
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.relay_keys import BABE_ITEMS

NEEDED_KEYS: Final = (storage_keys.ACTIVE_CONFIG,)
"""Keys that the runtime of every parachain reads from the relay proof. It refuses a block if the
proof does not give their values."""


def expected_keys(para: ParaId) -> tuple[bytes, ...]:
    """Return the keys that a parachain's collator commonly proves.

    Some of them may be absent, which is proven as well.
    """
    legacy_queue_size = (
        storage_keys.item_prefix("Ump", "RelayDispatchQueueSize")
        + storage_keys.dmq_mqc_head(para)[32:]
    )
    return (
        *(storage_keys.item_prefix("Babe", item) for item in BABE_ITEMS),
        storage_keys.ACTIVE_CONFIG,
        storage_keys.dmq_mqc_head(para),
        storage_keys.hrmp_ingress_channel_index(para),
        storage_keys.hrmp_egress_channel_index(para),
        storage_keys.para_head(para),
        storage_keys.upgrade_go_ahead_signal(para),
        storage_keys.upgrade_restriction_signal(para),
        storage_keys.relay_dispatch_queue_remaining_capacity(para),
        legacy_queue_size,
    )


def is_channel_of(key: bytes, para: ParaId) -> bool:
    """Return whether a key is that of a horizontal channel from or to a parachain."""
    prefix = storage_keys.item_prefix("Hrmp", "HrmpChannels")
    return key.startswith(prefix) and para.to_bytes(4, "little") in {key[40:44], key[44:48]}


def is_child_root(key: bytes) -> bool:
    """Return whether a key is that of a child trie's root."""
    return key.startswith(storage_keys.CHILD_STORAGE_PREFIX)

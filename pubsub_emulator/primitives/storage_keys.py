"""Storage keys: FRAME's prefixes, child tries, and the well-known keys of the relay chain.

value       twox_128(pallet) ++ twox_128(item)
map         the same ++ hasher(SCALE(key))
double map  the same ++ hasher1(SCALE(key1)) ++ hasher2(SCALE(key2))
"""

from functools import lru_cache
from typing import Final

from pubsub_emulator.primitives.hashing import twox64_concat, twox_128
from pubsub_emulator.primitives.types import ParaId

CHILD_STORAGE_PREFIX: Final = b":child_storage:default:"
CODE: Final = b":code"
"""Well-known key of a chain's runtime code."""


@lru_cache(maxsize=1024)
def item_prefix(pallet: str, item: str) -> bytes:
    """Return the 32-byte prefix of a storage item."""
    return twox_128(pallet.encode()) + twox_128(item.encode())


def child_root_key(child_storage_key: bytes) -> bytes:
    """Return the top-trie key at which the root of a default child trie is stored."""
    return CHILD_STORAGE_PREFIX + child_storage_key


# Every block of a parachain reads the same keys.
@lru_cache(maxsize=1 << 14)
def _para_map_key(pallet: str, item: str, para: ParaId) -> bytes:
    return item_prefix(pallet, item) + twox64_concat(para.to_bytes(4, "little"))


ACTIVE_CONFIG: Final = item_prefix("Configuration", "ActiveConfig")
CURRENT_SLOT: Final = item_prefix("Babe", "CurrentSlot")
CURRENT_BLOCK_RANDOMNESS: Final = item_prefix("Babe", "AuthorVrfRandomness")
ONE_EPOCH_AGO_RANDOMNESS: Final = item_prefix("Babe", "NextRandomness")
TWO_EPOCHS_AGO_RANDOMNESS: Final = item_prefix("Babe", "Randomness")
AUTHORITIES: Final = item_prefix("Babe", "Authorities")
NEXT_AUTHORITIES: Final = item_prefix("Babe", "NextAuthorities")


def para_head(para: ParaId) -> bytes:
    """Return the key of `Paras::Heads`, the head data of a parachain's newest included block."""
    return _para_map_key("Paras", "Heads", para)


def dmq_mqc_head(para: ParaId) -> bytes:
    """Return the key of `Dmp::DownwardMessageQueueHeads`.

    Its value is the hash chain over the downward messages sent to a parachain.
    """
    return _para_map_key("Dmp", "DownwardMessageQueueHeads", para)


def hrmp_ingress_channel_index(para: ParaId) -> bytes:
    """Return the key of `Hrmp::HrmpIngressChannelsIndex`.

    Its value lists the senders that have a channel to a parachain, ascending.
    """
    return _para_map_key("Hrmp", "HrmpIngressChannelsIndex", para)


def hrmp_egress_channel_index(para: ParaId) -> bytes:
    """Return the key of `Hrmp::HrmpEgressChannelsIndex`.

    Its value lists the recipients that a parachain has a channel to, ascending.
    """
    return _para_map_key("Hrmp", "HrmpEgressChannelsIndex", para)


def hrmp_channel(sender: ParaId, recipient: ParaId) -> bytes:
    """Return the key of `Hrmp::HrmpChannels`, the state of one horizontal channel."""
    channel = sender.to_bytes(4, "little") + recipient.to_bytes(4, "little")
    return item_prefix("Hrmp", "HrmpChannels") + twox64_concat(channel)


def relay_dispatch_queue_size(para: ParaId) -> bytes:
    """Return the key of `Ump::RelayDispatchQueueSize`, which relay chains had before 2023.

    Parachains still prove that it is absent.
    """
    return _para_map_key("Ump", "RelayDispatchQueueSize", para)


def relay_dispatch_queue_remaining_capacity(para: ParaId) -> bytes:
    """Return the well-known key of the remaining capacity for upward messages.

    Its value says how many upward messages the relay chain still accepts from a parachain.
    """
    return b":relay_dispatch_queue_remaining_capacity" + para.to_bytes(4, "little")


def upgrade_go_ahead_signal(para: ParaId) -> bytes:
    """Return the key of `Paras::UpgradeGoAheadSignal`."""
    return _para_map_key("Paras", "UpgradeGoAheadSignal", para)


def upgrade_restriction_signal(para: ParaId) -> bytes:
    """Return the key of `Paras::UpgradeRestrictionSignal`."""
    return _para_map_key("Paras", "UpgradeRestrictionSignal", para)

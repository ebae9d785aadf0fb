"""Names of the relay chain's storage keys, for the attribution of a real proof's bytes."""

from functools import lru_cache
from typing import Final

from pubsub_emulator.primitives import storage_keys
from pubsub_emulator.primitives.types import ParaId

_ITEMS: Final[dict[str, tuple[str, ...]]] = {
    "Babe": (
        "AuthorVrfRandomness",
        "Authorities",
        "CurrentSlot",
        "EpochIndex",
        "EpochStart",
        "NextAuthorities",
        "NextRandomness",
        "Randomness",
    ),
    "Configuration": ("ActiveConfig", "BypassConsistencyCheck", "PendingConfigs"),
    "Dmp": ("DeliveryFeeFactor", "DownwardMessageQueueHeads", "DownwardMessageQueues"),
    "Hrmp": (
        "HrmpChannelContents",
        "HrmpChannelDigests",
        "HrmpChannels",
        "HrmpEgressChannelsIndex",
        "HrmpIngressChannelsIndex",
        "HrmpOpenChannelRequestsList",
        "HrmpWatermarks",
    ),
    "Paras": (
        "FutureCodeHash",
        "Heads",
        "PastCodePruning",
        "PvfActiveVoteList",
        "UpcomingUpgrades",
        "UpgradeGoAheadSignal",
        "UpgradeRestrictionSignal",
    ),
    "Timestamp": ("DidUpdate", "Now"),
    "Ump": (
        "CounterForOverweight",
        "NeedsDispatch",
        "OverweightCount",
        "RelayDispatchQueueSize",
        "RelayDispatchQueues",
    ),
}
"""Storage items of the relay chain by pallet."""
_STORAGE_VERSION: Final = ":__STORAGE_VERSION__:"
_CAPACITY: Final = b":relay_dispatch_queue_remaining_capacity"
"""The beginning of the keys with the remaining capacity of a parachain's upward queue."""
_PUBLISHER: Final = storage_keys.CHILD_STORAGE_PREFIX + b"pubsub"
"""The beginning of the root keys of publishers' child tries."""

NEEDED_KEYS: Final = (storage_keys.ACTIVE_CONFIG,)
"""Keys that the runtime of every parachain reads from the relay proof, and without whose value it
refuses a block."""


@lru_cache(maxsize=1)
def _names() -> dict[bytes, str]:
    """Return the names of storage items by the prefixes of their keys."""
    names = {
        storage_keys.item_prefix(pallet, item): f"{pallet}.{item}"
        for pallet, items in _ITEMS.items()
        for item in items
    }
    names.update(
        {
            storage_keys.item_prefix(pallet, _STORAGE_VERSION): f"{pallet}.StorageVersion"
            for pallet in _ITEMS
        }
    )
    return names


def key_name(key: bytes) -> str:
    """Return a relay key in words.

    For example `Hrmp.HrmpChannels(1000, 2004)`, `child trie 1000`, or `unknown 0x…`.
    """
    if key.startswith(_PUBLISHER) and len(key) == len(_PUBLISHER) + 4:
        return f"child trie {int.from_bytes(key[-4:], 'little')}"
    if key.startswith(storage_keys.CHILD_STORAGE_PREFIX):
        return f"child trie 0x{key[len(storage_keys.CHILD_STORAGE_PREFIX) :].hex()}"
    if key.startswith(_CAPACITY):
        para = int.from_bytes(key[len(_CAPACITY) :], "little")
        return f"relay_dispatch_queue_remaining_capacity({para})"
    name = _names().get(key[:32])
    if name is None:
        return f"unknown 0x{key.hex()}"
    # The keys of maps are hashed by Twox64Concat: 8 bytes of hash, then the SCALE of one or two
    # ParaIds.
    paras = key[40:]
    if not paras:
        return name
    ids = ", ".join(
        str(int.from_bytes(paras[at : at + 4], "little")) for at in range(0, len(paras), 4)
    )
    return f"{name}({ids})"


def expected_keys(para: ParaId) -> tuple[bytes, ...]:
    """Return the keys that a parachain's collator commonly proves.

    Some of them may be absent, which is proven as well.
    """
    legacy_queue_size = (
        storage_keys.item_prefix("Ump", "RelayDispatchQueueSize")
        + storage_keys.dmq_mqc_head(para)[32:]
    )
    return (
        *(storage_keys.item_prefix("Babe", item) for item in _ITEMS["Babe"]),
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

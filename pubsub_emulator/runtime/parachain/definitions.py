"""Definitions of a parachain's pallets for metadata. Their constants are those of the `RuntimeSpec`."""

from typing import Final

from pubsub_emulator.primitives import scale, type_info
from pubsub_emulator.primitives.types import Hash, RelayBlockNumber
from pubsub_emulator.primitives.weights import Weight, encode_weight, weight_info
from pubsub_emulator.runtime.accounts import publisher
from pubsub_emulator.runtime.accounts.definitions import (
    SUDO,
    TIMESTAMP,
    TRANSACTION_PAYMENT,
    UTILITY,
    balances_definition,
    system_definition,
)
from pubsub_emulator.runtime.balances import Balances
from pubsub_emulator.runtime.framework.definitions import Constant, Item, PalletDefinition, RuntimeVersion, constant
from pubsub_emulator.runtime.framework.dispatch import BadOrigin, dispatchable
from pubsub_emulator.runtime.framework.message_chains import (
    InboundDownwardMessage,
    InboundHrmpMessage,
    downward_message,
    hrmp_message,
    para_id,
    relay_number,
)
from pubsub_emulator.runtime.framework.origin import Origin
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.framework.system import hash_codec
from pubsub_emulator.runtime.pallet_subscriber import storage as subscriber
from pubsub_emulator.runtime.pallet_subscriber.calls import SubscriberCalls
from pubsub_emulator.runtime.pallet_subscriber.config import MAX_EXTRINSICS, CachePolicy, RuntimeSpec
from pubsub_emulator.runtime.pallet_subscriber.handler import VALUES
from pubsub_emulator.runtime.parachain import storage as own_items

MAX_WEIGHT: Final = Weight(1_500_000_000_000, MAX_EXTRINSICS)
"""The most weight of the signed extrinsics of one block."""
_PACKED: Final = frozenset({"CachedTrieNodes", "CacheSlots", "LastDeliveredPacked"})
"""Items of `Subscriber` whose values are not SCALE types, which metadata omits."""
_INHERENT_LENGTH: Final = 10 * 1024 * 1024


class ParachainSystem:
    """`ParachainSystem`'s call in bodies of blocks. It runs as the inherent and is never dispatched."""

    @dispatchable(
        0,
        relay_number,
        hash_codec,
        scale.vec(scale.bytes_),
        scale.vec(downward_message),
        scale.sorted_map(para_id, scale.vec(hrmp_message)),
        scale.u32,
        weight=Weight(0, 0),
    )
    def set_validation_data(  # noqa: PLR0917  # the inherent's own parts
        self,
        storage: Storage,
        origin: Origin,
        relay_parent_number: RelayBlockNumber,
        relay_parent_storage_root: Hash,
        relay_chain_state: list[bytes],
        downward_messages: list[InboundDownwardMessage],
        horizontal_messages: dict[int, list[InboundHrmpMessage]],
        messages_used: int,
        /,
    ) -> None:
        """The inherent: relay parent, its storage proof, and all messages since the parent's. Errors: `BadOrigin`."""
        del storage, origin, relay_parent_number, relay_parent_storage_root, relay_chain_state
        del downward_messages, horizontal_messages, messages_used
        raise BadOrigin


def parachain_pallets(version: RuntimeVersion, balances: Balances, spec: RuntimeSpec) -> tuple[PalletDefinition, ...]:
    """All pallets, ascending by index."""
    length = (MAX_EXTRINSICS, MAX_EXTRINSICS, max(spec.max_pov_size, _INHERENT_LENGTH))
    return (
        system_definition(version, MAX_WEIGHT, MAX_WEIGHT, length, ()),
        _PARACHAIN_SYSTEM,
        TIMESTAMP,
        balances_definition(balances),
        _AURA,
        UTILITY,
        TRANSACTION_PAYMENT,
        _subscriber(spec),
        _PUBLISHER,
        _CONSUMER,
        _PARACHAIN_INFO,
        SUDO,
    )


_PARACHAIN_SYSTEM: Final = PalletDefinition(
    "ParachainSystem",
    "cumulus_pallet_parachain_system",
    (
        Item(own_items.LAST_DMQ_MQC_HEAD, "The head of the hash chain of downward messages seen so far."),
        Item(own_items.LAST_HRMP_MQC_HEADS, "The heads of the hash chains of horizontal messages, by sender."),
    ),
    ParachainSystem,
)
_AURA: Final = PalletDefinition(
    "Aura",
    "pallet_aura",
    (Item(own_items.AUTHORITIES, "The current authority set: Ed25519 keys, in turn order."),),
)
_PUBLISHER: Final = PalletDefinition(
    publisher.PALLET,
    "pallet_publisher",
    calls=publisher.Publisher,
    constants=(constant("MaxEntries", scale.u32, publisher.MAX_ENTRIES, "Entries of one call."),),
)
_CONSUMER: Final = PalletDefinition(
    "Consumer", "pallet_consumer", (Item(VALUES, "The newest value of each entry, with the handler `store`."),)
)
_PARACHAIN_INFO: Final = PalletDefinition(
    "ParachainInfo", "staging_parachain_info", (Item(own_items.PARACHAIN_ID, "The id of this parachain."),)
)
_SUBSCRIBER_STORAGE: Final = tuple(
    item
    for item in (
        Item(subscriber.PROCESSED_ROOTS, "The roots under which every item of a publisher is resolved."),
        Item(subscriber.PROCESSING_CURSOR, "The item at which the next walk goes on."),
        Item(subscriber.LAST_DELIVERED, "What was last delivered of an item: entry hash, ttl, when inserted."),
        Item(subscriber.LAST_DELIVERED_PACKED),
        Item(subscriber.SUBSCRIPTION_HASH, "The hash of the keys subscribed to, by publisher."),
        Item(subscriber.DISABLED_PUBLISHERS, "Publishers that are no longer read, and why."),
        Item(subscriber.LAST_RELAY_PARENT, "The relay parent of the last block."),
        Item(subscriber.CACHED_TRIE_NODES),
        Item(subscriber.CACHE_INFO, "The live cache of a publisher: generation, nodes, bytes."),
        Item(subscriber.STALE_CACHES, "Caches that were dropped and wait to be removed."),
        Item(subscriber.CACHE_SLOTS),
    )
    if item.item.item not in _PACKED
)


def _subscriber(spec: RuntimeSpec) -> PalletDefinition:
    policies = tuple(CachePolicy)
    policy = type_info.enum("pallet_subscriber::CachePolicy", *(each.value.capitalize() for each in policies))
    return PalletDefinition(
        subscriber.PALLET,
        "pallet_subscriber",
        _SUBSCRIBER_STORAGE,
        SubscriberCalls,
        constants=(
            constant("MaxPovSize", scale.u32, spec.max_pov_size, "Bytes of the largest block."),
            constant("ReserveMinimum", scale.boolean, spec.reserve_minimum, "Whether messages leave 1 MiB free."),
            Constant("CachePolicy", policy, bytes((policies.index(spec.cache),)), "What is remembered of a trie."),
            constant("MeterCacheReads", scale.boolean, spec.meter_cache_reads, "Whether reading the cache is charged."),
            constant("MaxCacheBytes", scale.u32, spec.max_cache_bytes, "Bytes cached of one publisher."),
            constant("MaxTrieDepth", scale.option(scale.u32), spec.max_trie_depth, "Child nodes on a path."),
            constant("MaxValueLength", scale.u32, spec.max_value_length, "Bytes of the longest value."),
            constant("MaxStoredKeys", scale.u32, spec.max_stored_keys, "Keys that one publisher may store."),
            Constant("Handler", type_info.STR, scale.encode_bytes(spec.handler.encode()), "Who gets deliveries."),
            Constant("HandlerWeight", weight_info, encode_weight(spec.handler_weight), "What one callback may take."),
        ),
    )

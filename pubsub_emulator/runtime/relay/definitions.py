"""Definitions of the relay chain's pallets for metadata."""

from typing import Final

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.accounts.definitions import (
    SUDO,
    TIMESTAMP,
    TRANSACTION_PAYMENT,
    UTILITY,
    balances_definition,
    system_definition,
)
from pubsub_emulator.runtime.accounts.timestamp import SLOT_MILLISECONDS
from pubsub_emulator.runtime.balances import Balances
from pubsub_emulator.runtime.framework.definitions import Item, PalletDefinition, RuntimeVersion, constant
from pubsub_emulator.runtime.pallet_pubsub import Broadcaster
from pubsub_emulator.runtime.pallet_pubsub import Config as PubsubConfig
from pubsub_emulator.runtime.pallet_pubsub import storage as pubsub
from pubsub_emulator.runtime.relay import (
    babe,
    configuration,
    dmp,
    host_configuration,
    hrmp,
    inclusion,
    paras,
    registrar,
    session,
)
from pubsub_emulator.runtime.relay.message_queue import types as queue

BLOCK_LENGTH: Final = 5 * 1024 * 1024
NORMAL_LENGTH: Final = BLOCK_LENGTH * 3 // 4
"""Bytes of signed extrinsics in one block."""
_PARAS: Final = "polkadot_runtime_parachains"
_HOLD_REASONS: Final = (("Broadcaster", ("PublisherDeposit",)),)


def hold_reasons() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The hold reasons by pallet."""
    return _HOLD_REASONS


def relay_pallets(
    version: RuntimeVersion,
    balances: Balances,
    pubsub_config: PubsubConfig,
    session_length: int,
    weights: tuple[Weight, Weight],
) -> tuple[PalletDefinition, ...]:
    """All pallets but XCM's, by ascending index; `weights` are those of a block and of its signed extrinsics."""
    return (
        system_definition(version, *weights, (NORMAL_LENGTH, BLOCK_LENGTH, BLOCK_LENGTH), ("set_code",)),
        _babe(session_length),
        TIMESTAMP,
        balances_definition(balances),
        _SESSION,
        UTILITY,
        TRANSACTION_PAYMENT,
        _CONFIGURATION,
        _INCLUSION,
        _PARAS_PALLET,
        _DMP,
        _HRMP,
        _REGISTRAR,
        _QUEUE,
        _broadcaster(pubsub_config),
        SUDO,
    )


def _babe(session_length: int) -> PalletDefinition:
    return PalletDefinition(
        "Babe",
        "pallet_babe",
        (
            Item(babe.EPOCH_INDEX, "Current epoch index: the session."),
            Item(babe.GENESIS_SLOT, "The slot of block 0."),
            Item(babe.CURRENT_SLOT, "Current slot number."),
        ),
        constants=(
            constant("EpochDuration", scale.u64, session_length, "The amount of time, in slots, of an epoch."),
            constant("ExpectedBlockTime", scale.u64, SLOT_MILLISECONDS, "Milliseconds between two blocks."),
        ),
    )


_SESSION: Final = PalletDefinition(
    "Session", "pallet_session", (Item(session.CURRENT_INDEX, "Current index of the session."),)
)
_CONFIGURATION: Final = PalletDefinition(
    "Configuration",
    f"{_PARAS}::configuration",
    (
        Item(host_configuration.ACTIVE, "The active configuration for the current session."),
        Item(configuration.PENDING, "Pending configuration changes, by session."),
    ),
    configuration.Configuration,
)
_INCLUSION: Final = PalletDefinition("ParaInclusion", f"{_PARAS}::inclusion", calls=inclusion.ParaInclusion)
_PARAS_PALLET: Final = PalletDefinition(
    "Paras",
    f"{_PARAS}::paras",
    (
        Item(paras.PARACHAINS, "All parachains, ascending."),
        Item(paras.LIFECYCLES, "The current lifecycle of all known para ids."),
        Item(paras.HEADS, "The head-data of every registered para."),
        Item(paras.MOST_RECENT_CONTEXT, "The relay parent of the most recent included block of a para."),
        Item(paras.GO_AHEAD, "Whether a para is to enact the code that it announced."),
        Item(paras.RESTRICTION, "Whether a para may not announce new code now."),
        Item(paras.ACTIONS, "Paras that come or go, by session."),
    ),
)
_DMP: Final = PalletDefinition(
    "Dmp",
    f"{_PARAS}::dmp",
    (
        Item(dmp.QUEUES, "The downward messages addressed for a certain para."),
        Item(dmp.HEADS, "The head of the hash chain of a para's downward messages."),
    ),
)
_HRMP: Final = PalletDefinition(
    "Hrmp",
    f"{_PARAS}::hrmp",
    (
        Item(hrmp.WATERMARKS, "The relay block up to which a para took horizontal messages."),
        Item(hrmp.CHANNELS, "HRMP channel data associated with each channel."),
        Item(hrmp.INGRESS, "Who has a channel to a para, ascending."),
        Item(hrmp.EGRESS, "To whom a para has a channel, ascending."),
        Item(hrmp.CONTENTS, "What waits in a channel."),
        Item(hrmp.DIGESTS, "Who sent to a para, by relay block."),
    ),
    hrmp.Hrmp,
)
_REGISTRAR: Final = PalletDefinition(
    "Registrar",
    "polkadot_runtime_common::paras_registrar",
    (Item(registrar.PARAS, "Who registered a para, for how much."),),
    registrar.Registrar,
)
_QUEUE: Final = PalletDefinition(
    "MessageQueue",
    "pallet_message_queue",
    (
        Item(queue.BOOKS, "The index of the first and last (non-empty) pages."),
        Item(queue.SERVICE_HEAD, "The origin at which we should begin servicing."),
        Item(queue.PAGES, "The map of page indices to pages."),
    ),
)


def _broadcaster(config: PubsubConfig) -> PalletDefinition:
    return PalletDefinition(
        "Broadcaster",
        "pallet_broadcaster",
        (
            Item(pubsub.RegisteredPublishers, "Who manages a publisher, and what is held for it."),
            Item(pubsub.CounterForRegisteredPublishers, "How many publishers are registered."),
            Item(pubsub.PublishedKeys, "How many keys a publisher stores."),
            Item(pubsub.TotalStorageSize, "Bytes that a publisher stores: 32 for each key, and its value."),
            Item(pubsub.TtlData, "The lifetime of an entry and the block in which it was inserted."),
            Item(pubsub.TtlScanCursor, "The row that the sweep for expired entries examined last."),
            Item(pubsub.TtlLapMark, "Where the sweep of a publisher's rows began."),
            Item(pubsub.ExpiryIndex, "Entries by the block in which they expire."),
        ),
        Broadcaster,
        constants=(
            constant("MaxValueLength", scale.u32, config.max_value_length, "Bytes of the longest value."),
            constant("MaxStoredKeys", scale.u32, config.max_stored_keys, "Keys that a publisher may store."),
            constant(
                "MaxTotalStorageSize", scale.u32, config.max_total_storage_size, "Bytes that a publisher may store."
            ),
            constant("MaxPublishers", scale.u32, config.max_publishers, "Publishers that may be registered."),
            constant("PublisherDeposit", scale.u128, config.publisher_deposit, "What a registration holds."),
            constant(
                "SystemParaThreshold",
                scale.u32,
                config.system_para_threshold,
                "Publishers below this id are system parachains.",
            ),
            constant(
                "MaxTtlScansPerIdle",
                scale.u32,
                config.max_ttl_scans_per_idle,
                "Entries looked at for expiry per block.",
            ),
        ),
    )

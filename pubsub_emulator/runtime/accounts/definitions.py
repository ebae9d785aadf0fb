"""Definitions, for metadata, of the pallets that relay chain and parachains share."""

from typing import Final

from pubsub_emulator.primitives import scale, type_info
from pubsub_emulator.primitives.type_info import U32, Parameter, option
from pubsub_emulator.primitives.weights import Weight, encode_weight, weight_info
from pubsub_emulator.runtime.accounts import sudo, system_calls, timestamp, transaction_payment, utility
from pubsub_emulator.runtime.accounts.apply import BASE_WEIGHT
from pubsub_emulator.runtime.balances import pallet as balances
from pubsub_emulator.runtime.framework import events, system
from pubsub_emulator.runtime.framework.definitions import (
    RUNTIME_VERSION,
    Constant,
    Item,
    PalletDefinition,
    RuntimeVersion,
    constant,
    described,
)
from pubsub_emulator.runtime.framework.items import StorageValue
from pubsub_emulator.runtime.metadata.outer import event_records

SS58_PREFIX: Final = 42


def per_class(info: type_info.TypeInfo) -> type_info.TypeInfo:
    """`PerDispatchClass<T>`."""
    return type_info.struct(
        "frame_support::dispatch::PerDispatchClass", Parameter("T", info), normal=info, operational=info, mandatory=info
    )


_WEIGHTS_PER_CLASS: Final = type_info.struct(
    "frame_system::limits::WeightsPerClass",
    base_extrinsic=weight_info,
    max_extrinsic=option(weight_info),
    max_total=option(weight_info),
    reserved=option(weight_info),
)
_BLOCK_WEIGHTS: Final = type_info.struct(
    "frame_system::limits::BlockWeights",
    base_block=weight_info,
    max_block=weight_info,
    per_class=per_class(_WEIGHTS_PER_CLASS),
)
_BLOCK_LENGTH: Final = type_info.struct("frame_system::limits::BlockLength", max=per_class(U32))


_EVENTS: Final = StorageValue("System", "Events", scale.bytes_, b"")
"""`System` writes the events encoded; an empty list of them is an empty `Vec<u8>`."""


def _encode_block_weights(max_block: Weight, normal: Weight) -> bytes:
    base = encode_weight(BASE_WEIGHT)
    some, none = b"\x01", b"\x00"
    of_normal = base + some + encode_weight(normal) + some + encode_weight(normal) + none
    of_others = base + none + some + encode_weight(max_block) + none
    return encode_weight(Weight(0, 0)) + encode_weight(max_block) + of_normal + of_others + of_others


def system_definition(
    version: RuntimeVersion,
    max_block: Weight,
    normal: Weight,
    max_length: tuple[int, int, int],
    hidden_calls: tuple[str, ...],
) -> PalletDefinition:
    """`System`; `max_length` in bytes by class of extrinsic."""
    return PalletDefinition(
        "System",
        "frame_system",
        (
            Item(system.ACCOUNT, "The full account information for a particular account ID."),
            Item(system.EXTRINSIC_COUNT, "Extrinsics count of the current block."),
            Item(system.BLOCK_WEIGHT, "The current weight of the block."),
            Item(system.BLOCK_HASH, "Block hashes by number."),
            Item(system.NUMBER, "The current block number."),
            Item(system.PARENT_HASH, "Hash of the previous block."),
            Item(system.DIGEST, "Digest of the current block."),
            Item(_EVENTS, "Events of the current block.", event_records(described(events.phase_codec))),
            Item(system.EVENT_COUNT, "The number of events of the current block."),
            Item(events.EXECUTION_PHASE, "The execution phase of the block."),
        ),
        system_calls.SystemCalls,
        constants=(
            Constant(
                "BlockWeights",
                _BLOCK_WEIGHTS,
                _encode_block_weights(max_block, normal),
                "What extrinsics of each class may take of a block.",
            ),
            Constant(
                "BlockLength",
                _BLOCK_LENGTH,
                b"".join(scale.u32.encode(length) for length in max_length),
                "The maximum length of a block in bytes.",
            ),
            constant("BlockHashCount", scale.u32, system.BLOCK_HASH_COUNT, "How many block hashes are kept."),
            Constant("Version", RUNTIME_VERSION, version.encode(), "The version of this runtime."),
            constant("SS58Prefix", scale.u16, SS58_PREFIX, "The prefix of addresses of this chain."),
        ),
        hidden_calls=hidden_calls,
        docs="Blocks, accounts and events.",
    )


def balances_definition(pallet: balances.Balances) -> PalletDefinition:
    """`Balances`."""
    return PalletDefinition(
        "Balances",
        "pallet_balances",
        (
            Item(balances.TOTAL_ISSUANCE, "The total units issued in the system."),
            Item(balances.HOLDS, "Holds on account balances."),
        ),
        balances.Balances,
        constants=(
            constant(
                "ExistentialDeposit",
                scale.u128,
                pallet.existential_deposit,
                "The minimum amount required to keep an account open.",
            ),
        ),
        docs="Free balances and those on hold.",
    )


TIMESTAMP: Final = PalletDefinition(
    "Timestamp",
    "pallet_timestamp",
    (Item(timestamp.NOW, "The current time for the current block."),),
    constants=(
        constant(
            "MinimumPeriod", scale.u64, timestamp.MINIMUM_PERIOD, "Half of the time between blocks, in milliseconds."
        ),
    ),
)
UTILITY: Final = PalletDefinition(
    "Utility",
    "pallet_utility",
    calls=utility.Utility,
    constants=(
        constant("batched_calls_limit", scale.u32, utility.BATCHED_CALLS_LIMIT, "The limit on the number of calls."),
    ),
)
TRANSACTION_PAYMENT: Final = PalletDefinition(
    "TransactionPayment",
    "pallet_transaction_payment",
    (Item(transaction_payment.NEXT_FEE_MULTIPLIER, "Fees by weight are multiplied by it, which is always one."),),
    constants=(constant("OperationalFeeMultiplier", scale.u8, 5, "Not used: no extrinsic is operational."),),
)
SUDO: Final = PalletDefinition("Sudo", "pallet_sudo", (Item(sudo.KEY, "The `AccountId` of the sudo key."),), sudo.Sudo)

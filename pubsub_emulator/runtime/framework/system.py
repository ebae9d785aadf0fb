"""The `System` pallet.

It has the block's number, hashes and digest, the event log, and accounts with their reference
counters. Accounts contain their balances, as in every runtime that uses `pallet_balances` with
`System` as its account store:

    AccountInfo  u32 nonce, u32 consumers, u32 providers, u32 sufficients, AccountData
    AccountData  u128 free, u128 reserved (on hold), u128 frozen, u128 flags
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final

from pubsub_emulator.primitives import scale, type_info
from pubsub_emulator.primitives.header import (
    ENVIRONMENT_UPDATED,
    DigestItem,
    DigestKind,
    Header,
    read_digest_item,
)
from pubsub_emulator.primitives.scale import Codec, Reader, encode_compact
from pubsub_emulator.primitives.structs import struct
from pubsub_emulator.primitives.types import AccountId, Hash
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight, weight_codec, weight_info
from pubsub_emulator.runtime.framework import dispatch, events
from pubsub_emulator.runtime.framework.codecs import account_id, hash_codec
from pubsub_emulator.runtime.framework.dispatch import DispatchError, Failure
from pubsub_emulator.runtime.framework.events import (
    ApplyExtrinsic,
    EventRecord,
    Finalization,
    event,
)
from pubsub_emulator.runtime.framework.hashers import Blake2_128Concat, Twox64Concat
from pubsub_emulator.runtime.framework.items import StorageMap, StorageValue
from pubsub_emulator.runtime.framework.pallet import Event, Pallet
from pubsub_emulator.runtime.framework.storage import Storage

PALLET: Final = Pallet("System", 0, "frame_system", "Blocks, accounts and events.")
MAX_CONSUMERS: Final = 128
"""The maximum number of consumers of an account (`ConsumerLimits`)."""
BLOCK_HASH_COUNT: Final = 4096
"""The number of block hashes that are stored, as on Polkadot."""
SLOT_MILLISECONDS: Final = 6_000
"""The time from one slot of a relay chain to the next."""
BASE_WEIGHT: Final = Weight(100_000_000, 0)
"""The weight of every extrinsic in addition to its call."""
IS_NEW_LOGIC: Final = 1 << 127
"""The flag that `pallet_balances` sets for every account since its current logic."""
EXTRINSIC_INDEX: Final = b":extrinsic_index"
"""Well-known key of the index of the running extrinsic, u32."""


@dataclass(frozen=True, slots=True)
class AccountData:
    """The balances of an account; `reserved` is on hold."""

    free: int = 0
    reserved: int = 0
    frozen: int = 0
    flags: int = IS_NEW_LOGIC


@dataclass(frozen=True, slots=True)
class AccountInfo:
    """An account: nonce, reference counters, balances."""

    nonce: int = 0
    consumers: int = 0
    providers: int = 0
    sufficients: int = 0
    data: AccountData = AccountData()


def _encode_account(info: AccountInfo) -> bytes:
    data = info.data
    counters = info.nonce | info.consumers << 32 | info.providers << 64 | info.sufficients << 96
    balances = data.free | data.reserved << 128 | data.frozen << 256 | data.flags << 384
    return counters.to_bytes(16, "little") + balances.to_bytes(64, "little")


def _read_account(reader: Reader) -> AccountInfo:
    nonce, consumers, providers, sufficients = (reader.uint(4) for _ in range(4))
    return AccountInfo(
        nonce, consumers, providers, sufficients, AccountData(*(reader.uint(16) for _ in range(4)))
    )


@dataclass(frozen=True, slots=True)
class ConsumedWeight:
    """`PerDispatchClass<Weight>`: the weight that a block has used so far."""

    normal: Weight = WEIGHT_ZERO
    operational: Weight = WEIGHT_ZERO
    mandatory: Weight = WEIGHT_ZERO

    def total(self) -> Weight:
        """Return the weight of all classes together."""
        return self.normal + self.operational + self.mandatory


@dataclass(frozen=True, slots=True)
class DispatchEventInfo:
    """An extrinsic's weight, class and fee."""

    weight: Weight
    class_: int = 0
    """0 normal, 1 operational, 2 mandatory."""
    pays_fee: int = 0
    """0 if the extrinsic pays, 1 if it does not."""


_FLAGS: Final = type_info.wrapper("pallet_balances::types::ExtraFlags", type_info.U128, "u128")
_BALANCES: Final = dict.fromkeys(("free", "reserved", "frozen"), type_info.U128)
_ACCOUNT_DATA: Final = type_info.struct(
    "pallet_balances::types::AccountData",
    type_info.Parameter("Balance", type_info.U128),
    **_BALANCES,
    flags=_FLAGS,
)
_COUNTERS: Final = dict.fromkeys(("nonce", "consumers", "providers", "sufficients"), type_info.U32)
_OF: Final = (
    type_info.Parameter("Nonce", type_info.U32),
    type_info.Parameter("AccountData", _ACCOUNT_DATA),
)
_ACCOUNT: Final = type_info.struct(
    "frame_system::AccountInfo", *_OF, **_COUNTERS, data=_ACCOUNT_DATA
)


def per_class(info: type_info.TypeInfo) -> type_info.TypeInfo:
    """Describe `PerDispatchClass<T>`."""
    classes = dict.fromkeys(("normal", "operational", "mandatory"), info)
    return type_info.struct(
        "frame_support::dispatch::PerDispatchClass", type_info.Parameter("T", info), **classes
    )


_ENGINE: Final = (
    type_info.Field(type_info.ArrayOf(4, type_info.U8), type_name="ConsensusEngineId"),
    type_info.Field(type_info.BYTES, type_name="Vec<u8>"),
)
_DIGEST_ITEM: Final = type_info.Variants(
    type_info.path("sp_runtime::generic::digest::DigestItem"),
    (
        type_info.Variant("Other", DigestKind.OTHER, _ENGINE[1:]),
        type_info.Variant("Consensus", DigestKind.CONSENSUS, _ENGINE),
        type_info.Variant("Seal", DigestKind.SEAL, _ENGINE),
        type_info.Variant("PreRuntime", DigestKind.PRE_RUNTIME, _ENGINE),
        type_info.Variant("RuntimeEnvironmentUpdated", DigestKind.RUNTIME_ENVIRONMENT_UPDATED),
    ),
)
_DIGEST: Final = type_info.struct(
    "sp_runtime::generic::digest::Digest", logs=type_info.SequenceOf(_DIGEST_ITEM)
)
_DISPATCH_INFO: Final = type_info.struct(
    "frame_system::DispatchEventInfo",
    weight=weight_info,
    class_=type_info.enum(
        "frame_support::dispatch::DispatchClass", "Normal", "Operational", "Mandatory"
    ),
    pays_fee=type_info.enum("frame_support::dispatch::Pays", "Yes", "No"),
)
account_info: Final[Codec[AccountInfo]] = Codec(
    "AccountInfo", _encode_account, _read_account, _ACCOUNT
)
_digest_item: Final[Codec[DigestItem]] = Codec(
    "DigestItem", DigestItem.encode, read_digest_item, _DIGEST_ITEM
)
_digest: Final = scale.vec(_digest_item).described(_DIGEST)
header_codec: Final[Codec[Header]] = Codec(
    "Header",
    Header.encode,
    Header.read,
    type_info.Composite(
        type_info.path("sp_runtime::generic::header::Header"),
        (
            type_info.Field(type_info.H256, "parent_hash"),
            type_info.Field(type_info.CompactOf(type_info.U32), "number"),
            type_info.Field(type_info.H256, "state_root"),
            type_info.Field(type_info.H256, "extrinsics_root"),
            type_info.Field(_DIGEST, "digest"),
        ),
        (type_info.Parameter("Number", type_info.U32), type_info.Parameter("Hash")),
    ),
)
"""The codec of headers, as they are in the inherents of parachains."""
_used: Final = struct(ConsumedWeight, weight_codec, weight_codec, weight_codec).described(
    per_class(weight_info)
)
_dispatch_info: Final = struct(DispatchEventInfo, weight_codec, scale.u8, scale.u8).described(
    _DISPATCH_INFO
)

_about: Final = "The full account information for a particular account ID."
ACCOUNT: Final = StorageMap(
    PALLET, "Account", _about, Blake2_128Concat, account_id, account_info, AccountInfo()
)
EXTRINSIC_COUNT: Final = StorageValue(
    PALLET, "ExtrinsicCount", "Extrinsics count of the current block.", scale.u32
)
BLOCK_WEIGHT: Final = StorageValue(
    PALLET, "BlockWeight", "The current weight of the block.", _used, ConsumedWeight()
)
BLOCK_HASH: Final = StorageMap(
    PALLET, "BlockHash", "Block hashes by number.", Twox64Concat, scale.u32, hash_codec
)
NUMBER: Final = StorageValue(PALLET, "Number", "The current block number.", scale.u32, 0)
PARENT_HASH: Final = StorageValue(
    PALLET, "ParentHash", "Hash of the previous block.", hash_codec, Hash(bytes(32))
)
DIGEST: Final = StorageValue(PALLET, "Digest", "Digest of the current block.", _digest, [])
EVENTS: Final = StorageValue(
    PALLET, "Events", "Events of the current block.", events.encoded_records, bytes(1)
).key
EVENT_COUNT: Final = StorageValue(
    PALLET, "EventCount", "The number of events of the current block.", scale.u32, 0
)
EXECUTION_PHASE: Final = StorageValue(
    PALLET, "ExecutionPhase", "The execution phase of the block.", events.phase_codec
)
"""This item is stored while a block runs and removed at its end."""


@event(PALLET, 0)
class ExtrinsicSuccess(Event):
    """An extrinsic's call succeeded."""

    dispatch_info: Annotated[DispatchEventInfo, _dispatch_info]


@event(PALLET, 1)
class ExtrinsicFailed(Event):
    """An extrinsic's call failed and was rolled back."""

    dispatch_error: Failure
    dispatch_info: Annotated[DispatchEventInfo, _dispatch_info]


@event(PALLET, 3)
class NewAccount(Event):
    """An account came to be."""

    account: AccountId


@event(PALLET, 4)
class KilledAccount(Event):
    """An account was removed."""

    account: AccountId


def initialize(
    storage: Storage, number: int, parent_hash: Hash, digest: Sequence[DigestItem] = ()
) -> None:
    """Begin block `number`: replace events, weight and digest of the last block."""
    storage.log.clear()
    _begin_phase(storage, events.INITIALIZATION)
    storage.put(EXTRINSIC_INDEX, bytes(4))
    NUMBER.put(storage, number)
    DIGEST.put(storage, list(digest))
    PARENT_HASH.put(storage, parent_hash)
    if number > 0:
        BLOCK_HASH.insert(storage, number - 1, parent_hash)
    BLOCK_WEIGHT.kill(storage)


def _begin_phase(storage: Storage, phase: events.Phase) -> None:
    """Set the phase of the events that are deposited from now on.

    This must not be called in a layer, because `storage.phase` does not roll back.
    """
    EXECUTION_PHASE.put(storage, phase)
    storage.phase = phase


def block_digest(storage: Storage, initial: tuple[DigestItem, ...]) -> tuple[DigestItem, ...]:
    """Return the digest of the block that is being built.

    `initial` is the digest with which it began. It has rarely changed, and encoding `initial` to
    compare takes less time than decoding the stored one.
    """
    if storage.get(DIGEST.key) == _digest.encode(list(initial)):
        return initial
    return tuple(DIGEST.get(storage))


def deposit_log(storage: Storage, item: DigestItem) -> None:
    """Add an item to the digest of the block that is being built."""
    DIGEST.put(storage, [*DIGEST.get(storage), item])


def note_new_code(storage: Storage) -> None:
    """Add the log for new code to the header's digest, once even if code is applied twice."""
    logs = DIGEST.get(storage)
    if ENVIRONMENT_UPDATED not in logs:
        DIGEST.put(storage, [*logs, ENVIRONMENT_UPDATED])


def note_extrinsic(storage: Storage, index: int) -> None:
    """Begin the extrinsic with this index.

    Events deposited from now on belong to it.
    """
    _begin_phase(storage, ApplyExtrinsic(index))
    storage.put(EXTRINSIC_INDEX, index.to_bytes(4, "little"))


def note_applied(storage: Storage, count: int) -> None:
    """Note that all `count` extrinsics are applied.

    Events deposited from now on belong to finalization.
    """
    _begin_phase(storage, Finalization())
    storage.kill(EXTRINSIC_INDEX)
    EXTRINSIC_COUNT.put(storage, count)


def note_outcome(storage: Storage, error: DispatchError | None, weight: Weight) -> None:
    """Emit the outcome of an extrinsic of this weight.

    Emits `ExtrinsicSuccess`, or `ExtrinsicFailed` with the error.
    """
    info = DispatchEventInfo(weight)
    events.deposit(
        storage, ExtrinsicSuccess(info) if error is None else ExtrinsicFailed(error, info)
    )


def finalize(storage: Storage) -> list[EventRecord]:
    """End the block, and return its events.

    They are written, values that only this block needs are removed, and so is the oldest block
    hash.
    """
    log = events.records(storage)
    storage.put(EVENTS, events.encode_records(log))
    EVENT_COUNT.put(storage, len(log))
    EXECUTION_PHASE.kill(storage)
    storage.phase = None
    EXTRINSIC_COUNT.kill(storage)
    oldest = NUMBER.get(storage) - BLOCK_HASH_COUNT - 1
    if oldest > 0:
        BLOCK_HASH.remove(storage, oldest)
    return log


def block_number(storage: Storage) -> int:
    """Return the number of the block."""
    raw = storage.get(NUMBER.key)
    return 0 if raw is None else int.from_bytes(raw, "little")


def encode_extrinsic(call: bytes) -> bytes:
    """Wrap an encoded call in a bare version-5 extrinsic with its length prefix."""
    return encode_compact(len(call) + 1) + b"\x05" + call


def account(storage: Storage, who: AccountId) -> AccountInfo:
    """Return the account, with zeros if it does not exist."""
    return ACCOUNT.get(storage, who)


def inc_nonce(storage: Storage, who: AccountId) -> None:
    """Increment the nonce of an account that exists.

    An account without providers has no nonce.
    """
    info = ACCOUNT.get(storage, who)
    if info.providers or info.sufficients:
        ACCOUNT.insert(storage, who, replace(info, nonce=info.nonce + 1))


def inc_providers(storage: Storage, who: AccountId) -> None:
    """Add a provider, a reason for the account to exist.

    Emits `NewAccount` for the first.
    """
    info = ACCOUNT.get(storage, who)
    ACCOUNT.insert(storage, who, replace(info, providers=info.providers + 1))
    if info.providers == 0 and info.sufficients == 0:
        events.deposit(storage, NewAccount(who))


def dec_providers(storage: Storage, who: AccountId) -> None:
    """Remove a provider, and with the last one the account.

    Raises `ConsumerRemaining`. Emits `KilledAccount`.
    """
    info = ACCOUNT.get(storage, who)
    if info.providers <= 1 and info.sufficients == 0:
        if info.consumers:
            raise dispatch.ConsumerRemaining
        if info.providers:
            ACCOUNT.remove(storage, who)
            events.deposit(storage, KilledAccount(who))
        return
    ACCOUNT.insert(storage, who, replace(info, providers=max(info.providers - 1, 0)))


def inc_consumers(storage: Storage, who: AccountId) -> None:
    """Add a consumer, a reason for which the account cannot be removed.

    Raises `NoProviders`, `TooManyConsumers`.
    """
    info = ACCOUNT.get(storage, who)
    if not info.providers:
        raise dispatch.NoProviders
    if info.consumers >= MAX_CONSUMERS:
        raise dispatch.TooManyConsumers
    ACCOUNT.insert(storage, who, replace(info, consumers=info.consumers + 1))


def dec_consumers(storage: Storage, who: AccountId) -> None:
    """Remove a consumer."""
    info = ACCOUNT.get(storage, who)
    if info.consumers:
        ACCOUNT.insert(storage, who, replace(info, consumers=info.consumers - 1))


def can_dec_provider(storage: Storage, who: AccountId) -> bool:
    """Return whether the account can lose one provider."""
    info = ACCOUNT.get(storage, who)
    return info.consumers == 0 or info.providers > 1

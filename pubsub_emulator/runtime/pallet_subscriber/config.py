"""The configuration of a parachain's runtime, and the limits derived from it.

It is stored SCALE-encoded under `:code`. So the state determines how blocks on it are executed, and
a runtime upgrade between two blocks is a write to one key (PS-33).
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache, partial
from itertools import groupby
from typing import Final, Protocol

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import (
    KEY_LENGTH,
    derive_child_key,
    entry_length,
    node_cost,
)
from pubsub_emulator.primitives.scale import AnyCodec, Codec, Reader
from pubsub_emulator.primitives.storage_keys import CODE
from pubsub_emulator.primitives.structs import struct
from pubsub_emulator.primitives.types import Hash, ParaId, PubsubKey
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.abridged import Shares
from pubsub_emulator.runtime.framework.message_chains import message_allowance
from pubsub_emulator.runtime.framework.relay_request import (
    ChildKey,
    RelayProofRequest,
    RelayStorageKey,
    relay_proof_request,
)
from pubsub_emulator.runtime.rules import RuleFailed, Rules, RulesError

ROW_COST: Final = 160
"""Bytes charged for a row of the parachain's own state (PS-43, PS-45).

They stand for the row's path in the storage proof.
"""
MIN_BUDGET: Final = 1_048_576
"""The bytes that pub-sub may always use (PS-50)."""
MIN_ITEM_COST: Final = 600
"""The lower bound of `RuntimeSpec.max_item_cost` in bytes (PS-51).

It is more than the size of the largest branch over 32-byte keys, which has 564 bytes.
"""
PACKED_ROW: Final = 640
"""The size of sixteen packed `LastDelivered` entries in bytes.

This is the largest row that policy `slots` reads.
"""
DEFAULT_HANDLER_WEIGHT: Final = Weight(500_000_000, 65_536)
"""The limit of one callback: half a millisecond and 64 KiB."""


class CachePolicy(Enum):
    """The part of a publisher's trie that a subscriber stores between blocks (PS-69)."""

    NODES = "nodes"
    NONE = "none"
    SLOTS = "slots"


class ImpossibleConfig(PubsubError):
    """A configuration with which the rules cannot hold. The message has the figures."""


Keys = tuple[PubsubKey, ...]
"""The distinct subscribed keys of one publisher, ascending."""
Subscriptions = Mapping[ParaId, Keys]
"""The subscribed keys by publisher.

Publishers ascend, and each has at least one key.
"""


def merge_subscriptions(declared: list[tuple[ParaId, list[PubsubKey]]]) -> Subscriptions:
    """Return the declared subscriptions in the form that a walk needs (PS-30).

    Duplicates are merged, empty lists are dropped, and publishers and keys are sorted.
    """
    distinct: set[tuple[ParaId, PubsubKey]] = set()
    for para, keys in declared:
        distinct.update((para, key) for key in keys)
    flat = sorted(distinct)
    return {
        para: tuple(key for _, key in items)
        for para, items in groupby(flat, key=lambda item: item[0])
    }


@lru_cache(maxsize=4096)
def key_set_hash(keys: Keys) -> Hash:
    """Return the hash of a publisher's subscribed keys for `SubscriptionHash`.

    It is the BLAKE2-256 hash of the SCALE encoding of the sorted keys.
    """
    return blake2_256(scale.encode_compact(len(keys)) + b"".join(keys))


@dataclass(frozen=True, slots=True)
class RuntimeSpec:
    """A parachain's runtime, as data."""

    para_id: ParaId
    subscriptions: Subscriptions
    spec_version: int = 1
    max_pov_size: int = 10 * 1_048_576
    """The maximum size of a block's proof in bytes."""
    reserve_minimum: bool = False
    """Whether messages must leave room for the minimum budget of pub-sub."""
    cache: CachePolicy = CachePolicy.SLOTS
    meter_cache_reads: bool = True
    """Whether reads of the cache are charged to the budget."""
    max_cache_bytes: int = 4 * 1_048_576
    """The maximum cost of the nodes that policy `nodes` stores of one publisher."""
    max_trie_depth: int | None = 16
    """The maximum number of child trie nodes on a path, or `None` for any number."""
    max_value_length: int = 2048
    """The relay chain's limit in bytes, which determines the largest node."""
    max_stored_keys: int = 1024
    """The relay chain's limit for one publisher, which determines the largest cache."""
    handler: str = "observe"
    """The name of the handler that receives the deliveries."""
    handler_weight: Weight = DEFAULT_HANDLER_WEIGHT
    """The limit of one callback, in picoseconds and bytes."""
    accounts: bool = False
    """Whether the chain has accounts and accepts signed extrinsics.

    Upgrades do not change it.
    """
    rules: bytes = b""
    """The digest of the rules under which blocks are made and judged.

    It is empty for the shipped rules.
    """
    extra_keys: tuple[RelayStorageKey, ...] = ()
    """The relay keys that the runtime requests besides its subscriptions, each once (UP-2)."""
    charge_extra_keys: bool = False
    """Whether the nodes of `extra_keys` are charged to the budget of pub-sub (UP-13)."""
    relay_parent_offset: int = 0
    """The number of descendants of the relay parent that a block must show (UP-12).

    A block of a runtime without an offset shows no relay headers.
    """

    def ruled(self, rules: Rules) -> "RuntimeSpec":
        """Return this runtime under `rules`, whose rule `runtime` can change it.

        Raises `RuleFailed`.
        """
        named = replace(self, rules=rules.digest)
        if rules.runtime is None:
            return named
        changed = rules.runtime(named)
        if not isinstance(changed, RuntimeSpec):
            raise RuleFailed(
                f"{rules.path}: rule 'runtime' returned {changed!r:.60}, not the runtime"
            )
        return replace(changed, rules=rules.digest)

    def request(self, disabled: Container[ParaId] = ()) -> RelayProofRequest:
        """Return the answer of `KeyToIncludeInRelayProof::keys_to_prove` (UP-2).

        It consists of the subscribed keys of all publishers that are not `disabled`, in ascending
        order, followed by `extra_keys`.
        """
        keys: list[RelayStorageKey] = []
        for para, subscribed in self.subscriptions.items():
            if para not in disabled:
                storage_key = derive_child_key(para)
                keys += [ChildKey(storage_key, key) for key in subscribed]
        known = set(keys)
        keys += [key for key in self.extra_keys if key not in known]
        return RelayProofRequest(tuple(keys))

    @property
    def allowed_pov(self) -> int:
        """Return the bytes that messages and pub-sub share (PS-50)."""
        allowed = message_allowance(self.max_pov_size)
        return max(allowed - MIN_BUDGET, 0) if self.reserve_minimum else allowed

    @property
    def messages_limit(self) -> int:
        """Return the maximum bytes of full messages of each kind in a block (UP-9).

        They are a sixth of the proof size. If a chain reserves the minimum of pub-sub, both kinds
        together may have less than two sixths. Each then has half of that.
        """
        return min(self.max_pov_size // 6, self.allowed_pov // 2)

    def shares(self, rules: Rules) -> Shares:
        """Return the bytes of full messages that a block may have under `rules` (UP-9)."""
        limit = self.messages_limit
        if rules.message_limit is not None:
            limit = rules.message_limit(self.max_pov_size, self.allowed_pov)
        rule = rules.horizontal_room
        room = None if rule is None else partial(rule, self.max_pov_size, self.allowed_pov)
        return Shares(limit, room, rules.may_hash)

    def budget(self, messages_used: int) -> int:
        """Return the bytes that pub-sub may use beside messages of `messages_used` bytes (PS-50).

        They are at least `MIN_BUDGET`.
        """
        return max(self.allowed_pov - messages_used, MIN_BUDGET)

    @property
    def max_item_cost(self) -> int:
        """Return the highest cost of a node, value or row within the chain's limits (PS-51)."""
        packed = PACKED_ROW if self.cache is CachePolicy.SLOTS else 0
        return max(MIN_ITEM_COST, packed, node_cost(entry_length(self.max_value_length)))

    def encode(self) -> bytes:
        """Return the SCALE bytes, which are the parachain's `:code`."""
        return spec_codec.encode(self)


MAX_EXTRINSICS: Final = 128 * 1024
"""The maximum bytes of signed extrinsics in one block of a chain with accounts.

The proof sizes of their weights are included.
"""
_MAX_STATIC_BYTES: Final = 64 * 1024
"""A generous bound on the paths of the static keys in bytes.

In the largest real proof, they had less than 42 KiB.
"""
MAX_RELAY_PARENT_OFFSET: Final = 255
"""The maximum number of descendants of a relay parent that a block shows."""
_HEADER_BYTES: Final = 1024
"""A generous bound on the size of a relay header in bytes. With its seal it has about 230 bytes,
and an announced epoch of three authorities adds 160.
"""


def rules_for(spec: RuntimeSpec, rules: Rules) -> Rules:
    """Return the rules of a runtime, which are `rules` or the shipped ones.

    Raises `ImpossibleConfig` if it names other rules.
    """
    try:
        return rules.named(spec.rules)
    except RulesError as error:
        raise ImpossibleConfig(str(error)) from None


def integrity_test(spec: RuntimeSpec) -> None:
    """Check that a runtime can work (PS-50, PS-55, PS-62).

    Raises `ImpossibleConfig` with the figures otherwise.
    """
    allowed = message_allowance(spec.max_pov_size)
    if not 0 <= spec.relay_parent_offset <= MAX_RELAY_PARENT_OFFSET:
        raise ImpossibleConfig(
            f"relay_parent_offset {spec.relay_parent_offset} is not in 0 to"
            f" {MAX_RELAY_PARENT_OFFSET}"
        )
    # Relay headers count neither as messages nor as pub-sub, so the reserve must hold them.
    headers = (spec.relay_parent_offset + 1) * _HEADER_BYTES if spec.relay_parent_offset else 0
    reserve = spec.max_pov_size - allowed - headers
    if reserve < 0:
        raise ImpossibleConfig(
            f"max_pov_size {spec.max_pov_size} has no room for the {headers} bytes of the relay"
            f" headers of relay_parent_offset {spec.relay_parent_offset}; raise it"
        )
    extrinsics = MAX_EXTRINSICS if spec.accounts else 0
    minimum = 0 if spec.reserve_minimum else MIN_BUDGET
    if spec.accounts and reserve < extrinsics + _MAX_STATIC_BYTES + minimum:
        raise ImpossibleConfig(
            f"max_pov_size {spec.max_pov_size} leaves {reserve} bytes beside the {allowed} for"
            " messages, but extrinsics, static keys and the minimum that is not reserved need"
            f" {extrinsics + _MAX_STATIC_BYTES + minimum}; raise it"
        )
    if not spec.reserve_minimum and reserve < MIN_BUDGET + _MAX_STATIC_BYTES:
        raise ImpossibleConfig(
            f"max_pov_size {spec.max_pov_size} leaves {reserve} bytes beside the {allowed} for"
            " messages, but the 1 MiB minimum and static keys need"
            f" {MIN_BUDGET + _MAX_STATIC_BYTES}; raise it or set reserve_minimum"
        )
    if spec.reserve_minimum and allowed <= MIN_BUDGET:
        raise ImpossibleConfig(
            f"max_pov_size {spec.max_pov_size} has no room for the 1 MiB minimum"
        )
    for para, keys in spec.subscriptions.items():
        if (
            not keys
            or any(len(key) != KEY_LENGTH for key in keys)
            or list(keys) != sorted(set(keys))
        ):
            raise ImpossibleConfig(
                f"subscriptions to {para} are not distinct ascending keys of {KEY_LENGTH} bytes"
            )
    if list(spec.subscriptions) != sorted(spec.subscriptions):
        raise ImpossibleConfig("publishers do not ascend")
    _check_extra_keys(spec.extra_keys)
    _check_cache_fits(spec)


MAX_EXTRA_KEYS: Final = 1024
"""The maximum number of relay keys that a runtime requests besides its subscriptions."""


def _check_extra_keys(keys: tuple[RelayStorageKey, ...]) -> None:
    """Check that requested relay keys are distinct, few, and can be encoded.

    Raises `ImpossibleConfig` otherwise.
    """
    if len(keys) > MAX_EXTRA_KEYS:
        raise ImpossibleConfig(
            f"{len(keys)} relay keys are requested besides the subscriptions, and it is at most"
            f" {MAX_EXTRA_KEYS}"
        )
    if len(set(keys)) != len(keys):
        raise ImpossibleConfig("a relay key is requested more than once")
    try:
        RelayProofRequest(keys).encode()
    except ScaleError as error:
        raise ImpossibleConfig(f"a requested relay key: {error}") from None


MAX_BRANCH: Final = 564
"""The cost in bytes of a branch over 32-byte keys with sixteen children and without a value."""
_MAX_TOP_PATH: Final = 16
"""A generous bound on the number of nodes on a path of the relay chain's top trie."""


def largest_structure(keys: int) -> int:
    """Return an upper bound on the cost of all nodes of a trie, in bytes.

    The trie has n = `keys` 32-byte keys and detached values. There are at most n leaves and n - 1
    branches. Each node except the root is referenced once (33 bytes). Each has a header, a bitmap
    or value hash, and a length prefix. Each branch can be paired with another leaf below it. The
    partial keys of such a pair take at most 32 bytes and two half bytes.
    """
    references = 33 * max(2 * keys - 2, 0)
    return references + keys * (32 + 2 + 36) + max(keys - 1, 0) * 8


_SLOTS_A_KEY: Final = 72
"""An upper bound on the charges for rows of slots, in bytes per key.

There is at most one row for five keys, and little more than one slot per key.
"""


def _check_cache_fits(spec: RuntimeSpec) -> None:
    """Check that any publisher can complete in one block within the minimum budget.

    Check also that the cache has room for all nodes of a publisher. Raises `ImpossibleConfig`
    otherwise.
    """
    keys = spec.max_stored_keys
    structure = largest_structure(keys)
    if spec.cache is CachePolicy.NODES and spec.max_cache_bytes < structure:
        raise ImpossibleConfig(
            f"max_cache_bytes {spec.max_cache_bytes} is below the {structure} bytes that the nodes"
            f" of max_stored_keys {keys} can take"
        )
    cached = ROW_COST if spec.cache is CachePolicy.NODES and spec.meter_cache_reads else 0
    if spec.cache is CachePolicy.SLOTS:
        rows = -(-keys // 16) * (PACKED_ROW + ROW_COST) + keys * _SLOTS_A_KEY
    else:
        rows = keys * ROW_COST
    complete = structure + (2 * keys - 1) * cached + rows
    maps = 2 * (ROW_COST + 5 + 36 * len(spec.subscriptions))
    path = (spec.max_trie_depth or 65) * (MAX_BRANCH + cached)
    needed = complete + _MAX_TOP_PATH * MAX_BRANCH + maps + path + spec.max_item_cost + ROW_COST
    if needed > MIN_BUDGET:
        raise ImpossibleConfig(
            f"walking a publisher of max_stored_keys {keys} can be charged {needed} bytes in one"
            f" block, more than the minimum budget of {MIN_BUDGET}: it could never complete"
        )


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise ScaleError("a name is not UTF-8") from None


_POLICIES: Final = tuple(CachePolicy)
_keys = scale.vec(scale.fixed(KEY_LENGTH))
_subscriptions: Final[Codec[dict[int, list[bytes]]]] = scale.sorted_map(scale.u32, _keys)
_name: Final = scale.bytes_.map("String", _text, str.encode)
_depth: Final = scale.option(scale.u32)
_weight: Final = struct(Weight, scale.u64, scale.u64)


def _policy(index: int) -> CachePolicy:
    if index >= len(_POLICIES):
        raise ImpossibleConfig(f"unknown cache policy {index}")
    return _POLICIES[index]


def _read_subscriptions(declared: dict[int, list[bytes]]) -> Subscriptions:
    return {ParaId(para): tuple(map(PubsubKey, keys)) for para, keys in declared.items()}


def _write_subscriptions(subscriptions: Subscriptions) -> dict[int, list[bytes]]:
    return {para: list(keys) for para, keys in subscriptions.items()}


_FIELDS: Final[Mapping[str, AnyCodec]] = {
    "para_id": scale.u32,
    "spec_version": scale.u32,
    "subscriptions": _subscriptions.map("Subscriptions", _read_subscriptions, _write_subscriptions),
    "max_pov_size": scale.u32,
    "reserve_minimum": scale.boolean,
    "cache": scale.u8.map("CachePolicy", _policy, _POLICIES.index),
    "meter_cache_reads": scale.boolean,
    "max_cache_bytes": scale.u32,
    "max_trie_depth": _depth,
    "max_value_length": scale.u32,
    "max_stored_keys": scale.u32,
    "handler": _name,
    "handler_weight": _weight,
}


# The flags after the fields of a runtime, in one byte. The byte is left out if it would be zero.
_ACCOUNTS: Final = 1
_RULES: Final = 2
_EXTRA_KEYS: Final = 4
_CHARGED: Final = 8
_OFFSET: Final = 16


def _encode_spec(spec: RuntimeSpec) -> bytes:
    flags = 0
    optional_fields = b""
    if spec.accounts:
        flags |= _ACCOUNTS
    if spec.rules:
        flags |= _RULES
        optional_fields += spec.rules
    if spec.extra_keys:
        flags |= _EXTRA_KEYS
        optional_fields += RelayProofRequest(spec.extra_keys).encode()
    if spec.charge_extra_keys:
        flags |= _CHARGED
    if spec.relay_parent_offset:
        flags |= _OFFSET
        optional_fields += scale.u32.encode(spec.relay_parent_offset)
    fields = b"".join(codec.encode(getattr(spec, name)) for name, codec in _FIELDS.items())
    return fields + bytes((flags,)) + optional_fields if flags else fields


def _read_spec(reader: Reader) -> RuntimeSpec:
    spec = RuntimeSpec(**{name: codec.read(reader) for name, codec in _FIELDS.items()}, rules=b"")
    if not reader.remaining():
        return spec
    start = reader.pos
    flags = reader.u8()
    if not 0 < flags <= _ACCOUNTS | _RULES | _EXTRA_KEYS | _CHARGED | _OFFSET:
        raise ScaleError(f"the flags after a runtime are {flags:#04x} at offset {start}")
    rules = reader.take(32) if flags & _RULES else b""
    extra: tuple[RelayStorageKey, ...] = ()
    if flags & _EXTRA_KEYS:
        start = reader.pos
        extra = relay_proof_request.read(reader).keys
        if not extra:
            raise ScaleError(f"no requested relay key at offset {start}")
    offset = 0
    if flags & _OFFSET:
        start = reader.pos
        offset = scale.u32.read(reader)
        if not offset:
            raise ScaleError(f"the relay parent offset is 0 at offset {start}")
    return replace(
        spec,
        accounts=bool(flags & _ACCOUNTS),
        rules=rules,
        extra_keys=extra,
        charge_extra_keys=bool(flags & _CHARGED),
        relay_parent_offset=offset,
    )


spec_codec: Final[Codec[RuntimeSpec]] = Codec("RuntimeSpec", _encode_spec, _read_spec)


@lru_cache(maxsize=64)
def decode_spec(code: bytes) -> RuntimeSpec:
    """Decode the value of `:code` as a runtime.

    The last results are cached. Raises `ScaleError`, or `ImpossibleConfig` for an unknown policy.
    """
    return spec_codec.decode(code)


class TopTrieReader(Protocol):
    """A state's top trie, or the storage over a state."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value under `key`."""


def runtime_spec(rows: TopTrieReader) -> RuntimeSpec:
    """Return the runtime under `:code`, which executes the next block.

    Raises the errors of `decode_spec`.
    """
    return decode_spec(rows.get(CODE) or b"")

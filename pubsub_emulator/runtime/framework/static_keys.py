"""The relay keys that every parachain proves in every block (PS-44).

The values that a parachain needs from them are here too.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from pubsub_emulator.primitives import scale, storage_keys
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.runtime.framework.message_chains import ZERO_HEAD
from pubsub_emulator.trie import BadNode
from pubsub_emulator.trie.descent import Lookups
from pubsub_emulator.trie.step import DETACHED, VALUE

_para_ids = scale.vec(scale.u32)
_mqc_head = scale.option(scale.fixed(32))
_BEFORE_MQC_HEAD: Final = 5 * 4
"""The bytes before the head in `HrmpChannel`: five u32 limits and counts."""

_AFTER_MQC_HEAD: Final = 2 * 16
"""The bytes after the head: two u128 deposits."""
_MAX_DOWNWARD_SIZE_AT: Final = 12 * 4
"""The offset of `max_downward_message_size` in `HostConfiguration`.

Twelve u32 come before it: nine fields, two of asynchronous backing, and the maximum proof size.
"""
_MAX_MESSAGE_SIZE_AT: Final = 2 * 4
"""The offset of `max_message_size` in `HrmpChannel`."""


@dataclass(slots=True)
class StaticValues:
    """The values of the static keys, and the heads to which the messages must hash.

    A value is `None` if the key is proven absent.
    """

    values: dict[bytes, bytes | None] = field(default_factory=dict)
    dmq_head: Hash = ZERO_HEAD
    hrmp_heads: dict[ParaId, Hash] = field(default_factory=dict)
    largest_messages: dict[ParaId, int] = field(default_factory=dict)
    """The size of the largest message that each ingress channel allows, in bytes."""
    largest_downward: int | None = None
    """The size of the largest downward message that the relay chain allows, in bytes, or `None` if
    its configuration does not decode.
    """


@lru_cache(maxsize=4096)
def fixed_keys(para: ParaId) -> tuple[bytes, ...]:
    """Return the thirteen static keys that do not depend on the relay state (UP-4).

    They are in the order in which Cumulus collects them.
    """
    return (
        storage_keys.CURRENT_BLOCK_RANDOMNESS,
        storage_keys.ONE_EPOCH_AGO_RANDOMNESS,
        storage_keys.TWO_EPOCHS_AGO_RANDOMNESS,
        storage_keys.CURRENT_SLOT,
        storage_keys.ACTIVE_CONFIG,
        storage_keys.dmq_mqc_head(para),
        storage_keys.relay_dispatch_queue_size(para),
        storage_keys.relay_dispatch_queue_remaining_capacity(para),
        storage_keys.hrmp_ingress_channel_index(para),
        storage_keys.hrmp_egress_channel_index(para),
        storage_keys.upgrade_go_ahead_signal(para),
        storage_keys.upgrade_restriction_signal(para),
        storage_keys.para_head(para),
    )


def _largest_message(channel: bytes | None) -> int:
    """Return the limit of a channel's messages in bytes, or 0 if there is no channel."""
    # Compiled code cannot index bytes with a stored `slice`, so the range is written out.
    data = (channel or b"")[_MAX_MESSAGE_SIZE_AT : _MAX_MESSAGE_SIZE_AT + 4]
    return int.from_bytes(data, "little")


def _largest_downward(config: bytes | None) -> int | None:
    """Return the limit of downward messages in bytes, or `None` without a whole configuration."""
    if config is None or len(config) < _MAX_DOWNWARD_SIZE_AT + 4:
        return None
    data = config[_MAX_DOWNWARD_SIZE_AT : _MAX_DOWNWARD_SIZE_AT + 4]
    return int.from_bytes(data, "little")


def read_static_keys(
    para: ParaId, read: Callable[[bytes], bytes | None], authorities: tuple[bytes, ...] = ()
) -> StaticValues:
    """Read all static keys in their fixed order.

    The fixed keys come first, then each ingress and each egress channel, and last the keys of the
    relay chain's `authorities` that a block with descendants of its relay parent needs. Values that
    do not decode count as absent: the relay root commits to them, so the collator is not at fault.
    """
    statics = StaticValues()
    for key in fixed_keys(para):
        statics.values[key] = read(key)
    statics.largest_downward = _largest_downward(statics.values[storage_keys.ACTIVE_CONFIG])
    statics.dmq_head = _hash(statics.values[storage_keys.dmq_mqc_head(para)])
    for sender in _decode_para_ids(statics.values[storage_keys.hrmp_ingress_channel_index(para)]):
        key = storage_keys.hrmp_channel(sender, para)
        statics.values[key] = read(key)
        channel = statics.values[key]
        statics.hrmp_heads[sender] = _channel_head(channel)
        statics.largest_messages[sender] = _largest_message(channel)
    for recipient in _decode_para_ids(statics.values[storage_keys.hrmp_egress_channel_index(para)]):
        key = storage_keys.hrmp_channel(para, recipient)
        statics.values[key] = read(key)
    for key in authorities:
        statics.values[key] = read(key)
    return statics


def static_value(relay: Lookups, key: bytes) -> bytes | None:
    """Return a static key's value under the relay root.

    It is `None` if the key is absent or if its path has a malformed node.
    """
    try:
        kind, payload, depth = relay.read(key)
    except BadNode:
        return None
    if kind == DETACHED:
        return relay.node(Hash(payload), depth)
    return payload if kind == VALUE else None


def _decode_para_ids(value: bytes | None) -> list[ParaId]:
    try:
        return [] if value is None else [ParaId(para) for para in _para_ids.decode(value)]
    except ScaleError:
        return []


def _hash(value: bytes | None) -> Hash:
    return ZERO_HEAD if value is None or len(value) != len(ZERO_HEAD) else Hash(value)


def _channel_head(channel: bytes | None) -> Hash:
    if channel is None or len(channel) <= _BEFORE_MQC_HEAD + _AFTER_MQC_HEAD:
        return ZERO_HEAD
    try:
        head = _mqc_head.decode(channel[_BEFORE_MQC_HEAD:-_AFTER_MQC_HEAD])
    except ScaleError:
        return ZERO_HEAD
    return ZERO_HEAD if head is None else Hash(head)

"""The entries of a relay state, decoded.

Each key belongs to a storage item, which declares how its keys and value are encoded.
"""

from dataclasses import dataclass
from typing import Any

from pubsub_emulator.emulator.runtimes import relay_runtime
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX
from pubsub_emulator.runtime.framework import events, system
from pubsub_emulator.runtime.framework.pallet import AnyItem
from pubsub_emulator.runtime.framework.storage import State

CAPACITY = b":relay_dispatch_queue_remaining_capacity"


def declared() -> dict[bytes, AnyItem]:
    """Return every storage item of the relay chain's pallets by its prefix."""
    return {item.prefix: item for item in relay_runtime().items.values()}


@dataclass(frozen=True)
class Row:
    """One decoded entry of a state: its keys, its value, and both encoded again."""

    item: str
    keys: tuple[Any, ...]
    value: Any
    key_again: bytes
    value_again: bytes


def read_row(items: dict[bytes, AnyItem], key: bytes, raw: bytes) -> Row:
    """Decode an entry.

    Raises `KeyError` if the key is not of an item, and `ScaleError` if keys or value do not decode
    to their last byte.
    """
    if key.startswith(CHILD_STORAGE_PREFIX):
        return Row(
            CHILD_STORAGE_PREFIX.decode(), (key[len(CHILD_STORAGE_PREFIX) :],), raw, key, raw
        )
    if key.startswith(CAPACITY):
        told = int.from_bytes(raw[:4], "little"), int.from_bytes(raw[4:8], "little")
        para = int.from_bytes(key[len(CAPACITY) :], "little")
        again = b"".join(number.to_bytes(4, "little") for number in told)
        return Row(CAPACITY.decode(), (para,), told, CAPACITY + para.to_bytes(4, "little"), again)
    if key == system.EVENTS:
        records = relay_runtime().decode_records(raw)
        return Row("System::Events", (), records, key, events.encode_records(records))
    item = items[key[:32]]
    keys, value = item.decode_keys(key), item.codec.decode(raw)
    parts = (
        hasher.hash(codec.encode(each))
        for each, (hasher, codec) in zip(keys, item.key_parts, strict=True)
    )
    again = item.prefix + b"".join(parts)
    return Row(f"{item.pallet}::{item.item}", keys, value, again, item.codec.encode(value))


def rows(state: State) -> list[Row]:
    """Return every top entry of a state, decoded."""
    items = declared()
    return [read_row(items, key, raw) for key, raw in state.top_entries()]


def differing(one: State, other: State) -> set[str]:
    """Return the items in which two states differ."""
    items = declared()
    first, second = dict(one.top_entries()), dict(other.top_entries())
    both = dict.fromkeys([*first, *second])
    changed = [
        (key, first.get(key, second.get(key, b"")))
        for key in both
        if first.get(key) != second.get(key)
    ]
    return {read_row(items, key, raw).item for key, raw in changed}

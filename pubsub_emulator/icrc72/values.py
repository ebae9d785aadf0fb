"""ICRC16 values: the 24 variants in which event data, headers and configurations are written (IC-20).

A value is a `Variant` of its tag and a frozen payload. The payloads are those of the Candid types: `Float` is its 8
little-endian bytes and `Floats` a tuple of such, `Bytes` and `Blob` are bytes, `Map` is a tuple of pairs of text and
value, `ValueMap` a tuple of pairs of values, `Class` a tuple of `Property`, `Option` is `None` or a value.
"""

import struct
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pubsub_emulator.eventplane.ic.candid.types import Variant
from pubsub_emulator.eventplane.ic.principal import Principal

Value = Variant
"""An ICRC16 value."""

Pairs = tuple[tuple[str, Variant], ...]
"""An ICRC16Map: the first of repeated keys counts."""


class Property(NamedTuple):
    """One property of a Class."""

    name: str
    value: Variant
    immutable: bool


def nat(number: int) -> Value:
    """A natural of any size."""
    return Variant("Nat", number)


def text(words: str) -> Value:
    """A text."""
    return Variant("Text", words)


def blob(raw: bytes) -> Value:
    """Bytes as a Blob; so principals are written, too."""
    return Variant("Blob", bytes(raw))


def boolean(truth: bool) -> Value:
    """True or false."""
    return Variant("Bool", truth)


def array(items: Iterable[Variant]) -> Value:
    """Values in order."""
    return Variant("Array", tuple(items))


def map_(entries: Mapping[str, Variant] | Iterable[tuple[str, Variant]]) -> Value:
    """Entries by name, in order."""
    pairs = entries.items() if isinstance(entries, Mapping) else entries
    return Variant("Map", tuple((name, value) for name, value in pairs))


def option(value: Variant | None) -> Value:
    """A value or null."""
    return Variant("Option", value)


def float64(number: float) -> Value:
    """A 64-bit float."""
    return Variant("Float", struct.pack("<d", number))


def of(plain: Any) -> Value:
    """The value that plain Python most plainly means.

    None, bool, int, float, str, bytes, principals, lists, tuples and dicts with text keys are understood; a natural
    becomes Nat, a negative number Int, a value stays what it is.
    """
    if isinstance(plain, Variant):
        return plain
    if plain is None:
        return option(None)
    if isinstance(plain, bool):
        return boolean(plain)
    if isinstance(plain, int):
        return nat(plain) if plain >= 0 else Variant("Int", plain)
    if isinstance(plain, float):
        return float64(plain)
    if isinstance(plain, str):
        return text(plain)
    if isinstance(plain, Principal):
        return Variant("Principal", plain)
    if isinstance(plain, bytes):
        return blob(plain)
    if isinstance(plain, Mapping):
        return map_((str(key), of(value)) for key, value in plain.items())
    if isinstance(plain, Iterable):
        return array(of(each) for each in plain)
    raise TypeError(f"{type(plain).__name__} has no ICRC16 value")


def plain(value: Variant) -> Any:
    """The plain Python of a value, for people; widths and the difference of Array and Set are lost."""
    tag, inside = value
    if tag in {"Array", "Set"}:
        return [plain(each) for each in inside]
    if tag == "Map":
        return {name: plain(each) for name, each in inside}
    if tag == "ValueMap":
        return [[plain(key), plain(each)] for key, each in inside]
    if tag == "Class":
        return {each.name: plain(each.value) for each in inside}
    if tag == "Option":
        return None if inside is None else plain(inside)
    if tag == "Float":
        return struct.unpack("<d", inside)[0]
    if tag == "Floats":
        return [struct.unpack("<d", each)[0] for each in inside]
    return list(inside) if tag == "Nats" else inside


def first(pairs: Pairs | None, key: str) -> Variant | None:
    """The first value under a key of a map; `None` when there is none."""
    for name, value in pairs or ():
        if name == key:
            return value
    return None


def as_nat(value: Variant | None) -> int | None:
    """The number of a Nat; `None` for anything else."""
    return value.value if value is not None and value.tag == "Nat" else None


def as_text(value: Variant | None) -> str | None:
    """The words of a Text; `None` for anything else."""
    return value.value if value is not None and value.tag == "Text" else None


def as_principal(value: Variant | None) -> Principal | None:
    """A principal, written as Blob of its bytes or as Principal; `None` for anything else."""
    if value is None:
        return None
    if value.tag == "Principal":
        return Principal(value.value)
    return Principal(value.value) if value.tag == "Blob" and len(value.value) <= 29 else None


def as_items(value: Variant | None) -> tuple[Variant, ...] | None:
    """The items of an Array; `None` for anything else."""
    return value.value if value is not None and value.tag == "Array" else None


__all__ = [
    "Pairs",
    "Property",
    "Value",
    "array",
    "as_items",
    "as_nat",
    "as_principal",
    "as_text",
    "blob",
    "boolean",
    "first",
    "float64",
    "map_",
    "nat",
    "of",
    "option",
    "plain",
    "text",
]

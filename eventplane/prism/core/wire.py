"""Protobuf's wire format, read with the choices of PR-20.

    field   varint (number << 3 | wire type)  value
    value   0 varint | 1 eight bytes | 2 varint length, bytes | 5 four bytes

The protobuf library cannot be used to read operations: it keeps no bytes to hash, merges a message that comes twice,
cuts an enum to 32 bits, and takes groups.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from pubsub_emulator.eventplane.prism.core.errors import Undecodable

VARINT: Final = 0
BYTES: Final = 2
Step: TypeAlias = tuple[int, bool, Callable[[Any], Any]]
"""How a field is read: the place of its attribute, whether it is repeated, and what reads a value."""
_SIZES: Final = {1: 8, 5: 4}
_LEAST_TAG: Final = 1 << 3
_TAGS: Final = 1 << 32
_SHORT: Final = tuple(bytes((value,)) for value in range(0x80))
_MOST_VARINT: Final = (1 << 64) - 1


def read_into(values: list[Any], steps: Mapping[int, Step], raw: bytes) -> None:
    """Put what is read of each field where its step says, and skip fields without a step. Raises `Undecodable`.

    Steps are by tag, which is number << 3 | wire type, of wire types 0 and 2.
    """
    at, end = 0, len(raw)
    while at < end:
        tag = raw[at]
        tag, at = (tag, at + 1) if tag < 0x80 else _varint(raw, at)
        step = steps.get(tag)
        if step is None:
            at = _skip(tag, raw, at)
            continue
        value: int | bytes
        if tag & 7 == VARINT:
            value, at = _varint(raw, at)
        else:
            length = raw[at] if at < end else 0x80
            length, at = (length, at + 1) if length < 0x80 else _varint(raw, at)
            value, at = raw[at : at + length], at + length
            if at > end:
                raise Undecodable(f"field {tag >> 3} ends beyond its message")
        place, is_repeated, read = step
        if is_repeated:
            values[place].append(read(value))
        else:
            values[place] = read(value)


def _skip(tag: int, raw: bytes, at: int) -> int:
    """Where the value that is at `at` ends."""
    kind = tag & 7
    if not _LEAST_TAG <= tag < _TAGS:
        raise Undecodable(f"field number {tag >> 3}")
    if kind == VARINT:
        return _varint(raw, at)[1]
    if kind == BYTES:
        length, at = _varint(raw, at)
    elif kind in _SIZES:
        length = _SIZES[kind]
    else:
        raise Undecodable(f"wire type {kind}")
    if at + length > len(raw):
        raise Undecodable(f"field {tag >> 3} ends beyond its message")
    return at + length


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(raw):
            raise Undecodable("a varint ends beyond its message")
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 63:
            raise Undecodable("a varint of more than ten bytes")
    if value > _MOST_VARINT:
        raise Undecodable("a varint of more than 64 bits")
    return value, at


def varint(value: int) -> bytes:
    """The shortest varint of a number."""
    if value < 0x80:
        return _SHORT[value]
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def bytes_field(number: int, value: bytes) -> bytes:
    """A field of bytes, text or a message."""
    return varint(number << 3 | BYTES) + varint(len(value)) + value


def varint_field(number: int, value: int) -> bytes:
    """A field of a number."""
    return varint(number << 3 | VARINT) + varint(value)

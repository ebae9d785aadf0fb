"""Protobuf's wire format, read with the choices of PR-20.

    field   varint (number << 3 | wire type)  value
    value   0 varint | 1 eight bytes | 2 varint length, bytes | 5 four bytes

The protobuf library cannot be used to read operations: it keeps no bytes to hash, merges a message that comes twice,
cuts an enum to 32 bits, and takes groups.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from pubsub_emulator.prism.core.errors import Undecodable

VARINT: Final = 0
BYTES: Final = 2
_SIZES: Final = {1: 8, 5: 4}
_LEAST_TAG: Final = 1 << 3
_TAGS: Final = 1 << 32
_SHORT: Final = tuple(bytes((value,)) for value in range(0x80))
_MOST_VARINT: Final = (1 << 64) - 1

M = TypeVar("M")

Step: TypeAlias = tuple[int, bool, Callable[[bytes], Any] | None]
"""How a field is read: the place of its value; whether it is repeated; what makes a value of bytes, `None` where they
are the value, and for numbers."""


def reader(
    steps: Mapping[int, Step], empty: Sequence[object], make: Callable[[list[object]], M], *, is_hashed: bool
) -> Callable[[bytes], M]:
    """A reader of a message that skips fields without a step. It raises `Undecodable`.

    Steps are by tag, which is number << 3 | wire type, of wire types 0 and 2. `empty` has the values of a message
    without fields, empty tuples for those that are repeated. Where `is_hashed`, the first value is the message's bytes.
    """
    step_of = steps.get
    start: list[Any] = [*empty]
    lists = sorted({place for place, is_repeated, _ in steps.values() if is_repeated})

    def read(raw: bytes) -> M:
        values = start.copy()
        if is_hashed:
            values[0] = raw
        at, end = 0, len(raw)
        while at < end:
            tag = raw[at]
            at += 1
            if tag >= 0x80:
                tag, at = _varint(raw, at - 1)
            step = step_of(tag)
            if step is None:
                at = _skip(tag, raw, at)
                continue
            value: Any = raw[at] if at < end else 0x80
            at += 1
            if value >= 0x80:
                value, at = _varint(raw, at - 1)
            place, is_repeated, convert = step
            if tag & BYTES:
                value = raw[at : (at := at + value)]
                if at > end:
                    raise Undecodable(f"field {tag >> 3} ends beyond its message")
                if convert is not None:
                    value = convert(value)
            if not is_repeated:
                values[place] = value
            elif values[place]:
                values[place].append(value)
            else:
                values[place] = [value]
        for place in lists:
            if values[place]:
                values[place] = tuple(values[place])
        return make(values)

    return read


def _skip(tag: int, raw: bytes, at: int) -> int:
    """The end of the value that is at `at`."""
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

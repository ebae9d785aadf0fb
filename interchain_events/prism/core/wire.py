"""Protobuf's wire format, read with the choices of PR-20.

    field   varint (number << 3 | wire type)  value
    value   0 varint | 1 eight bytes | 2 varint length, bytes | 5 four bytes

The protobuf library cannot be used to read operations: it does not retain the bytes that are
hashed, merges a message that occurs twice, cuts enums to 32 bits, and accepts groups.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from interchain_events.prism.core.errors import Undecodable

VARINT: Final = 0
"""The wire type of numbers."""
BYTES: Final = 2
"""The wire type of bytes, text and messages."""
_SIZES: Final = {1: 8, 5: 4}
"""The sizes of the other wire types, in bytes."""
_LEAST_TAG: Final = 1 << 3
"""The least tag of a field: field numbers begin with 1."""
_TAGS: Final = 1 << 32
"""Tags are smaller than this."""
_SHORT: Final = tuple(bytes((value,)) for value in range(0x80))
"""The varints of one byte."""
_MOST_VARINT: Final = (1 << 64) - 1

M = TypeVar("M")

Step: TypeAlias = tuple[int, bool, Callable[[bytes], Any] | None]
"""The reading of a field: the place of its value in the message, whether it is repeated, and a
function that makes the value from bytes. The function is `None` for numbers, and for fields whose
value is the bytes themselves."""


def reader(
    steps: Mapping[int, Step],
    empty: Sequence[object],
    make: Callable[[list[object]], M],
    *,
    is_hashed: bool,
) -> Callable[[bytes], M]:
    """Return a function that reads a message. It raises `Undecodable`.

    `steps` has the fields that are read, by their tags (number << 3 | wire type, with wire type 0
    or 2). Other fields are skipped. `empty` has the values of a message without fields, which are
    empty tuples for repeated fields. If `is_hashed` is true, the first value is the message's
    bytes.
    """
    step_of = steps.get
    start: list[Any] = [*empty]
    lists = sorted({place for place, is_repeated, _ in steps.values() if is_repeated})

    def read(raw: bytes) -> M:
        values = start.copy()
        if is_hashed:
            values[0] = raw
        offset = 0
        end = len(raw)
        while offset < end:
            tag = raw[offset]
            offset += 1
            if tag >= 0x80:
                tag, offset = _varint(raw, offset - 1)
            step = step_of(tag)
            if step is None:
                offset = _skip(tag, raw, offset)
                continue
            # Most numbers and lengths have one byte. At the end, 0x80 makes `_varint` raise the
            # error.
            value: Any = raw[offset] if offset < end else 0x80
            offset += 1
            if value >= 0x80:
                value, offset = _varint(raw, offset - 1)
            place, is_repeated, convert = step
            if tag & BYTES:
                value = raw[offset : (offset := offset + value)]
                if offset > end:
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


def _skip(tag: int, raw: bytes, offset: int) -> int:
    """Return the offset after the value at `offset`. Raises `Undecodable`."""
    kind = tag & 7
    if not _LEAST_TAG <= tag < _TAGS:
        raise Undecodable(f"a field has number {tag >> 3}, and numbers are 1 to 536870911")
    if kind == VARINT:
        return _varint(raw, offset)[1]
    if kind == BYTES:
        length, offset = _varint(raw, offset)
    elif kind in _SIZES:
        length = _SIZES[kind]
    else:
        raise Undecodable(f"a field has wire type {kind}, which is not supported")
    if offset + length > len(raw):
        raise Undecodable(f"field {tag >> 3} ends beyond its message")
    return offset + length


def _varint(raw: bytes, offset: int) -> tuple[int, int]:
    """Return the number at `offset`, and the offset after it. Raises `Undecodable`."""
    value = 0
    shift = 0
    while True:
        if offset >= len(raw):
            raise Undecodable("a varint ends beyond its message")
        byte = raw[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 63:
            raise Undecodable("a varint of more than ten bytes")
    if value > _MOST_VARINT:
        raise Undecodable("a varint of more than 64 bits")
    return value, offset


def varint(value: int) -> bytes:
    """Return the shortest varint of a number."""
    if value < 0x80:
        return _SHORT[value]
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def bytes_field(number: int, value: bytes) -> bytes:
    """Return a field with bytes, text or a message."""
    return varint(number << 3 | BYTES) + varint(len(value)) + value


def varint_field(number: int, value: int) -> bytes:
    """Return a field with a number."""
    return varint(number << 3 | VARINT) + varint(value)

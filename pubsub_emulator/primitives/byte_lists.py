"""SCALE lists of byte strings (`Vec<Vec<u8>>`) with thousands of elements.

Lengths below 16,384 have prefixes of one or two bytes. They are read without a call of `Reader`,
and it is checked once, at the end of the list, that they were valid.
"""

from collections.abc import Sequence

from pubsub_emulator.primitives.pubsub import nodes_cost
from pubsub_emulator.primitives.scale import Reader, encode_compact


def encode_bytes_list(values: Sequence[bytes]) -> bytes:
    """Encode the count, then each value after its length."""
    parts = [encode_compact(len(values))]
    for value in values:
        length = len(value)
        parts += (
            (length << 2 | 1).to_bytes(2, "little")
            if 0x40 <= length < 0x4000
            else encode_compact(length),
            value,
        )
    return b"".join(parts)


def read_byte_strings(reader: Reader, count: int) -> list[bytes]:
    """Return the next `count` byte strings (`Vec<u8>`) of `reader`.

    Raises `ScaleError`.
    """
    values = _read_short(reader, count)
    if values is None:
        values = [reader.bytes_() for _ in range(count)]
    return values


def _read_short(reader: Reader, count: int) -> list[bytes] | None:
    """Return the next `count` byte strings if all are shorter than 16,384 bytes.

    Otherwise, or if they are not valid, return `None` and leave the reader in its place.
    """
    data = reader.data
    end = reader.pos
    values: list[bytes] = []
    try:
        for _ in range(count):
            first = data[end]
            if first & 3 == 1:
                start = end + 2
                end = start + (first >> 2 | data[end + 1] << 6)
            elif first & 3 == 0:
                start = end + 1
                end = start + (first >> 2)
            else:
                return None
            values.append(data[start:end])
    except IndexError:
        return None
    # The strings cost less than was read if the last one is incomplete, or if a prefix is not in
    # its shortest form.
    if nodes_cost(values) != end - reader.pos:
        return None
    reader.pos = end
    return values

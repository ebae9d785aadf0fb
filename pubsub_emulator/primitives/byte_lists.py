"""SCALE lists of byte strings (`Vec<Vec<u8>>`) with thousands of elements.

Lengths below 16,384 have prefixes of one or two bytes. They are read without a call of `Reader`.
"""

from collections.abc import Sequence

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
    data = reader.data
    size = len(data)
    pos = reader.pos
    values: list[bytes] = []
    for _ in range(count):
        prefix = data[pos] | data[pos + 1] << 8 if pos + 2 <= size else 3
        if prefix & 3 == 1 and prefix >= 0x100:
            start = pos + 2
            end = start + (prefix >> 2)
        elif not prefix & 3:
            start = pos + 1
            end = start + (data[pos] >> 2)
        else:
            # This end is beyond the data, so the general way is taken.
            start = pos
            end = size + 1
        if end <= size:
            values.append(data[start:end])
            pos = end
        else:
            reader.pos = pos
            # The value is long, incomplete, or an empty one at the end.
            values.append(reader.bytes_())
            pos = reader.pos
    reader.pos = pos
    return values

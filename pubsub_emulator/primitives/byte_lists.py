"""`Vec<Vec<u8>>` with thousands of elements, such as the nodes of a proof. Nearly all of them have 64 to 16,383 bytes.

Their length prefix is a compact integer of two bytes, which is written and read here without a call for each.
"""

from collections.abc import Sequence

from pubsub_emulator.primitives.scale import Reader, encode_compact


def encode_bytes_list(values: Sequence[bytes]) -> bytes:
    """The count, then each value after its length."""
    parts = [encode_compact(len(values))]
    for value in values:
        length = len(value)
        parts += ((length << 2 | 1).to_bytes(2, "little") if 0x40 <= length < 0x4000 else encode_compact(length), value)
    return b"".join(parts)


def read_byte_strings(reader: Reader, count: int) -> list[bytes]:
    """The next `count` of `Vec<u8>`. Raises `ScaleError`."""
    out: list[bytes] = []
    while len(out) < count:
        reader.pos = _take(reader.data, reader.pos, count, out)
        if len(out) < count:
            out.append(reader.bytes_())
    return out


def _take(data: bytes, pos: int, count: int, out: list[bytes]) -> int:
    """Append byte strings until `out` has `count`, or one is of another length or not whole; where the next begins."""
    size = len(data)
    for _ in range(count - len(out)):
        if pos + 2 > size:
            break
        prefix = data[pos] | data[pos + 1] << 8
        start = pos + 2
        end = start + (prefix >> 2)
        if prefix & 3 != 1 or prefix < 0x100 or end > size:
            break
        out.append(data[start:end])
        pos = end
    return pos

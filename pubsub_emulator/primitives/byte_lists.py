"""`Vec<Vec<u8>>` with thousands of elements, such as the nodes of a proof. Nearly all have less than 16,384 bytes.

Their length prefix is a compact integer of one or two bytes, which is read here without a call for each.
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
    """Append byte strings until `out` has `count`, or one is longer or not whole; where the next begins."""
    size = len(data)
    for _ in range(count - len(out)):
        if pos + 2 > size:
            break
        prefix = data[pos] | data[pos + 1] << 8
        if prefix & 3 == 1 and prefix >= 0x100:
            start = pos + 2
            end = start + (prefix >> 2)
        elif not prefix & 3:
            start = pos + 1
            end = start + (data[pos] >> 2)
        else:
            break
        if end > size:
            break
        out.append(data[start:end])
        pos = end
    return pos

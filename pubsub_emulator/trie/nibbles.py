"""The number of nibbles that keys share."""

from array import array
from itertools import islice
from operator import xor
from sys import byteorder


def shared_with_next(keys: list[bytes]) -> list[int]:
    """Return how many nibbles each of the sorted, distinct `keys` shares with the next.

    The number is -1 for the last key.
    """
    size = len(keys[0])
    if size and len(set(map(len, keys))) == 1:
        out = shared_nibbles(keys, size)
        out.append(-1)
        return out
    out = []
    number = int.from_bytes(keys[0])
    for key in islice(keys, 1, None):
        following = int.from_bytes(key)
        longer = len(key) - size
        if not longer:
            out.append((8 * size - (number ^ following).bit_length()) >> 2)
        elif longer > 0:
            out.append((8 * size - (number ^ following >> 8 * longer).bit_length()) >> 2)
            size += longer
        else:
            size += longer
            out.append((8 * size - (number >> -8 * longer ^ following).bit_length()) >> 2)
        number = following
    out.append(-1)
    return out


def shared_nibbles(records: list[bytes], size: int) -> list[int]:
    """Return how many nibbles each sorted record shares with the next one.

    Only the first `size` bytes of the records count.
    """
    start = shared(records[0][:size], records[-1][:size]) >> 4
    if size % 8 or len(records[0]) % 8 or 8 * start == size:
        keys = [int.from_bytes(record[:size]) for record in records]
        return [
            (8 * size - apart.bit_length()) >> 2 for apart in map(xor, keys, islice(keys, 1, None))
        ]
    words = array("Q", b"".join(records))[start :: len(records[0]) >> 3]
    if byteorder == "little":
        words.byteswap()
    numbers = words.tolist()
    end = 64 * (start + 1)
    out = [(end - apart.bit_length()) >> 2 for apart in map(xor, numbers, islice(numbers, 1, None))]
    if end < 8 * size and end >> 2 in out:
        for at, nibbles in enumerate(out):
            if nibbles == end >> 2:
                out[at] = shared(records[at][:size], records[at + 1][:size])
    return out


def shared(key: bytes, other: bytes) -> int:
    """Return the number of nibbles that two keys share."""
    size = min(len(key), len(other))
    apart = int.from_bytes(key[:size]) ^ int.from_bytes(other[:size])
    return (8 * size - apart.bit_length()) >> 2


def shared_digits(partial: str, digits: str, depth: int) -> int:
    """Return the number of nibbles that `partial` shares with `digits` from `depth` on."""
    most = min(len(partial), len(digits) - depth)
    mine = partial[:most]
    other = digits[depth : depth + most]
    if mine == other:
        return most
    apart = int(mine, 16) ^ int(other, 16)
    return most - ((apart.bit_length() + 3) >> 2)

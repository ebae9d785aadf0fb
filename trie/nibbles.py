"""How far keys go together."""

from itertools import islice
from operator import itemgetter, xor
from struct import Struct


def shared_nibbles(records: list[bytes], size: int, *, regular: bool) -> list[int]:
    """How many nibbles each of the sorted `records` shares with the next, in their first `size` bytes.

    `regular` records are all of one length. Eight bytes of each, from where they begin to differ, tell nearly always.
    """
    start = shared(records[0][:size], records[-1][:size]) >> 1
    if regular and start + 8 <= size:
        window = Struct(f">{start}xQ{len(records[0]) - start - 8}x")
        numbers = [number for (number,) in window.iter_unpack(b"".join(records))]
        bits = 8 * start + 64
    else:
        numbers = list(map(int.from_bytes, map(itemgetter(slice(size)), records)))
        bits = 8 * size
    out = [(bits - apart.bit_length()) >> 2 for apart in map(xor, numbers, islice(numbers, 1, None))]
    if bits < 8 * size and bits >> 2 in out:
        for at, nibbles in enumerate(out):
            if nibbles == bits >> 2:
                out[at] = shared(records[at][:size], records[at + 1][:size])
    return out


def shared(key: bytes, other: bytes) -> int:
    """How many nibbles two keys share."""
    size = min(len(key), len(other))
    apart = int.from_bytes(key[:size]) ^ int.from_bytes(other[:size])
    return (8 * size - apart.bit_length()) >> 2

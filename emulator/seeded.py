"""Randomness that is the same everywhere: every draw is a hash of what it is for, not of what was drawn before.

    block i of a stream = blake2_256(Vec<u8> seed ++ Vec<u8> label ++ u64 i)

A stream has a label of its own ("publisher/1000/block/7"), so nothing that one part of a network draws can move what
another part draws, and a restored snapshot goes on as the original did (PS-90).
"""

from collections.abc import Sequence
from typing import TypeVar

from primitives.hashing import blake2_256
from primitives.scale import encode_bytes

T = TypeVar("T")

MILLION = 1_000_000


class Stream:
    """Draws for one purpose. Not for secrets: the seed is public."""

    __slots__ = ("_counter", "_left", "_prefix")

    def __init__(self, seed: bytes, label: str) -> None:
        self._prefix = encode_bytes(seed) + encode_bytes(label.encode())
        self._counter = 0
        self._left = b""

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        parts = [self._left]
        have = len(self._left)
        while have < count:
            parts.append(blake2_256(self._prefix + self._counter.to_bytes(8, "little")))
            self._counter += 1
            have += 32
        data = b"".join(parts)
        self._left = data[count:]
        return data[:count]

    def below(self, bound: int) -> int:
        """A number in 0..bound-1. `bound` is at least 1; the bias is under bound / 2**64."""
        return int.from_bytes(self.take(8), "little") * bound >> 64

    def between(self, least: int, most: int) -> int:
        """A number in least..most, both included."""
        return least + self.below(most - least + 1)

    def chance(self, millionths: int) -> bool:
        """True in `millionths` of a million cases."""
        return self.below(MILLION) < millionths

    def choice(self, options: Sequence[T]) -> T:
        """One of `options`, which are not empty."""
        return options[self.below(len(options))]

    def sample(self, population: int, count: int) -> list[int]:
        """`count` distinct numbers below `population`, ascending (Floyd's method: work for `count` only)."""
        chosen: set[int] = set()
        for top in range(population - count, population):
            draw = self.below(top + 1)
            chosen.add(top if draw in chosen else draw)
        return sorted(chosen)

    def share(self, population: int, millionths: int) -> int:
        """About `millionths` of `population`: the whole part, and one more as often as the rest says."""
        whole, rest = divmod(population * millionths, MILLION)
        return whole + self.chance(rest)


def secret(seed: bytes, label: str) -> bytes:
    """A 32-byte key seed, for instance of a collator's Ed25519 pair."""
    return Stream(seed, label).take(32)

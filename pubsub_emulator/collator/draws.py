"""Reproducible random draws: each is a hash of a seed, a label and a counter, and of nothing else (PS-90).

block i of a stream = blake2_256(Vec<u8> seed ++ Vec<u8> label ++ u64 i)
"""

from collections.abc import Sequence
from typing import TypeVar

from pubsub_emulator.primitives.hashing import counted
from pubsub_emulator.primitives.scale import encode_bytes

T = TypeVar("T")


class Draws:
    """A stream of draws for one purpose, named by its label."""

    __slots__ = ("_count", "_left", "_prefix")

    def __init__(self, seed: bytes, label: str) -> None:
        self._prefix = encode_bytes(seed) + encode_bytes(label.encode())
        self._count = 0
        self._left = b""

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        left = self._left
        if len(left) < count:
            blocks = -(-(count - len(left)) // 32)
            left += counted(self._prefix, self._count, blocks)
            self._count += blocks
        self._left = left[count:]
        return left[:count]

    def below(self, bound: int) -> int:
        """A number in 0..bound-1, 0 if `bound` is less than 1; the bias is below bound / 2**32."""
        return int.from_bytes(self.take(4), "little") * max(bound, 1) >> 32

    def between(self, least: int, most: int) -> int:
        """A number in least..most, both included."""
        return least + self.below(most - least + 1)

    def one_in(self, count: int) -> bool:
        """True with probability 1 / `count`."""
        return self.below(count) == 0

    def choice(self, options: Sequence[T]) -> T:
        """One of `options`, which must not be empty."""
        return options[self.below(len(options))]

    def sample(self, options: Sequence[T], count: int) -> list[T]:
        """`count` different options, or all of them if there are fewer, in their order."""
        places = list(range(len(options)))
        while len(places) > max(count, 0):
            del places[self.below(len(places))]
        return [options[at] for at in places]

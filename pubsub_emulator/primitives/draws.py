"""Reproducible random draws: each is a hash of a seed, a label and a counter (PS-90).

block i of a stream = blake2_256(Vec<u8> seed ++ Vec<u8> label ++ u64 i)

Each purpose has its own label ("publisher/1000/block/7"). So the draws of one part of a network do
not change those of another part, and a restored snapshot continues as the original did.

Seeds are public. Do not use draws for secrets of real keys.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, TypeVar

from pubsub_emulator.primitives.hashing import numbered_digests
from pubsub_emulator.primitives.scale import encode_bytes

T = TypeVar("T")

MILLION: Final = 1_000_000


class Draws:
    """A stream of draws for one purpose, named by its label."""

    __slots__ = ("_count", "_left", "_prefix")

    def __init__(self, seed: bytes, label: str) -> None:
        self._prefix = encode_bytes(seed) + encode_bytes(label.encode())
        self._count = 0
        self._left = b""

    def take(self, count: int) -> bytes:
        """Return the next `count` bytes."""
        unused = self._left
        if len(unused) < count:
            blocks = -(-(count - len(unused)) // 32)
            unused += numbered_digests(self._prefix, self._count, blocks)
            self._count += blocks
        self._left = unused[count:]
        return unused[:count]

    def below(self, bound: int) -> int:
        """Return a number in 0..bound-1, or 0 if `bound` is less than 1.

        The bias is below bound / 2**32.
        """
        return int.from_bytes(self.take(4), "little") * max(bound, 1) >> 32

    def between(self, least: int, most: int) -> int:
        """Return a number in least..most, both included."""
        return least + self.below(most - least + 1)

    def one_in(self, count: int) -> bool:
        """Return `True` with probability 1 / `count`."""
        return self.below(count) == 0

    def choice(self, options: Sequence[T]) -> T:
        """Return one of `options`, which must not be empty."""
        return options[self.below(len(options))]

    def sample(self, options: Sequence[T], count: int) -> list[T]:
        """Return `count` different options in their order, or all of them if there are fewer."""
        indices = list(range(len(options)))
        while len(indices) > max(count, 0):
            del indices[self.below(len(indices))]
        return [options[index] for index in indices]

    def chance(self, millionths: int) -> bool:
        """Return `True` in `millionths` of a million cases."""
        return self.below(MILLION) < millionths

    def places(self, population: int, count: int) -> list[int]:
        """Return `count` distinct numbers below `population`, ascending.

        Floyd's method takes time proportional to `count`, not to `population`.
        """
        chosen: set[int] = set()
        for top in range(population - count, population):
            draw = self.below(top + 1)
            chosen.add(top if draw in chosen else draw)
        return sorted(chosen)

    def share(self, population: int, millionths: int) -> int:
        """Return about `millionths` of `population`.

        The result is rounded down, or up with the probability of the fraction.
        """
        whole, rest = divmod(population * millionths, MILLION)
        return whole + self.chance(rest)


def secret(seed: bytes, label: str) -> bytes:
    """Return a 32-byte key seed, for instance of a collator's Ed25519 pair."""
    return Draws(seed, label).take(32)


def draw(seed: bytes, label: bytes, number: int) -> int:
    """Return the 32-bit draw for one number.

    It is a keyed hash, which is cheaper than a stream. Only the first 64 bytes of the seed count.
    """
    drawn = blake2b(label + number.to_bytes(8, "big"), digest_size=4, key=seed[:64])
    return int.from_bytes(drawn.digest(), "big")

"""Randomness that is the same everywhere: every draw is a hash of what it is for, not of what was drawn before.

A stream has a label of its own ("publisher/1000/block/7"), so nothing that one part of a network draws can move what
another part draws, and a restored snapshot goes on as the original did (PS-90).
"""

from typing import Final

from pubsub_emulator.collator.draws import Draws

MILLION: Final = 1_000_000


class Stream(Draws):
    """Draws for one purpose, with the shares that scenarios speak of. Not for secrets: the seed is public."""

    __slots__ = ()

    def chance(self, millionths: int) -> bool:
        """True in `millionths` of a million cases."""
        return self.below(MILLION) < millionths

    def places(self, population: int, count: int) -> list[int]:
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

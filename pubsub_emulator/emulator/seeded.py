"""Reproducible randomness: every draw is a hash of its purpose, not of earlier draws.

Each stream has its own label ("publisher/1000/block/7"), so the draws of one part of a network do not change those of
another part, and a restored snapshot continues as the original did (PS-90).
"""

from typing import Final

from pubsub_emulator.collator.draws import Draws

MILLION: Final = 1_000_000


class Stream(Draws):
    """Draws for one purpose, with the shares of scenarios. Not for secrets: the seed is public."""

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
        """About `millionths` of `population`: rounded down, or up with the probability of the fraction."""
        whole, rest = divmod(population * millionths, MILLION)
        return whole + self.chance(rest)


def secret(seed: bytes, label: str) -> bytes:
    """A 32-byte key seed, for instance of a collator's Ed25519 pair."""
    return Stream(seed, label).take(32)

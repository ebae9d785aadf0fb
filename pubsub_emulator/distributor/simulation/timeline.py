"""Virtual time: what happens is asked for with a delay, and happens in order of time.

Where times are equal, it happens in the order in which it was asked for. Every draw is from one generator, and what
happened goes into one digest.
"""

import heapq
from collections.abc import Callable
from random import Random
from typing import Final

from pubsub_emulator.primitives.hashing import new_blake2_256

BEGIN: Final = 1_700_000_000_000
"""When every story begins, ms since 1970."""


class Timeline:
    """The time of one world, in ms."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311  # a story is a function of its seed
        self.now = BEGIN
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = 0
        self._hash = new_blake2_256()

    def later(self, delay: int, what: Callable[[], None]) -> None:
        """Schedule an action after `delay` ms."""
        self._sequence += 1
        heapq.heappush(self._events, (self.now + delay, self._sequence, what))

    def run(self, duration: int) -> None:
        """Run for `duration` ms."""
        self.run_until(lambda: False, duration)

    def run_until(self, enough: Callable[[], bool], most: int) -> bool:
        """Run until `enough()` holds, for at most `most` ms. Returns whether it holds."""
        end = self.now + most
        while not enough():
            if not self._events or self._events[0][0] > end:
                self.now = end
                return enough()
            self.next()
        return True

    def next(self) -> None:
        """Run the next action."""
        self.now, _, what = heapq.heappop(self._events)
        what()

    @property
    def next_at(self) -> int | None:
        """The time of the next action, or `None` if there is none."""
        return self._events[0][0] if self._events else None

    def chance(self, thousandths: int) -> bool:
        """Draw whether something happens, at a rate in thousandths."""
        return bool(thousandths) and self.random.randrange(1000) < thousandths

    def record(self, *words: object) -> None:
        """Add what happened to the digest."""
        self._hash.update(f"{self.now} {words!r}\n".encode())

    def digest(self) -> str:
        """One hash over all that happened; equal stories have equal digests."""
        return "0x" + self._hash.hexdigest()

"""How everything here is measured: work and what it is compared with, in turns, in CPU time.

A ratio is the median over such pairs. Both halves of a pair meet the same neighbours on the machine, so a ratio means
something on a shared one, where milliseconds do not.
"""

import gc
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from statistics import median
from time import process_time
from typing import Final

from pubsub_emulator.trie import step

PURE: Final = step.__file__.endswith(".py")
"""Whether the project measured is the one in pure Python."""

Work = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table: milliseconds of CPU time, and `ratio` to `base`, with the most that it may be."""

    name: str
    base: str
    milliseconds: float
    base_milliseconds: float
    ratio: float
    target: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Race:
    """Some work, and what it is compared with."""

    name: str
    work: Work
    base: str
    against: Work
    pairs: int
    target: float | None = None
    note: str = ""
    compiled_target: float | None = None
    """What the ratio may be in the compiled build."""

    def run(self) -> Result:
        """Run the pairs. Objects made before are frozen, so that no garbage collection in between visits them."""
        gc.collect()
        gc.freeze()
        times: list[float] = []
        bases: list[float] = []
        for _ in range(self.pairs):
            # Always in this order: each then starts with the caches that the other left, never with its own.
            for work, taken in ((self.work, times), (self.against, bases)):
                start = process_time()
                work()
                taken.append(process_time() - start)
        gc.unfreeze()
        ratio = median(time / base for time, base in zip(times, bases, strict=True))
        target = self.target if PURE else self.compiled_target
        return Result(self.name, self.base, median(times) * 1e3, median(bases) * 1e3, ratio, target, self.note)


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def hashing(nodes: Iterable[bytes]) -> Work:
    """The floor: one copied blake2b-256 object for each node, fed and asked for its digest; nothing else."""
    listed = list(nodes)

    def hash_all() -> None:
        copy = blake2b(digest_size=32).copy
        for node in listed:
            hasher = copy()
            hasher.update(node)
            hasher.digest()

    return hash_all

"""How everything here is measured: work and what it is compared with, in turns, in CPU time.

A ratio is the median over such pairs. Both halves of a pair meet the same neighbours on the
machine, so a ratio means something on a shared one, where milliseconds do not.
"""

import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from statistics import median
from time import process_time
from types import CodeType, FrameType
from typing import Any, Final, Self

from pubsub_emulator.trie import step

PURE: Final = step.__file__.endswith(
    ".py"
)  # whether the project measured is the one in pure Python

Work = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table: milliseconds of CPU time, and the ratio to `base` with its maximum."""

    name: str
    base: str
    milliseconds: float
    base_milliseconds: float
    ratio: float
    target: float | None = None
    note: str = ""

    @classmethod
    def of(cls, name: str, base: str, pairs: Sequence[tuple[float, float]], *more: Any) -> Self:
        """The medians of pairs of CPU seconds; `more` from `target` on."""
        work, against = (median(seconds) * 1e3 for seconds in zip(*pairs, strict=True))
        return cls(name, base, work, against, median(mine / other for mine, other in pairs), *more)


@dataclass(frozen=True, slots=True)
class Race:
    """Some work, and what it is compared with."""

    name: str
    work: Work
    base: str
    against: Work
    pairs: int
    target: float | None = None
    compiled_target: float | None = None  # what the ratio may be in the compiled build
    note: str = ""

    def run(self) -> Result:
        """Run the pairs.

        Objects made before are frozen, so that no garbage collection in between visits them.
        """
        gc.collect()
        gc.freeze()
        taken = [self.pair() for _ in range(self.pairs)]
        gc.unfreeze()
        return Result.of(
            self.name, self.base, taken, self.target if PURE else self.compiled_target, self.note
        )

    def pair(self) -> tuple[float, float]:
        """Run the work and then its base.

        The order is always the same: each starts with the caches that the other left, never with
        its own.
        """
        return timed(self.work), timed(self.against)


def instructions(work: Work) -> Counter[CodeType]:
    """Return the bytecode instructions of some work by function, the work done once before.

    They repeat to the last digit, also on a busy machine. Work in C counts as one call.
    """
    work()
    found: Counter[CodeType] = Counter()

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        found[frame.f_code] += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)
    return found


def timed(work: Work) -> float:
    """CPU seconds of one run."""
    start = process_time()
    work()
    return process_time() - start


def processes(root: int) -> dict[int, list[str]]:
    """A process and all below it, each with its line of `/proc/PID/stat` from the state on."""
    found: dict[int, list[str]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it ended while it was looked at
            found[int(stat.parent.name)] = (
                stat.read_text(encoding="utf-8").rpartition(")")[2].split()
            )
    mine = [root]
    for each in mine:  # grows as it is gone through
        mine += [process for process, fields in found.items() if int(fields[1]) == each]
    return {process: found[process] for process in mine if process in found}


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf(
        "SC_PAGE_SIZE"
    )


def hashing(nodes: Iterable[bytes]) -> Work:
    """Return the floor: for each node, a copied blake2b-256 object is fed and its digest taken."""
    listed = list(nodes)

    def hash_all() -> None:
        copy = blake2b(digest_size=32).copy
        for node in listed:
            hasher = copy()
            hasher.update(node)
            hasher.digest()

    return hash_all

"""Measure work and other work with which it is compared, in turns, by CPU time.

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

PURE: Final = step.__file__.endswith(".py")
"""Whether the measured project is the one in pure Python."""

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
        """Return the result of pairs of CPU seconds: of the work, and of its base.

        `more` are the fields from `target` on.
        """
        work, against = (median(seconds) * 1e3 for seconds in zip(*pairs, strict=True))
        return cls(name, base, work, against, median(mine / other for mine, other in pairs), *more)


@dataclass(frozen=True, slots=True)
class Race:
    """Some work, and other work with which it is compared."""

    name: str
    work: Work
    base: str
    against: Work
    pairs: int
    target: float | None = None
    compiled_target: float | None = None
    """The greatest ratio allowed in the compiled build."""
    note: str = ""

    def run(self) -> Result:
        """Run the pairs.

        Objects that exist already are frozen, so that no garbage collection visits them between
        runs.
        """
        gc.collect()
        gc.freeze()
        taken = [self.pair() for _ in range(self.pairs)]
        gc.unfreeze()
        return Result.of(
            self.name, self.base, taken, self.target if PURE else self.compiled_target, self.note
        )

    def pair(self) -> tuple[float, float]:
        """Run the work and then its base, and return the CPU seconds of both.

        The order never changes: each of them starts with the caches that the other one left.
        """
        return timed(self.work), timed(self.against)


def instructions(work: Work) -> Counter[CodeType]:
    """Return the number of bytecode instructions of some work, by function.

    The work is done once before it is counted. The numbers are exactly the same in every run, also
    on a busy machine. A call of a function in C counts as one instruction.
    """
    work()
    counts: Counter[CodeType] = Counter()

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        counts[frame.f_code] += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)
    return counts


def timed(work: Work) -> float:
    """Run some work once and return the CPU seconds."""
    start = process_time()
    work()
    return process_time() - start


def processes(root: int) -> dict[int, list[str]]:
    """Return a process and its descendants by process id.

    Each value has the fields of `/proc/PID/stat` from the state on.
    """
    running: dict[int, list[str]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        # A process may end at any time.
        with suppress(OSError):
            running[int(stat.parent.name)] = (
                stat.read_text(encoding="utf-8").rpartition(")")[2].split()
            )
    family = [root]
    # The list grows during the loop: the children of each process are appended.
    for parent in family:
        family += [process for process, fields in running.items() if int(fields[1]) == parent]
    return {process: running[process] for process in family if process in running}


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf(
        "SC_PAGE_SIZE"
    )


def hashing(nodes: Iterable[bytes]) -> Work:
    """Return work that only hashes nodes with BLAKE2b-256, in the fastest way that Python allows.

    It is the floor of reading and writing them.
    """
    listed = list(nodes)

    def hash_all() -> None:
        copy = blake2b(digest_size=32).copy
        for node in listed:
            hasher = copy()
            hasher.update(node)
            hasher.digest()

    return hash_all

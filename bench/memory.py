"""Measure the memory of a command and all its children: `python -m bench.memory COMMAND`.

For example `python -m bench.memory pubsub audit HISTORY --out OUT`. Every 0.3 seconds the `Pss` of
all processes is added up, so that shared memory counts once. Linux only.
"""

import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from bench.measure import processes

EVERY: Final = 0.3
MIB: Final = 1024


def share(pid: int) -> int:
    """Return the memory of a process in KiB, with its part of shared memory.

    It is 0 for a process that has ended.
    """
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


if __name__ == "__main__":
    running = subprocess.Popen(sys.argv[1:])  # noqa: S603  # the user gives the command
    most = 0
    then = [0]
    peaks: dict[int, int] = {}
    while running.poll() is None:
        now = {pid: share(pid) for pid in processes(running.pid)}
        peaks |= {pid: max(size, peaks.get(pid, 0)) for pid, size in now.items()}
        if sum(now.values()) > most:
            then = list(now.values())
            most = sum(then)
        time.sleep(EVERY)
    largest = sorted(peaks.values(), reverse=True)[:4]
    print(f"peak {most // MIB} MiB: {' + '.join(str(size // MIB) for size in then)}")  # a tool
    print(f"largest processes: {', '.join(f'{size // MIB} MiB' for size in largest)}")  # a tool
    sys.exit(running.returncode)

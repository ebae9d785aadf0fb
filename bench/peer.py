"""The peer: smoldot, compiled to wasm, as the npm package @acala-network/chopsticks-executor brings it.

It is raced only where Node.js and npm are there; the package is installed into build/peer at the first race. Each side
is timed by its own process, CPU time, in turns. What crosses between the two is not timed.
"""

import gc
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, Final

from bench.measure import PURE, Result
from bench.tries import Entries, N, reading, uniform
from pubsub_emulator.trie import Trie, state_root

HERE: Final = Path(__file__).resolve().parent
PLACE: Final = HERE.parent / "build" / "peer"
PACKAGE: Final = "@acala-network/chopsticks-executor"
VERSION: Final = "1.5.1"
NAME: Final = "smoldot wasm"


def installed() -> bool:
    """Whether the peer can be raced; installs it where that is possible."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        print("no Node.js here: the peer is not raced", file=sys.stderr)
        return False
    if not (PLACE / "node_modules" / PACKAGE).is_dir():
        PLACE.mkdir(parents=True, exist_ok=True)
        command = [npm, "install", "--prefix", str(PLACE), "--no-audit", "--no-fund", f"{PACKAGE}@{VERSION}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # found above
        if done.returncode != 0:
            print(f"the peer cannot be installed: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
            return False
    return True


class Peer:
    """A running peer."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603  # our own script
            [shutil.which("node") or "node", str(HERE / "peer.mjs"), str(PLACE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def give(self, **what: Any) -> None:
        """Hand over what the next runs work on."""
        if self._process.stdin is None:
            raise RuntimeError("the peer has no input")
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()

    def run(self, what: str) -> tuple[float, Any]:
        """Seconds of CPU time, and the answer."""
        self.give(run=what)
        line = self._process.stdout.readline() if self._process.stdout is not None else ""
        if not line:
            raise RuntimeError("the peer has ended")
        said = json.loads(line)
        return said["ms"] / 1e3, said["answer"]

    def end(self) -> None:
        """Stop it."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()


@dataclass(frozen=True, slots=True)
class PeerRace:
    """Our `work` beside the peer's `what`, in turns of a few `runs`, whose median counts.

    The other process has emptied the caches.
    """

    name: str
    peer: Peer
    what: str
    work: Callable[[], object]
    pairs: int
    target: float
    runs: int = 1

    def run(self) -> Result:
        """Run the pairs; first runs, in which code is compiled and memory fetched, do not count."""
        for _ in range(1 + self.runs):
            self.work()
            self.peer.run(self.what)
        gc.collect()
        gc.freeze()
        times: list[float] = []
        bases: list[float] = []
        for _ in range(self.pairs):
            times.append(median(self.timed() for _ in range(self.runs)))
            bases.append(median(self.peer.run(self.what)[0] for _ in range(self.runs)))
        gc.unfreeze()
        ratio = median(time / base for time, base in zip(times, bases, strict=True))
        target = self.target if PURE else None
        return Result(self.name, NAME, median(times) * 1e3, median(bases) * 1e3, ratio, target)

    def timed(self) -> float:
        """Seconds of CPU time of our work."""
        start = process_time()
        self.work()
        return process_time() - start


def races() -> Iterator[PeerRace]:
    """W1 and W4; nothing where the peer is not."""
    if not installed():
        return
    with on_one_core():
        peer = Peer()
        try:
            yield from _races(peer)
        finally:
            peer.end()


@contextmanager
def on_one_core() -> Iterator[None]:
    """Both processes on one core, where that can be said: cores that others use too are not equally fast."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def _races(peer: Peer) -> Iterator[PeerRace]:
    peer.give(entries=hexed(uniform(N)))
    entries = uniform(N)  # made anew: what stood around the hex digits is gone
    root = state_root(entries)
    if peer.run("root")[1] != "0x" + root.hex():
        raise RuntimeError("the peer comes to another root")
    yield PeerRace(f"W1 root of {N:,}, uniform", peer, "root", lambda: state_root(entries), 5, 0.10, runs=3)
    keys = [key for key, _ in random.Random(163).sample(entries, 1_000)]
    nodes: dict[bytes, bytes] = {}
    Trie.from_entries(entries).prove(keys, nodes)  # type: ignore[arg-type]  # hashes are bytes
    # As a proof comes off a wire, one node after the other in memory, and nothing left of the trie around them.
    listed = [bytes(bytearray(node)) for node in sorted(nodes.values())]
    del nodes
    peer.give(entries=[], root_hash="0x" + root.hex(), nodes=["0x" + node.hex() for node in listed])
    if peer.run("read")[1] < len(keys):
        raise RuntimeError("the peer reads fewer keys")
    work = reading(root, listed, keys)
    yield PeerRace("W4 read 1,000 keys, uniform", peer, "read", work, 9, 0.25, runs=9)


def hexed(entries: Entries) -> list[list[str]]:
    """Entries as the peer takes them."""
    return [["0x" + key.hex(), "0x" + value.hex()] for key, value in entries]

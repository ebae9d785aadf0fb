"""The peers: smoldot, compiled to wasm, from an npm package, and native `sp-trie`, built by cargo.

A peer is raced only if its tools are installed: Node.js and npm, which install the package into
build/peer at the first race, or cargo, which builds interop/rust. Each side measures its own CPU
time, and the two take turns. The communication between them is not timed.
"""

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
from typing import Any, Final

from bench.measure import Race, Result, Work, timed
from bench.tries import (
    UPDATES,
    Entries,
    N,
    proving,
    reading,
    uniform,
    update,
    updates_of,
    updating_in_turns,
)
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.trie import Trie, state_root

HERE: Final = Path(__file__).resolve().parent
PLACE: Final = HERE.parent / "build" / "peer"
PACKAGE: Final = "@acala-network/chopsticks-executor"
VERSION: Final = "1.5.1"
NAME: Final = "smoldot wasm"
MANIFEST: Final = HERE.parent / "interop" / "rust" / "Cargo.toml"
NATIVE: Final = "native sp-trie"


def installed() -> bool:
    """Return whether the peer can be raced. Install it if that is possible."""
    node = shutil.which("node")
    npm = shutil.which("npm")
    if node is None or npm is None:
        print("no Node.js here: the peer is not raced", file=sys.stderr)
        return False
    if not (PLACE / "node_modules" / PACKAGE).is_dir():
        PLACE.mkdir(parents=True, exist_ok=True)
        command = [
            npm,
            "install",
            "--prefix",
            str(PLACE),
            "--no-audit",
            "--no-fund",
            f"{PACKAGE}@{VERSION}",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # a program on the path
        if done.returncode != 0:
            print(
                f"the peer cannot be installed: {done.stderr.strip().splitlines()[-1:]}",
                file=sys.stderr,
            )
            return False
    return True


class Peer:
    """A running peer."""

    def __init__(self, name: str, *command: str) -> None:
        self.name = name
        self._process = subprocess.Popen(  # noqa: S603  # our own programs
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def give(self, **data: Any) -> None:
        """Send data for the next runs."""
        if self._process.stdin is None:
            raise RuntimeError("the peer has no input")
        self._process.stdin.write(json.dumps(data) + "\n")
        self._process.stdin.flush()

    def run(self, task: str) -> tuple[float, Any]:
        """Run a task of the peer by name, and return its CPU seconds and its answer.

        Raises `RuntimeError` if the peer has ended.
        """
        self.give(run=task)
        line = self._process.stdout.readline() if self._process.stdout is not None else ""
        if not line:
            raise RuntimeError("the peer has ended")
        answer = json.loads(line)
        return answer["ms"] / 1e3, answer["answer"]

    def race(  # noqa: PLR0917  # the fields of a race
        self,
        name: str,
        task: str,
        work: Work,
        pairs: int,
        target: float,
        compiled: float | None = None,
        *,
        runs: int,
    ) -> "PeerRace":
        """Return a race of our work against a task of the peer."""
        return PeerRace(
            name,
            work,
            base=self.name,
            against=lambda: self.run(task)[0],
            pairs=pairs,
            target=target,
            compiled_target=compiled,
            runs=runs,
        )

    def end(self) -> None:
        """Stop the peer."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()


@dataclass(frozen=True)
class PeerRace(Race):
    """A race against a peer, which reports its own seconds.

    Each figure is the median of a few `runs`, because the other side has emptied the caches.
    """

    against: Callable[[], float]
    runs: int = 1

    def run(self) -> Result:
        """Run the pairs after some runs that do not count.

        In these first runs, code is compiled and memory is allocated.
        """
        for _ in range(1 + self.runs):
            self.work()
            self.against()
        return super().run()

    def pair(self) -> tuple[float, float]:
        """Return the median CPU seconds of a few runs of both sides."""
        runs = range(self.runs)
        return median(timed(self.work) for _ in runs), median(self.against() for _ in runs)


def native_built() -> Path | None:
    """Build the native peer and return its program, `None` if that is not possible."""
    cargo = shutil.which("cargo")
    if cargo is None:
        print("no cargo here: the native peer is not raced", file=sys.stderr)
        return None
    command = [
        cargo,
        "build",
        "--release",
        "--quiet",
        "--package",
        "peer",
        "--manifest-path",
        str(MANIFEST),
    ]
    if subprocess.run(command, check=False).returncode:  # noqa: S603  # a program on the path
        print("the native peer cannot be built", file=sys.stderr)
        return None
    return Path(os.environ.get("CARGO_TARGET_DIR", MANIFEST.parent / "target")) / "release" / "peer"


def races() -> Iterator[PeerRace]:
    """Yield races of W1 and W4 against smoldot, and of W1 to W4 against native tries.

    A peer that is not available is left out.
    """
    if installed():
        yield from _with(
            Peer(NAME, shutil.which("node") or "node", str(HERE / "peer.mjs"), str(PLACE)), _races
        )
    native = native_built()
    if native is not None:
        yield from _with(Peer(NATIVE, str(native)), _native_races)


def _with(peer: Peer, make: Callable[[Peer], Iterator[PeerRace]]) -> Iterator[PeerRace]:
    """Yield the races that `make` returns, with both processes on one core, then stop the peer."""
    with on_one_core():
        try:
            yield from make(peer)
        finally:
            peer.end()


@contextmanager
def on_one_core() -> Iterator[None]:
    """Keep both processes on one core, where the platform allows it.

    Cores that are shared with other programs are not equally fast.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def _given(peer: Peer) -> tuple[Entries, Hash]:
    """Give entries to a peer, and return them with their root.

    Raises `RuntimeError` if the peer's root differs.
    """
    peer.give(entries=hexed(uniform(N)))
    # The entries are made again, so that the hexadecimal strings are not in the memory among them.
    entries = uniform(N)
    root = state_root(entries)
    if peer.run("root")[1] != "0x" + root.hex():
        raise RuntimeError(f"{peer.name} comes to another root")
    return entries, root


def _races(peer: Peer) -> Iterator[PeerRace]:
    entries, root = _given(peer)
    yield peer.race(
        f"W1 root of {N:,}, uniform", "root", lambda: state_root(entries), 5, 0.10, runs=3
    )
    keys = [key for key, _ in random.Random(163).sample(entries, 1_000)]
    nodes: dict[Hash, bytes] = {}
    Trie.from_entries(entries).prove(keys, nodes)
    # The nodes are copied, so that they lie in memory like a received proof: one after the other,
    # without the rest of the trie among them.
    listed = [bytes(bytearray(node)) for node in sorted(nodes.values())]
    del nodes
    peer.give(entries=[], root_hash="0x" + root.hex(), nodes=["0x" + node.hex() for node in listed])
    if peer.run("read")[1] < len(keys):
        raise RuntimeError("the peer reads fewer keys")
    yield peer.race(
        "W4 read 1,000 keys, uniform", "read", reading(root, listed, keys), 9, 0.25, runs=9
    )


def _native_races(peer: Peer) -> Iterator[PeerRace]:
    entries, root = _given(peer)
    yield peer.race(
        f"W1 root of {N:,}, uniform", "root", lambda: state_root(entries), 5, 2.0, 1.0, runs=3
    )
    rng = random.Random(162)
    updates = updates_of(rng.choices(entries, k=UPDATES), rng)
    peer.give(updates=hexed(updates))
    trie = Trie.from_entries(entries)
    changed = update(trie.fork(), updates)
    if peer.run("update")[1] != "0x" + changed.root().hex():
        raise RuntimeError("the native peer comes to another root after the updates")
    work = updating_in_turns(changed, [updates_of(updates, rng) for _ in range(8)])
    yield peer.race(f"W2 {UPDATES} updates in place, uniform", "update", work, 9, 1.2, 0.6, runs=9)
    keys = [key for key, _ in random.Random(163).sample(entries, 1_000)]
    peer.give(entries=hexed(entries), keys=["0x" + key.hex() for key in keys])
    yield peer.race(
        "W3 prove 1,000 keys, uniform", "prove", proving(trie, keys), 9, 1.2, 0.6, runs=9
    )
    nodes: dict[Hash, bytes] = {}
    trie.prove(keys, nodes)
    listed = [bytes(bytearray(node)) for node in sorted(nodes.values())]
    if peer.run("prove")[1] != len(listed):
        raise RuntimeError("the native peer proves with other nodes")
    peer.give(root_hash="0x" + root.hex(), nodes=["0x" + node.hex() for node in listed])
    if peer.run("read")[1] != len(keys):
        raise RuntimeError("the native peer reads fewer keys")
    yield peer.race(
        "W4 read 1,000 keys, uniform", "read", reading(root, listed, keys), 9, 1.2, 0.6, runs=9
    )


def hexed(entries: Entries) -> list[list[str]]:
    """Return entries in the form that the peer reads: pairs of hexadecimal strings."""
    return [["0x" + key.hex(), "0x" + value.hex()] for key, value in entries]

"""Four trie workloads, each as a ratio to the hashing that it cannot avoid.

W1  state root of n entries (32-byte keys, 64-byte values)
W2  100 updates to a trie of n entries, and its new root: in place, and on a fork that copies what it writes
W3  proof of k keys from that trie
W4  opening that proof and reading the keys

The floor is the time that copied blake2b objects take over exactly the nodes and values that the workload hashes (W3
hashes nothing; it is measured against the same proof as W4). Work and floor alternate; medians of CPU time.

    python bench/trie_speed.py [--rounds 9] [--n 100000] [--k 1000]
"""

import argparse
import gc
import random
from collections.abc import Callable, Iterable
from hashlib import blake2b
from statistics import median
from time import process_time

from primitives.types import Hash
from trie import Trie, read_proof, state_root


def main() -> None:
    """Print one line per workload."""
    parser = argparse.ArgumentParser(description="trie workloads as ratios to hashing alone")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--k", type=int, default=1_000)
    given = parser.parse_args()
    rng = random.Random(160)
    entries = [(rng.randbytes(32), rng.randbytes(64)) for _ in range(given.n)]
    print(f"{given.n} entries, {given.k} keys proven, medians of {given.rounds}")

    trie = Trie.from_entries(entries)
    trie.root()
    nodes: dict[Hash, bytes] = {}
    trie.prove((key for key, _ in entries), nodes)
    # Without the trie beside it, as a bulk root is meant to be taken.
    del trie
    print(_line("W1 state root", *_race(lambda: state_root(entries), list(nodes.values()), given.rounds)))

    trie = Trie.from_entries(entries)
    root = trie.root()
    updates = [(rng.choice(entries)[0], rng.randbytes(64)) for _ in range(100)]
    after = trie.fork()
    for key, value in updates:
        after.insert(key, value)
    after.root()
    touched: dict[Hash, bytes] = {}
    after.prove((key for key, _ in updates), touched)
    fresh = [node for name, node in touched.items() if name not in nodes]
    del nodes

    def update(target: Trie) -> None:
        for key, value in updates:
            target.insert(key, value)
        target.root()

    print(_line("W2 in place", *_race(lambda: update(after), fresh, given.rounds * 5)))
    print(_line("W2 on a fork", *_race(lambda: update(trie.fork()), fresh, given.rounds * 5)))

    asked = rng.sample([key for key, _ in entries], given.k)

    def prove() -> None:
        trie.prove(asked, {})

    proof: dict[Hash, bytes] = {}
    trie.prove(asked, proof)
    listed = sorted(proof.values())
    print(_line("W3 prove", *_race(prove, listed, given.rounds * 3)))
    print(_line("W4 read proof", *_race(lambda: read_proof(root, listed, asked), listed, given.rounds * 3)))


def _race(work: Callable[[], object], hashed: list[bytes], rounds: int) -> tuple[float, float, int]:
    """Median seconds of `work` and of hashing `hashed`, run in turns; and how many hashes that is."""
    times: list[float] = []
    floors: list[float] = []
    for _ in range(rounds):
        gc.collect()
        start = process_time()
        work()
        times.append(process_time() - start)
        start = process_time()
        _hash_all(hashed)
        floors.append(process_time() - start)
    return median(times), median(floors), len(hashed)


def _hash_all(nodes: Iterable[bytes]) -> None:
    copy = blake2b(digest_size=32).copy
    for node in nodes:
        hasher = copy()
        hasher.update(node)
        hasher.digest()


def _line(name: str, seconds: float, floor: float, hashes: int) -> str:
    ratio = seconds / floor
    return f"{name:16}{seconds * 1e3:9.2f} ms  floor {floor * 1e3:8.2f} ms ({hashes} hashes)  ratio {ratio:5.2f}"


if __name__ == "__main__":
    main()

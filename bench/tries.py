"""W1 to W4: a trie's root, a block of updates, a proof, and reading that proof."""

import random
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import cycle
from typing import Final

from bench.measure import Race, Work, hashing
from pubsub_emulator.primitives.hashing import blake2_128_concat, twox64_concat
from pubsub_emulator.primitives.storage_keys import item_prefix
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.trie import Trie, read_proof, state_root

Entries = list[tuple[bytes, bytes]]

N: Final = 100_000
UPDATES: Final = 100


def uniform(count: int) -> Entries:
    """Return entries with random keys of 32 bytes and values of 64 bytes."""
    rng = random.Random(160)
    return [(rng.randbytes(32), rng.randbytes(64)) for _ in range(count)]


def storage_like(count: int) -> Entries:
    """Return entries like those of a chain's state: 32 shared bytes, then hashed keys.

    The keys have 8 to 60 more bytes, the values 1 to 200. Half are accounts, a quarter maps by
    number, a fifth double maps, the rest single values.
    """
    rng = random.Random(161)
    items = [item_prefix(f"Pallet{i // 8}", f"Item{i}") for i in range(64)]
    table: dict[bytes, bytes] = {}
    while len(table) < count:
        kind = rng.random()
        if kind < 0.5:
            key = item_prefix("System", "Account") + blake2_128_concat(rng.randbytes(32))
            value = rng.randbytes(80)
        elif kind < 0.75:
            key = items[rng.randrange(24)] + twox64_concat(
                rng.randrange(1 << 20).to_bytes(4, "little")
            )
            value = rng.randbytes(rng.choice((4, 16, 36)))
        elif kind < 0.95:
            first = twox64_concat(rng.randrange(64).to_bytes(4, "little"))
            key = (
                items[24 + rng.randrange(24)]
                + first
                + blake2_128_concat(rng.randbytes(rng.choice((4, 32))))
            )
            value = rng.randbytes(rng.randrange(8, 120))
        else:
            key = items[48 + rng.randrange(16)] + rng.randbytes(8)
            value = rng.randbytes(rng.choice((1, 4, 32, 200)))
        table[key] = value
    listed = list(table.items())
    rng.shuffle(listed)
    return listed


KINDS: Final = {"uniform": uniform, "storage-like": storage_like}


def races() -> Iterator[Race]:
    """Yield all races.

    A big trie exists only while its own races run.
    """
    for kind, make in KINDS.items():
        goal = kind == "uniform"
        for count in (1_000, 10_000, N):
            entries = make(count)
            nodes: dict[Hash, bytes] = {}
            Trie.from_entries(entries).prove((key for key, _ in entries), nodes)
            pairs = min(max(9, 100_000 // count), 60)
            goals = (2.5, 1.5) if goal and count == N else ()
            name = f"W1 root of {count:,}, {kind}"
            floor = hashing(nodes.values())
            yield Race(name, partial(state_root, entries), "hashing", floor, pairs, *goals)
        entries = make(N)
        yield from _updates(kind, entries, goal=goal)
        yield from _proofs(kind, entries, goal=goal)


def updates_of(chosen: Entries, rng: random.Random) -> Entries:
    """Return updates of entries: new values of the same lengths."""
    return [(key, rng.randbytes(len(value))) for key, value in chosen]


def fresh_nodes(before: Trie, after: Trie, updates: Entries) -> list[bytes]:
    """Return the nodes and values on the paths of `updates` that `after` has and `before` lacks.

    They are what W2 must hash.
    """
    old: dict[Hash, bytes] = {}
    new: dict[Hash, bytes] = {}
    before.prove((key for key, _ in updates), old)
    after.prove((key for key, _ in updates), new)
    return [node for name, node in new.items() if name not in old]


def update(trie: Trie, updates: Iterable[tuple[bytes, bytes]]) -> Trie:
    """Insert entries, compute the root, and return the trie."""
    for key, value in updates:
        trie.insert(key, value)
    trie.root()
    return trie


def _updates(kind: str, entries: Entries, *, goal: bool) -> Iterator[Race]:
    rng = random.Random(162)
    trie = Trie.from_entries(entries)
    trie.root()
    # Each round updates the same keys, so that it hashes the same number of nodes.
    chosen = rng.choices(entries, k=UPDATES)
    rounds = [updates_of(chosen, rng) for _ in range(8)]
    changed = update(trie.fork(), rounds[0])
    floor = hashing(fresh_nodes(trie, changed, rounds[0]))
    goals = (3.5, 2.0) if goal else ()
    name = f"W2 {UPDATES} updates"
    yield Race(
        f"{name} in place, {kind}",
        updating_in_turns(changed, rounds),
        "hashing",
        floor,
        101,
        *goals,
    )
    yield Race(
        f"{name} on a fork, {kind}",
        lambda: update(trie.fork(), rounds[0]),
        "hashing",
        floor,
        101,
        *goals,
    )


def updating_in_turns(trie: Trie, rounds: list[Entries]) -> Work:
    """Return work that updates the same keys with other values each time."""
    turns = cycle((*rounds[1:], rounds[0]))
    return lambda: update(trie, next(turns))


def _proofs(kind: str, entries: Entries, *, goal: bool) -> Iterator[Race]:
    rng = random.Random(163)
    trie = Trie.from_entries(entries)
    root = trie.root()
    for count in (100, 1_000):
        keys = [key for key, _ in rng.sample(entries, count)]
        proof: dict[Hash, bytes] = {}
        trie.prove(keys, proof)
        listed = sorted(proof.values())
        floor = hashing(listed)
        pairs = 101 if count == 100 else 51
        yield Race(f"W3 prove {count:,} keys, {kind}", proving(trie, keys), "hashing", floor, pairs)
        goals = (3.0, 2.0) if goal and count == 1_000 else ()
        yield Race(
            f"W4 read {count:,} keys, {kind}",
            reading(root, listed, keys),
            "hashing",
            floor,
            pairs,
            *goals,
        )


def proving(trie: Trie, keys: list[bytes]) -> Work:
    """Return the work of W3: prove keys."""
    return lambda: trie.prove(keys, {})


def reading(root: Hash, nodes: list[bytes], keys: list[bytes]) -> Work:
    """Return the work of W4: read keys from a proof."""
    return lambda: read_proof(root, nodes, keys)

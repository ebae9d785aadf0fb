"""Publishing at scale: one relay state with many publishers, bulk-loaded, then stepped block by block.

    python -m bench.publish_scale [--publishers 1000] [--keys 1000] [--finite 10] [--blocks 50]

Prints what the state takes in memory, and per block of `--publishes` publishes (updates and new keys of publishers in
turn, each in a storage layer of its own) the CPU time of the pallet and of committing: tries and state root.
"""

import argparse
import gc
import random
import time
from statistics import median

from bench.measure import resident
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import PublishedEntry
from pubsub_emulator.primitives.types import AccountId, ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.primitives.weights import WEIGHT_MAX
from pubsub_emulator.runtime.balances import Balances
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_pubsub import Broadcaster, Config, GenesisPublisher, TtlPolicy, genesis_rows

MANAGER = AccountId(b"\x01" * 32)
FIRST = 2000


class NoOwners:
    """A registrar without paras."""

    def owner_of(self, storage: Storage, para: ParaId) -> AccountId | None:  # noqa: ARG002  # a registrar's signature
        """Nobody owns anything."""
        return None


def key(para: int, index: int) -> PubsubKey:
    """A publisher's key by number."""
    return PubsubKey(blake2_256(para.to_bytes(4, "little") + index.to_bytes(4, "little")))


def publishers(count: int, keys: int, finite: int, size: int) -> dict[ParaId, GenesisPublisher]:
    """Registered publishers, every `finite`th entry with a finite TTL. Values differ, as real ones do."""

    def entries(para: int) -> list[tuple[PubsubKey, PublishedEntry]]:
        return [
            (
                key(para, i),
                PublishedEntry(
                    (para << 32 | i).to_bytes(size, "little"),
                    1_000_000 if finite and i % finite == 0 else 0,
                    RelayBlockNumber(0),
                ),
            )
            for i in range(keys)
        ]

    return {ParaId(FIRST + i): GenesisPublisher(entries(FIRST + i), MANAGER) for i in range(count)}


def main() -> None:
    """Load, step, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--publishers", type=int, default=1000)
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--finite", type=int, default=10, help="every n-th entry has a finite TTL; 0: none")
    parser.add_argument("--value", type=int, default=64, help="bytes of a value")
    parser.add_argument("--blocks", type=int, default=50)
    parser.add_argument("--publishes", type=int, default=100, help="per block")
    parser.add_argument("--policy", choices=[policy.value for policy in TtlPolicy], default="scan")
    given = parser.parse_args()
    config = Config(ttl_policy=TtlPolicy(given.policy), max_publishers=max(1000, given.publishers))
    pallet = Broadcaster(config, Balances(), NoOwners())
    pallet.integrity_test()
    total = given.publishers * given.keys

    gc.collect()
    before = resident()
    started = time.process_time()
    rows = genesis_rows(config, publishers(given.publishers, given.keys, given.finite, given.value))
    made = time.process_time()
    state = State.from_entries(*rows)
    storage = Storage(state)
    root = storage.commit()
    loaded = time.process_time()
    del rows
    gc.collect()
    used = resident() - before
    print(f"{given.publishers:,} publishers x {given.keys:,} keys of {given.value} bytes, policy {given.policy}")
    print(f"rows made in {made - started:.1f} s, tries and root in {loaded - made:.1f} s; root 0x{root.hex()}")
    print(f"memory: {used / 2**20:,.0f} MiB, {used / total:,.0f} bytes per key")

    gc.freeze()
    chooser = random.Random(160)
    paras = range(FIRST, FIRST + given.publishers)
    pallet_ms, commit_ms, idle_ms = [], [], []
    for number in range(1, given.blocks + 1):
        system.initialize(storage, number, root)
        system.note_extrinsic(storage, 0)
        messages = []
        for i in range(given.publishes):
            para, index = ParaId(chooser.choice(paras)), chooser.randrange(given.keys + given.keys // 100)
            ttl = 1_000_000 if given.finite and index % given.finite == 0 else 0
            messages.append((para, key(para, index), (number << 32 | i).to_bytes(given.value, "little"), ttl))
        start = time.process_time()
        for message in messages:
            with storage.transaction():
                pallet.publish(storage, *message)
        published = time.process_time()
        pallet.on_idle(storage, number, WEIGHT_MAX)
        swept = time.process_time()
        root = storage.commit()
        done = time.process_time()
        pallet_ms.append((published - start) * 1e3)
        idle_ms.append((swept - published) * 1e3)
        commit_ms.append((done - swept) * 1e3)
    each = median(pallet_ms) / given.publishes * 1e3
    print(
        f"a block of {given.publishes} publishes, median of {given.blocks}: pallet {median(pallet_ms):.2f} ms "
        f"({each:.1f} us each), sweep {median(idle_ms):.2f} ms, commit {median(commit_ms):.2f} ms"
    )
    print(f"root after block {given.blocks}: 0x{root.hex()}; now {(resident() - before) / total:,.0f} bytes per key")


if __name__ == "__main__":
    main()

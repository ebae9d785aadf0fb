"""Expiry lag by load and policy: how many blocks after its time an entry is removed.

    python -m bench.ttl [--keys 100000] [--blocks 200]

`steady n`: n entries come due in every block. Each removed entry is published again in the next
block, so the number of rows does not change. After one lap of the table, as many blocks are
measured as `--blocks` says.

`burst n`: n entries come due in one block, and all others live long. Blocks are measured until all
n entries are gone.
"""

import argparse
import gc
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import PublishedEntry
from pubsub_emulator.primitives.types import AccountId, ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.primitives.weights import WEIGHT_MAX
from pubsub_emulator.runtime.balances import Balances
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.framework.events import events
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_pubsub import (
    Broadcaster,
    Config,
    GenesisPublisher,
    TtlPolicy,
    genesis_rows,
)
from pubsub_emulator.runtime.pallet_pubsub.events import KeyExpired

VALUE = bytes(64)
PER_PUBLISHER = 1000
START = 1_000_000

Place = tuple[ParaId, PubsubKey]


class _NoOwners:
    """A registrar without paras."""

    def owner_of(self, storage: Storage, para: ParaId) -> AccountId | None:  # noqa: ARG002  # a registrar's signature
        return None


@dataclass
class Run:
    """One policy under one load."""

    pallet: Broadcaster
    storage: Storage
    expiry: dict[Place, int]

    def block(self, number: int, again: list[Place], ttl: int) -> list[Place]:
        """Publish `again`, sweep and commit. Return the entries that expired."""
        self.storage.log.clear()
        system.NUMBER.put(self.storage, number)
        for para, key in again:
            self.pallet.publish(self.storage, para, key, VALUE, ttl)
            self.expiry[para, key] = number + ttl
        self.storage.log.clear()
        self.pallet.on_idle(self.storage, number, WEIGHT_MAX)
        gone = [
            (event.publisher, event.key)
            for event in events(self.storage)
            if isinstance(event, KeyExpired)
        ]
        self.storage.commit()
        return gone


def places(count: int) -> Iterator[Place]:
    """Yield keys of system parachains, `PER_PUBLISHER` of each."""
    for i in range(count):
        yield ParaId(i // PER_PUBLISHER), PubsubKey(blake2_256(i.to_bytes(4, "little")))


def build(policy: TtlPolicy, ttls: dict[Place, int]) -> Run:
    """Return a relay state in which every place was published at block `START`, with its TTL."""
    config = Config(ttl_policy=policy)
    pallet = Broadcaster(config, Balances(), _NoOwners())
    pallet.integrity_test()
    entries: dict[ParaId, list[tuple[PubsubKey, PublishedEntry]]] = {}
    for (para, key), ttl in ttls.items():
        entries.setdefault(para, []).append(
            (key, PublishedEntry(VALUE, ttl, RelayBlockNumber(START)))
        )
    publishers = {para: GenesisPublisher(rows) for para, rows in entries.items()}
    storage = Storage(State.from_entries(*genesis_rows(config, publishers)))
    storage.commit()
    return Run(pallet, storage, {place: START + ttl for place, ttl in ttls.items()})


def steady(policy: TtlPolicy, keys: int, due: int, blocks: int) -> tuple[list[int], int, float]:
    """Measure a load in which `due` entries come due in every block.

    Returns the lags in blocks, the number of entries that still wait at the end, and CPU seconds
    per block.
    """
    ttl = keys // due
    run = build(policy, {place: 1 + i % ttl for i, place in enumerate(places(keys))})
    warm = -(-keys // run.pallet.config.max_ttl_scans_per_idle)
    lags: list[int] = []
    gone: list[Place] = []
    started = 0.0
    for number in range(START + 1, START + 1 + warm + blocks):
        if number == START + 1 + warm:
            started = time.process_time()
        gone = run.block(number, gone, ttl)
        if number > START + warm:
            lags += [number - run.expiry[place] for place in gone]
    waiting = sum(1 for expiry in run.expiry.values() if expiry <= number) - len(gone)
    return lags, waiting, (time.process_time() - started) / blocks


def burst(policy: TtlPolicy, keys: int, due: int) -> tuple[list[int], int, float]:
    """Measure `due` entries that come due in one block.

    Returns their lags in blocks, the number of entries left over, and CPU seconds per block. The
    number is always 0, because blocks are built until all entries are removed.
    """
    step = keys // due
    run = build(
        policy, {place: 1 if i % step == 0 else 10**6 for i, place in enumerate(places(keys))}
    )
    lags: list[int] = []
    started = time.process_time()
    number = START
    while len(lags) < due:
        number += 1
        lags += [number - START - 1 for _ in run.block(number, [], 0)]
    return lags, 0, (time.process_time() - started) / (number - START)


def row(name: str, policy: TtlPolicy, measured: tuple[list[int], int, float]) -> str:
    """Return a measurement as a line of the table."""
    lags, waiting, seconds = measured
    lags.sort()
    middle = lags[len(lags) // 2]
    late = lags[len(lags) * 99 // 100]
    shown = (
        f"{sum(lags) / len(lags):.1f} | {middle} | {late} | {lags[-1]} | {waiting:,} |"
        f" {seconds * 1e3:.0f}"
    )
    return f"| {name} | `{policy.value}` | {shown} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--blocks", type=int, default=200)
    given = parser.parse_args()
    print(f"{given.keys:,} keys with a finite TTL, 500 rows examined a block; lag in blocks\n")
    print("| due | policy | mean | median | 99 % | largest | waiting at the end | CPU ms a block |")
    print("|---|---|---|---|---|---|---|---|")
    for due, policy in product((50, 250, 500, 1000), TtlPolicy):
        print(
            row(f"{due} every block", policy, steady(policy, given.keys, due, given.blocks)),
            flush=True,
        )
        gc.collect()
    for due, policy in product((given.keys // 100, given.keys // 10, given.keys), TtlPolicy):
        print(row(f"{due:,} in one block", policy, burst(policy, given.keys, due)), flush=True)
        gc.collect()

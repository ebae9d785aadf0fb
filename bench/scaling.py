"""How cost grows: `python -m bench.scaling [--quick] [--plot DIR]`.

Each table varies one thing and holds the rest. Times are CPU time, the smallest of a few runs; what
matters is the last column: what one more key, publisher, byte or block costs, which stays flat or
grows as the depth of a trie does.
"""

import argparse
import gc
import os
import random
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from bench.chains import Relay, entry, image, key_of, subscriber
from bench.measure import resident, timed
from bench.tries import UPDATES, uniform, update, updates_of
from pubsub_emulator.cli.streams import prepare_streams
from pubsub_emulator.collator.author import Authored, RelayBlock, author
from pubsub_emulator.emulator.network import Network
from pubsub_emulator.primitives import babe
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.pubsub import derive_child_key, node_cost
from pubsub_emulator.primitives.types import Hash, ParaId, PubsubKey, RelayBlockNumber, Slot
from pubsub_emulator.runtime.framework.message_chains import NO_MESSAGES
from pubsub_emulator.runtime.framework.static_keys import fixed_keys
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber.config import CachePolicy, RuntimeSpec, runtime_spec
from pubsub_emulator.runtime.pallet_subscriber.meter import NodesByHash
from pubsub_emulator.runtime.pallet_subscriber.plan import Plan, plan
from pubsub_emulator.runtime.pallet_subscriber.view import SubscriberView
from pubsub_emulator.runtime.parachain.block import ChainHead
from pubsub_emulator.trie import Trie, read_proof, state_root

SEED: Final = bytes(range(32))
UNLIMITED: Final = 1 << 40
"""A budget that no walk reaches."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table in which one thing varies."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[float, ...]]
    flat: str
    """The name of the column with the cost of one more."""

    def markdown(self) -> str:
        """Return the table in Markdown."""
        head = "| " + " | ".join(self.columns) + " |\n|" + "---|" * len(self.columns)
        body = "\n".join("| " + " | ".join(map(shown, row)) + " |" for row in self.rows)
        return f"## {self.title}\n\n{head}\n{body}\n"


def shown(value: float) -> str:
    """Return a figure with three significant digits, or `-` for one that was not measured."""
    if value < 0:
        return "-"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def best(work: Callable[[], object], runs: int = 3) -> float:
    """Return the milliseconds of the fastest of some runs."""
    return min(timed(work) for _ in range(runs)) * 1e3


def in_a_child(work: Callable[[], Iterable[float]]) -> tuple[float, ...]:
    """Run `work` in a fork of this process and return its figures.

    The fork makes memory start from the same state each time.
    """
    read, write = os.pipe()
    if os.fork() == 0:
        os.close(read)
        code = 1
        try:
            os.write(write, " ".join(repr(float(value)) for value in work()).encode())
            code = 0
        except Exception:  # noqa: BLE001  # after any error, the fork must not continue as its parent
            traceback.print_exc()
        os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        output = answer.read().decode()
    if os.wait()[1]:
        raise RuntimeError("a measurement failed")
    return tuple(map(float, output.split()))


def by_keys(sizes: Iterable[int]) -> Table:
    """Measure larger and larger tries."""

    def measure(count: int) -> Iterator[float]:
        entries = uniform(count)
        gc.collect()
        gc.freeze()
        before = resident()
        trie = Trie.from_entries(entries)
        built = resident()
        trie.root()
        rooted = resident()
        gc.freeze()
        root = best(lambda: state_root(entries), 2)
        rng = random.Random(1)
        updates = updates_of(rng.choices(entries, k=UPDATES), rng)
        fork = best(lambda: update(trie.fork(), updates), 15)
        key = entries[0][0]
        get = best(lambda: [trie.get(key) for _ in range(1000)])
        yield from (
            count,
            root,
            1e3 * root / count,
            (built - before) / count,
            (rooted - before) / count,
            fork,
            get,
        )

    rows = [in_a_child(lambda count=count: measure(count)) for count in sizes]  # type: ignore[misc]  # bound at once
    sizes_of = ("root, ms", "µs a key", "bytes a key", "with encodings")
    columns = ("keys", *sizes_of, "100 updates on a fork, ms", "a read, µs")
    return Table("Keys of a trie", columns, rows, "µs a key")


def by_publishers(counts: Iterable[int]) -> Table:
    """Measure 100,000 keys among more and more publishers.

    Every block publishes 100 keys, of 100 publishers or of all if there are fewer.
    """
    rows: list[tuple[float, ...]] = []
    for count in counts:
        relay = Relay.make(count, 100_000)
        waiting, _ = relay.queue(100)
        digest = (babe.pre_digest(Slot(1)),)

        def block(waiting: State = waiting, relay: Relay = relay) -> None:
            relay.runtime.executive.build_block(
                Storage(waiting.fork()),
                1,
                Hash(bytes(32)),
                digest=digest,  # noqa: B023
            )

        gc.collect()
        gc.freeze()
        took = best(block, 7)
        rows.append((count, min(count, 100), took, 10 * took))
        gc.unfreeze()
    columns = ("publishers", "of them publishing", "block, ms", "µs a publish")
    return Table("Publishers, 100 publishes a block", columns, rows, "µs a publish")


def by_subscribed_keys(counts: Iterable[int]) -> Table:
    """Measure one publisher, all of whose keys are subscribed.

    In the first walk all keys are new, then one in a hundred has changed.
    """
    rows: list[tuple[float, ...]] = []
    for count in counts:
        keys = tuple(sorted(key_of(2_000, i) for i in range(count)))
        published = {key: entry(key, 1) for key in keys}
        spec, header, state = subscriber(CachePolicy.SLOTS, keys)
        relay = image(published)
        source: dict[Hash, bytes] = {}
        relay.prove(fixed_keys(spec.para_id), {derive_child_key(ParaId(2_000)): keys}, source)
        root = relay.root()

        def walk(
            spec: RuntimeSpec = spec,
            state: State = state,
            root: Hash = root,
            nodes: NodesByHash = source,
        ) -> Plan:
            return plan(SubscriberView(Storage(state.fork()), spec), root, nodes, UNLIMITED)

        size = sum(node_cost(len(node)) for node in walk().proof())
        first = best(walk, 3)
        later = (
            _one_in_a_hundred(header, state, published, keys) if count <= 10_000 else (-1.0, -1.0)
        )
        rows.append((count, size, first, 1e3 * first / count, *later))
    columns = (
        "subscribed keys",
        "first proof, bytes",
        "first walk, ms",
        "µs a key",
        "then 1 % changed: bytes",
        "ms",
    )
    return Table("Subscribed keys, policy slots", columns, rows, "µs a key")


def _one_in_a_hundred(
    header: Header, state: State, published: dict[PubsubKey, bytes], keys: tuple[PubsubKey, ...]
) -> tuple[float, float]:
    """Return the proof bytes and milliseconds of a walk in which one key in a hundred changed.

    All keys were delivered before.
    """
    number = 0
    while True:
        number += 1
        made = _next(header, state, number, published)
        header, state = made.candidate.header, made.outcome.state
        if made.outcome.plan.cursor is None:
            break
    for key in keys[:: max(1, min(100, len(keys)))]:
        published[key] = entry(key, number + 1)
    relay = image(published)
    taken = _next(header, state, number + 1, published).outcome.plan.taken
    runtime = runtime_spec(Storage(state.fork()))

    def walk() -> object:
        return plan(SubscriberView(Storage(state.fork()), runtime), relay.root(), taken, UNLIMITED)

    return sum(node_cost(len(node)) for node in taken.values()), best(walk, 5)


def _next(header: Header, state: State, number: int, published: dict[PubsubKey, bytes]) -> Authored:
    relay = RelayBlock(RelayBlockNumber(number), image(published))
    return author(ChainHead(header, state), relay, NO_MESSAGES, Slot(number), SEED)


def by_proof(counts: Iterable[int]) -> Table:
    """Measure larger and larger proofs from a trie of 100,000 keys.

    The largest has the size of a block's budget (8.9 MB).
    """
    entries = uniform(100_000)
    trie = Trie.from_entries(entries)
    root = trie.root()
    rows: list[tuple[float, ...]] = []
    for count in counts:
        keys = [key for key, _ in entries[:count]]
        proof: dict[Hash, bytes] = {}
        trie.prove(keys, proof)
        nodes = sorted(proof.values())
        size = sum(map(len, nodes))
        gc.freeze()
        prove = best(lambda: trie.prove(keys, {}))  # noqa: B023
        took = best(lambda: read_proof(root, nodes, keys))  # noqa: B023
        rows.append((count, len(nodes), size, prove, took, 1e6 * took / size))
        gc.unfreeze()
    columns = ("keys", "nodes", "bytes", "prove, ms", "read, ms", "ns a byte read")
    return Table("Size of a proof", columns, rows, "ns a byte read")


def by_length(lengths: Iterable[int]) -> Table:
    """Measure a network of one publisher and two subscribers over longer and longer runs."""
    keys = tuple(PubsubKey(blake2_256(b"%d" % i)) for i in range(64))
    network = Network.of(
        publishers=[1000], subscribers={2000 + index: {1000: keys} for index in range(2)}
    )
    rows: list[tuple[float, ...]] = []
    done = 0
    for length in lengths:
        took: list[float] = []
        while done < length:
            took.append(timed(lambda: _ten_blocks(network, keys, done)) * 100)  # noqa: B023
            done += 10
        rows.append((length, median(took), resident() / 2**20))
    return Table(
        "Length of a chain", ("relay blocks", "ms a block", "memory, MiB"), rows, "ms a block"
    )


def _ten_blocks(network: Network, keys: tuple[bytes, ...], done: int) -> None:
    for index in range(done, done + 10):
        network.publish(1000, keys[index % len(keys)], b"%d" % index * 8)  # type: ignore[arg-type]  # 32 bytes
        network.step()


def tables(*, quick: bool) -> Iterator[Table]:
    """Measure and yield all tables."""
    top = 5 if quick else 6
    yield by_keys([10**power for power in range(3, top + 1)])
    # This is measured early, while the process is still small.
    chain = by_length([50, 100] if quick else [100, 300, 600, 1_000])
    yield by_publishers([1, 10, 100] if quick else [1, 10, 100, 1_000])
    yield by_subscribed_keys(
        [10, 100, 1_000, 10_000] if quick else [10, 100, 1_000, 10_000, 100_000]
    )
    yield by_proof([100, 1_000, 5_000] if quick else [100, 1_000, 5_000, 10_000, 20_000])
    yield chain


def plot(table: Table, folder: Path) -> None:
    """Draw the column `flat` over the first column, as SVG.

    This needs altair and vl-convert.
    """
    import altair as alt  # noqa: PLC0415  # optional

    x = table.columns[0]
    column = table.columns.index(table.flat)
    data = alt.Data(values=[{x: row[0], "y": row[column]} for row in table.rows])  # type: ignore[no-untyped-call]
    chart = alt.Chart(data, title=table.title, width=320, height=180).mark_line(point=True)
    scale = alt.Scale(type="log")
    chart = chart.encode(alt.X(f"{x}:Q", scale=scale), alt.Y("y:Q", title=table.flat))
    chart.save(folder / (table.title.split(",")[0].replace(" ", "-").lower() + ".svg"))


if __name__ == "__main__":
    prepare_streams()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument(
        "--plot", type=Path, help="a folder for plots; needs altair and vl-convert-python"
    )
    given = parser.parse_args()
    for table in tables(quick=given.quick):
        print(table.markdown(), flush=True)
        if given.plot is not None:
            given.plot.mkdir(parents=True, exist_ok=True)
            plot(table, given.plot)

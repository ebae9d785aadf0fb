"""The largest sizes: `python -m bench.growth [TABLE ...] [--most N] [--trie N]`.

The tables are `keys`, `subscribed` and `parachains`. Each row runs in a process of its own and
measures CPU time once and resident memory, which is why this is apart from `scaling`. Memory is the
growth divided by the number of keys or parachains. `--most` leaves out larger rows of every table.
`--trie` is the largest number of keys that are made into a trie, which takes about 650 bytes per
key in addition to the entries.
"""

import argparse
import gc
import random
from collections.abc import Callable, Iterator
from time import process_time
from typing import Final

from bench.chains import SEED, entry, image, key_of, subscriber
from bench.measure import instructions as instructions_of
from bench.measure import resident, timed
from bench.scaling import in_a_child, shown
from bench.tries import UPDATES, update, updates_of
from pubsub_emulator.cli.streams import prepare_streams
from pubsub_emulator.collator.author import RelayBlock, author
from pubsub_emulator.emulator.network import Network
from pubsub_emulator.primitives.types import RelayBlockNumber, Slot
from pubsub_emulator.runtime.framework.message_chains import NO_MESSAGES
from pubsub_emulator.runtime.pallet_subscriber.config import CachePolicy
from pubsub_emulator.runtime.parachain.block import ChainHead
from pubsub_emulator.trie import Trie, state_root

TRIE_KEYS: Final = 3_000_000
"""The default of `--trie`. More keys in one trie take more than 3 GB."""
TRACED: Final = 1_000
"""The largest size whose instructions are counted, which takes twenty times as long."""
NOT_MEASURED: Final = -1.0
INSTRUCTIONS: Final = "instructions of a block, thousands"


def instructions(work: Callable[[], object], size: int) -> float:
    """Return the number of bytecode instructions of some work, in thousands.

    The second run is counted. Larger sizes than `TRACED` are not measured.
    """
    if size > TRACED:
        return NOT_MEASURED
    return instructions_of(work).total() / 1e3


def keys(count: int, most_in_a_trie: int) -> Iterator[float]:
    """Yield a row on a relay state of uniform keys with 64-byte values.

    First the root is computed in bulk. Then a trie that blocks can write to is built.
    """
    rng = random.Random(count)
    entries = [(key, key + key) for key in (rng.randbytes(32) for _ in range(count))]
    gc.collect()
    gc.freeze()
    before_entries = resident()
    root = timed(lambda: state_root(entries))
    yield from (count, root, 1e6 * root / count, (resident() - before_entries) / count)
    if count > most_in_a_trie:
        yield from (NOT_MEASURED, NOT_MEASURED)
        return
    before = resident()
    trie = Trie.from_entries(entries)
    trie.root()
    memory = (resident() - before) / count
    updates = updates_of(rng.choices(entries, k=UPDATES), rng)
    yield from (memory, 1e3 * min(timed(lambda: update(trie.fork(), updates)) for _ in range(9)))


def subscribed(count: int) -> Iterator[float]:
    """Yield a row on a parachain that subscribes to keys of one publisher.

    Blocks are built until all keys are delivered.
    """
    wanted = tuple(sorted(key_of(2_000, index) for index in range(count)))
    relay = RelayBlock(RelayBlockNumber(1), image({key: entry(key, 1) for key in wanted}))
    relay.state.root()
    _, header, state = subscriber(CachePolicy.SLOTS, wanted)
    head = ChainHead(header, state)
    steps = instructions(lambda: author(head, relay, NO_MESSAGES, Slot(1), SEED), count)
    gc.collect()
    gc.freeze()
    before = resident()
    blocks = 0
    delivered = 0
    spent = 0.0
    while delivered < count:
        blocks += 1
        start = process_time()
        authored = author(head, relay, NO_MESSAGES, Slot(blocks), SEED)
        spent += process_time() - start
        delivered += len(authored.outcome.deliveries)
        head = ChainHead(authored.candidate.header, authored.outcome.state)
        del authored
    gc.collect()
    yield from (
        count,
        blocks,
        1e3 * spent / blocks,
        1e6 * spent / count,
        (resident() - before) / count,
        steps,
    )


def parachains(count: int) -> Iterator[float]:
    """Yield a row on parachains that subscribe to the same eight keys.

    One of the keys changes in each relay block.
    """
    wanted = [key_of(1_000, index) for index in range(8)]
    before = resident()
    network = Network.of(
        publishers=[1_000], subscribers={2_000 + index: {1_000: wanted} for index in range(count)}
    )
    for key in wanted:
        network.publish(1_000, key, bytes(40))
    network.step(3)
    changing = iter(wanted)

    def block() -> None:
        network.publish(1_000, next(changing), b"%040d" % count)
        network.step()

    spent = min(timed(block) for _ in range(3))
    memory = (resident() - before) / count / 1024
    yield from (count, 1e3 * spent, 1e3 * spent / count, memory, instructions(block, count))


def rows(
    title: str, columns: tuple[str, ...], work: Callable[[int], Iterator[float]], sizes: list[int]
) -> None:
    """Measure and print a table row by row, since the last rows take minutes."""
    print(f"## {title}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)
    for size in sizes:
        row = in_a_child(lambda size=size: work(size))  # type: ignore[misc]
        print(f"| {' | '.join(map(shown, row))} |", flush=True)
    print()


def measure(names: list[str], most: int, most_in_a_trie: int) -> None:
    """Measure and print the tables with these names."""
    sizes = [
        size
        for size in (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 3_000_000, 10_000_000)
        if size <= most
    ]
    if "parachains" in names:
        columns: tuple[str, ...] = (
            "parachains",
            "relay block, ms",
            "ms a parachain",
            "KiB a parachain",
            INSTRUCTIONS,
        )
        rows("Parachains", columns, parachains, sizes[:4])
    if "subscribed" in names:
        columns = (
            "subscribed keys",
            "blocks",
            "ms a block",
            "µs a key",
            "bytes a key",
            INSTRUCTIONS,
        )
        rows("Subscribed keys, delivered", columns, subscribed, sizes[:6])
    if "keys" in names:
        columns = (
            "keys",
            "root, s",
            "µs a key",
            "bytes a key meanwhile",
            "bytes a key in a trie",
            "100 updates, ms",
        )
        rows("Keys of a relay state", columns, lambda count: keys(count, most_in_a_trie), sizes[5:])


if __name__ == "__main__":
    prepare_streams()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = ["parachains", "subscribed", "keys"]
    parser.add_argument(
        "tables", nargs="*", metavar="TABLE", help=f"of {', '.join(every)}; default: all"
    )
    parser.add_argument("--most", type=int, default=10_000_000, help="the largest size of a row")
    parser.add_argument("--trie", type=int, default=TRIE_KEYS, help="the most keys of a trie")
    given = parser.parse_args()
    unknown = [name for name in given.tables if name not in every]
    if unknown:
        parser.error(f"no table is called {unknown[0]}")
    measure(given.tables or every, given.most, given.trie)

"""Measure the memory of folding: `python -m bench.fold [BLOCKS ...]`.

A fold adds the measures of a network's blocks to the totals of its chains. The rows are drawn at
random, which is the worst case: nearly every value differs. Each row runs in a process of
its own. Half of the segments are folded first, and the other half on top of their state.
"""

import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from bench.scaling import in_a_child
from pubsub_emulator.cli.streams import prepare_streams
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.rows import empty_row
from pubsub_emulator.spark_audit.history.storage import Store, open_store
from pubsub_emulator.spark_audit.judge import results
from pubsub_emulator.spark_audit.judge.aggregate import BLOCK_FIGURES, PUBLISHER_FIGURES
from pubsub_emulator.spark_audit.judge.findings import Thresholds
from pubsub_emulator.spark_audit.judge.units import Fold, fold_chains

CHAINS: Final = tuple(range(2000, 2012))
BLOCKS: Final = 200
"""Blocks of a chain in a segment."""
PUBLISHERS: Final = 8
COLLATORS: Final = 4
SIZES: Final = (4_800, 16_800, 60_000)
MIB: Final = 1024


def segment(store: Store, number: int) -> None:
    """Write the measures of a segment."""
    rng = random.Random(number)
    blocks: list[dict[str, Any]] = []
    publishers: list[dict[str, Any]] = []
    for chain in CHAINS:
        for index in range(BLOCKS):
            position = number * BLOCKS + index
            place = {"network": "n", "chain": chain, "segment": number, "position": position}
            blocks.append(
                {
                    **empty_row(schema.BLOCK_MEASURES),
                    **{name: rng.randrange(100_000) for name in BLOCK_FIGURES},
                    **place,
                    "number": position,
                    "block": rng.randbytes(32),
                    "status": "included",
                    "judged": True,
                    "slot": position,
                    "slot_now": position,
                    "sealed": True,
                    "collator": bytes([position % COLLATORS]) * 32,
                    "relay_parent": position,
                    "relay_root_checked": True,
                    "budget": 1_000_000,
                    "stopped": False,
                    "expired_valid": 0,
                }
            )
            publishers += [
                {
                    **{name: rng.randrange(100_000) for name in PUBLISHER_FIGURES},
                    **place,
                    "number": position,
                    "publisher": 1000 + publisher,
                    "unchanged": False,
                    "resolved": True,
                    "delays": [],
                }
                for publisher in range(PUBLISHERS)
            ]
    tables = {
        "blocks": (schema.BLOCK_MEASURES, blocks),
        "publishers": (schema.PUBLISHER_MEASURES, publishers),
    }
    results.write_result(store, f"items/{number}", tables, {})


def written(store: Store, number: int) -> tuple[results.RowRange, results.RowRange]:
    """Return the files with the measures of a segment: its blocks and its publishers."""
    blocks, publishers = (
        next(path for path in store.walk(f"items/{number}") if f"/{name}-" in path)
        for name in ("blocks", "publishers")
    )
    return results.RowRange(blocks), results.RowRange(publishers)


def make(store: Store, count: int) -> Iterator[float]:
    """Write the measures of `count` segments.

    Yields `count`, because work in a child must yield figures.
    """
    for number in range(count):
        segment(store, number)
    yield count


def fold(blocks: int) -> Iterator[float]:
    """Fold blocks, and yield their number, the peak of memory in MiB, and CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder))
        count = blocks // (BLOCKS * len(CHAINS))
        # The measures are written in another process, whose memory is not measured.
        in_a_child(lambda: make(store, count))
        places = [written(store, number) for number in range(count)]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = time.process_time()
        befores: tuple[str, ...] = ()
        for first, last in ((0, count // 2), (count // 2, count)):
            task = Fold(
                root=folder,
                network="n",
                chains=CHAINS,
                first=first,
                last=last - 1,
                segments=tuple(places[first:last]),
                befores=befores,
                limits=Thresholds(),
                keep=True,
                weight=0,
                fingerprint=f"{last:064d}",
            )
            answer = fold_chains(task.to_json(), folder)
            befores = (answer["files"]["state.json"][0],)
        spent = time.process_time() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        size = (Path(folder) / befores[0]).stat().st_size
    yield from (blocks, before / MIB, peak / MIB, 1e3 * spent / blocks, size / MIB / MIB)


if __name__ == "__main__":
    prepare_streams()
    print("| blocks | MiB before | MiB at most | ms a block | MiB of the state |")
    print("|---|---|---|---|---|")
    for size in map(int, sys.argv[1:] or SIZES):
        row = in_a_child(lambda size=size: fold(size))  # type: ignore[misc]
        print(f"| {' | '.join(f'{figure:,.2f}' for figure in row)} |", flush=True)

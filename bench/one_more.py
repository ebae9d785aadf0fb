"""The cost of auditing one more segment, by their number: `python -m bench.one_more 250 500 1000`.

The history has one publisher and one subscriber, and twenty relay blocks per segment. A chain's
state grows until it has the hashes of 4,096 blocks, which takes 205 segments. All sizes therefore
judge blocks on states of the same size. Every audit runs in this process. Its CPU time is that of
the process: of a whole turn, and of judging and folding alone. `--turns` turns are made one after
another, as `--follow` makes them, alternating between the sizes, and their median is printed.
`--history` keeps the history for another run.
"""

import argparse
import gc
import json
import resource
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import Final

from bench.measure import timed
from pubsub_emulator.emulator.network import Network
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.spark_audit.audit.run import audit
from pubsub_emulator.spark_audit.history.manifest import COMMITS
from pubsub_emulator.spark_audit.history.store import HistoryWriter

KEYS: Final = tuple(key_from_data(b"%d" % index) for index in range(8))
SEGMENT: Final = 20


def make_history(path: Path, segments: int) -> None:
    """Make the history of a network with one publisher and one subscriber.

    It has at least `segments` segments.
    """
    config = Network.of(publishers=[1000], subscribers={2000: {1000: KEYS}}).config
    network = Network(replace(config, segment_length=SEGMENT))
    with HistoryWriter(path, "long") as writer:
        network.observe(writer)
        for block in range(segments * SEGMENT + SEGMENT):
            network.publish(1000, KEYS[block % len(KEYS)], b"%d " % block * 20, (0, 40)[block % 2])
            network.step()
        network.finish()


def _extend(whole: Path, history: Path, manifests: Iterable[Path]) -> None:
    """Add segments of a whole history to another one.

    Their files are linked first, so that a manifest never names a file that is missing.
    """
    for manifest in manifests:
        for entry in json.loads(manifest.read_bytes())["files"]:
            target = history / entry["path"]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.hardlink_to(whole / entry["path"])
        (history / COMMITS).mkdir(parents=True, exist_ok=True)
        shutil.copy(manifest, history / COMMITS)


def _turn(history: Path, out: Path) -> tuple[float, float, float]:
    """Audit a history, and return CPU seconds: of all, of judging and of folding.

    Raises `SystemExit` if not exactly one unit was judged.
    """
    marks: list[tuple[str, float]] = []
    began = process_time()
    result = audit(
        history,
        out,
        engine="python",
        progress=lambda state: marks.append((state.phase, process_time())),
    )
    seconds = process_time() - began
    if result.units_judged != 1:
        raise SystemExit(f"{result.units_judged} units were judged, not one")
    spans = {
        phase: [time for name, time in marks if name == phase] for phase in ("verify", "chains")
    }
    return seconds, *(times[-1] - times[0] if times else 0.0 for times in spans.values())  # type: ignore[return-value]


def measure(
    whole: Path, scratch: Path, sizes: Sequence[int], turns: int
) -> Iterator[tuple[int, tuple[float, ...]]]:
    """Yield each size with the medians of CPU seconds and the peak memory in MiB.

    The CPU seconds are those of one more segment, of judging and folding it, and of a turn without
    anything new.
    """
    manifests = sorted((whole / COMMITS).glob("*.json"))
    places = {size: (scratch / f"history-{size}", scratch / f"out-{size}") for size in sizes}
    before: Path | None = None
    for size, (history, out) in places.items():
        _extend(whole, history, manifests[: size - turns])
        if before is not None:
            shutil.copytree(before, out)
        audit(history, out, engine="python")
        before = out
    figures: dict[int, list[tuple[float, ...]]] = {size: [] for size in sizes}
    gc.collect()
    # Otherwise a full garbage collection of all imported modules would fall into some turns only.
    gc.freeze()
    for turn in range(turns):
        for size, (history, out) in places.items():
            index = size - turns + turn
            _extend(whole, history, manifests[index : index + 1])
            measured = _turn(history, out)
            figures[size].append((*measured, timed(partial(audit, history, out, engine="python"))))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    for size in sizes:
        yield size, (*(median(column) for column in zip(*figures[size], strict=True)), peak)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.one_more", description=__doc__)
    parser.add_argument(
        "segments", type=int, nargs="+", help="segments that there are, the one more included"
    )
    parser.add_argument(
        "--turns", type=int, default=7, help="turns of one segment each (default 7)"
    )
    parser.add_argument(
        "--history", type=Path, help="make the history here, or take the one that is here"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        whole = given.history or scratch / "whole"
        if not whole.exists():
            make_history(whole, max(given.segments) + 1)
        print("| segments | one more, s | judging | folding | nothing new, s |")
        print("|---|---|---|---|---|", flush=True)
        peak = 0.0
        for segments, measured in measure(whole, scratch, sorted(given.segments), given.turns):
            print(
                f"| {segments} | {' | '.join(f'{seconds:.3f}' for seconds in measured[:-1])} |",
                flush=True,
            )
            peak = measured[-1]
        print(f"peak: {peak:.0f} MiB")

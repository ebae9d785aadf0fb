"""What one more segment costs an audit, by how many there were: `python -m bench.one_more 250 500 1000`.

The history is one publisher's and one subscriber's, eight relay blocks a segment. Every audit runs in this process, and
its CPU time is that of the process: all of a turn, and of it judging and folding. `--turns` are made one after another,
as `--follow` makes them; the median of them is told. `--history` keeps the history that is made, for another time.
"""

import argparse
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, Final

from pubsub_emulator.emulator.network import Network
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.spark_audit.audit.run import audit
from pubsub_emulator.spark_audit.history.manifest import COMMITS
from pubsub_emulator.spark_audit.history.store import HistoryWriter

KEYS: Final = tuple(key_from_data(b"%d" % at) for at in range(8))
SEGMENT: Final = 8


def make_history(path: Path, segments: int) -> None:
    """A network of one publisher and one subscriber, of at least so many segments."""
    config = Network.of(publishers=[1000], subscribers={2000: {1000: KEYS}}).config
    network = Network(replace(config, segment_length=SEGMENT))
    with HistoryWriter(path, "long") as writer:
        network.observe(writer)
        for block in range(segments * SEGMENT + SEGMENT):
            network.publish(1000, KEYS[block % len(KEYS)], b"%d " % block * 20, (0, 40)[block % 2])
            network.step()
        network.finish()


def _copy(whole: Path, history: Path, manifests: list[Path]) -> None:
    """A history with the same files and only some of the manifests."""
    (history / COMMITS).mkdir(parents=True)
    for folder in whole.iterdir():
        if folder.name != COMMITS:
            shutil.copytree(folder, history / folder.name, copy_function=lambda a, b: Path(b).hardlink_to(a))
    for manifest in manifests:
        shutil.copy(manifest, history / COMMITS)


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = process_time()
    result = work()
    return process_time() - began, result


def _turn(history: Path, out: Path) -> tuple[float, float, float]:
    """CPU seconds of a run, and of it those of judging and folding."""
    marks: list[tuple[str, float]] = []
    seconds, result = _timed(
        lambda: audit(history, out, engine="python", progress=lambda at: marks.append((at.phase, process_time())))
    )
    if result.units_judged != 1:
        raise SystemExit(f"{result.units_judged} units were judged, not one")
    spans = {phase: [time for name, time in marks if name == phase] for phase in ("verify", "chains")}
    return seconds, *(times[-1] - times[0] if times else 0.0 for times in spans.values())  # type: ignore[return-value]


def measure(whole: Path, scratch: Path, segments: int, turns: int) -> tuple[float, ...]:
    """CPU seconds: of all segments, of one more, of it judging and folding, of nothing new; peak memory in MiB."""
    manifests = sorted((whole / COMMITS).glob("*.json"))
    history, out = scratch / f"history-{segments}", scratch / f"out-{segments}"
    _copy(whole, history, manifests[: segments - turns])
    first, _ = _timed(lambda: audit(history, out, engine="python"))
    found = []
    for manifest in manifests[segments - turns : segments]:
        shutil.copy(manifest, history / COMMITS)
        found.append(_turn(history, out))
    none, _ = _timed(lambda: audit(history, out, engine="python"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    shutil.rmtree(history)
    shutil.rmtree(out)
    return first, *(median(column) for column in zip(*found, strict=True)), none, peak


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.one_more", description=__doc__)
    parser.add_argument("segments", type=int, nargs="+", help="segments that there are, the one more included")
    parser.add_argument("--turns", type=int, default=7, help="turns of one segment each (default 7)")
    parser.add_argument("--history", type=Path, help="make the history here, or take the one that is here")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        whole = given.history or scratch / "whole"
        if not whole.exists():
            make_history(whole, max(given.segments) + 1)
        print("| segments | all, s | one more, s | judging | folding | nothing new, s | peak MiB |")
        print("|---|---|---|---|---|---|---|", flush=True)
        for segments in given.segments:
            told = measure(whole, scratch, segments, given.turns)
            cells = [f"{seconds:.3f}" for seconds in told[:-1]]
            print(f"| {segments} | {' | '.join(cells)} | {told[-1]:.0f} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""The audit's ratios: Spark beside plain Python and the pool, repeated runs, and stored bytes.

python -m bench.spark [--networks 2] [--relay-blocks 200] [--json FILE]
python -m bench.spark --history FOLDER       measure over an existing history
python -m bench.spark --executors            also two executors beside one: wall time, minutes

CPU time is that of a process of its own and of all that it starts, including the JVM and Python
workers. Linux only: the time of a worker is read from /proc before it ends.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))

import pyarrow as pa  # noqa: E402  # after the path
import pyarrow.parquet as pq  # noqa: E402  # the same

from bench.__main__ import row  # noqa: E402  # the same
from bench.measure import Result, processes  # noqa: E402  # the same
from pubsub_emulator.emulator.network import Network  # noqa: E402  # the same
from pubsub_emulator.primitives.hashing import blake2_256  # noqa: E402  # the same
from pubsub_emulator.primitives.pubsub import key_from_data  # noqa: E402  # the same
from pubsub_emulator.spark_audit.audit.rounds import ROUND, ROUND_OF_CORE  # noqa: E402  # the same
from pubsub_emulator.spark_audit.audit.run import audit  # noqa: E402  # the same
from pubsub_emulator.spark_audit.engine.engine import (  # noqa: E402  # the same
    Answer,
    PythonMapper,
    Unit,
)
from pubsub_emulator.spark_audit.history import schema  # noqa: E402  # the same
from pubsub_emulator.spark_audit.history.reader import Fault, History  # noqa: E402  # the same
from pubsub_emulator.spark_audit.history.store import HistoryWriter  # noqa: E402  # the same

SUBSCRIBERS: Final = 10
PUBLISHERS: Final = 4
KEYS: Final = tuple(key_from_data(b"%d" % index) for index in range(64))
READ: Final = 32
UPDATES: Final = 8
SEGMENT: Final = 100
PAIR: Final = (("spark", "local[2]"), ("pool", ""))
PAIRS: Final = 3
CORES: Final = (16, 64, 1000)
PIECES: Final = ("judge", "fold", "pack", "driver")

_RUN: Final = """
import json, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from bench.spark import used
from pubsub_emulator.spark_audit.audit.run import audit

engine, master = sys.argv[4], sys.argv[5]
before = {}
if engine == "spark":
    from pubsub_emulator.spark_audit.spark.job import SparkMapper
    close = SparkMapper.close
    def close_after_reading(self):
        before.update(used())
        close(self)
    SparkMapper.close = close_after_reading
started = time.monotonic()
result = audit(Path(sys.argv[2]), Path(sys.argv[3]), master or None, engine)
after = used()
total = sum(max(before.get(process, 0), after.get(process, 0)) for process in before | after)
print(json.dumps({"cpu": total, "wall": time.monotonic() - started, "candidates": result.candidates,
                  "judged": result.units_judged, "digest": result.digest}))
"""


def used() -> dict[int, float]:
    """Return the CPU seconds of this process and its descendants, by process id.

    They include the seconds of ended children that were waited for.
    """
    ticks = os.sysconf("SC_CLK_TCK")
    return {
        process: sum(map(int, fields[11:15])) / ticks
        for process, fields in processes(os.getpid()).items()
    }


def run(history: Path, out: Path, engine: str, master: str = "") -> dict[str, Any]:
    """Run an audit in a second process and return its measurements.

    They are CPU and wall seconds (`cpu`, `wall`), `candidates`, `judged` units, and the `digest`.
    """
    command = [sys.executable, "-c", _RUN, str(ROOT), str(history), str(out), engine, master]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603  # this program
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def make_history(path: Path, networks: int, relay_blocks: int, *, shared: bool = True) -> None:
    """Make a history of networks with ten subscribers, or with one if it is not `shared`.

    Each subscribes to 32 of the 64 keys of four publishers.
    """
    publishers = tuple(range(1000, 1000 + PUBLISHERS))
    subscribers = {
        2000 + index: dict.fromkeys(publishers, KEYS[:READ])
        for index in range(SUBSCRIBERS if shared else 1)
    }
    for name in range(networks):
        config = Network.of(publishers=publishers, subscribers=subscribers).config
        network = Network(replace(config, segment_length=SEGMENT))
        with HistoryWriter(path, f"n{name}") as writer:
            network.observe(writer)
            for block in range(relay_blocks):
                for publisher in publishers:
                    for update in range(UPDATES):
                        key = KEYS[(block * UPDATES + update * 7 + publisher) % len(KEYS)]
                        value = blake2_256(b"%d %d %d %d" % (name, block, publisher, update))
                        network.publish(
                            publisher, key, value * (2 + (block + update) % 12), (0, 40)[update % 2]
                        )
                network.step()
            network.finish()


def stored_bytes(history: Path) -> tuple[int, int, int]:
    """Return the bytes of proofs as stored, of proofs as inlined, and of all other columns.

    Stored proofs are references and a table of nodes. An inlined proof has its nodes in the row of
    its block, in files that are cut and compressed alike.
    """
    opened = History.open(history)
    referenced = 0
    inlined = 0
    rest = 0
    field = pa.field("proof", pa.list_(pa.binary()))
    for commit in opened.commits:
        nodes: dict[int, bytes] = {}
        for entry in commit.files:
            if entry.table == schema.NODES.name:
                referenced += entry.size
                nodes |= {row["number"]: row["data"] for row in opened.rows([entry], [])}
        for entry in commit.files:
            if entry.table != schema.BLOCKS.name:
                continue
            # A file is counted once for all chains in it.
            if entry.share is None or entry.share.first == 0:
                references = proof_bytes(pq.read_metadata(history / entry.path))
                referenced += references
                rest += entry.size - references
            table = pa.concat_tables(
                [part for part in opened.read(entry) if not isinstance(part, Fault)]
            )
            proofs = [[nodes[number] for number in proof] for proof in table["proof"].to_pylist()]
            sink = pa.BufferOutputStream()
            pq.write_table(
                pa.table([pa.array(proofs, field.type)], schema=pa.schema([field])),
                sink,
                compression="zstd",
                compression_level=3,
                data_page_size=8 * 1_048_576,
                row_group_size=256,
            )
            inlined += proof_bytes(pq.read_metadata(pa.BufferReader(sink.getvalue())))
    return referenced, inlined, rest


def proof_bytes(file: pq.FileMetaData) -> int:
    """Return the compressed bytes of the column `proof`."""
    columns = []
    for number in range(file.num_row_groups):
        group = file.row_group(number)
        columns += [group.column(index) for index in range(group.num_columns)]
    return sum(
        column.total_compressed_size
        for column in columns
        if column.path_in_schema.startswith("proof.")
    )


def stored(history: Path, lone: Path) -> Iterator[Result]:
    """Yield the lines on storage. They have kilobytes in place of milliseconds."""
    for name, path, target in (
        ("ten subscribers", history, 0.25),
        ("a lone subscriber", lone, None),
    ):
        referenced, inlined, rest = stored_bytes(path)
        note = f"kB, not ms; the rest of the rows is {rest / 1e3:.0f}"
        yield Result(
            f"proofs of {name}",
            "nodes inlined",
            referenced / 1e3,
            inlined / 1e3,
            referenced / inlined,
            target=target,
            note=note,
        )


def measured(history: Path, scratch: Path, small: Path, *, executors: bool) -> Iterator[Result]:
    """Yield the lines about Spark, the pool, small histories, a second run and executors.

    Raises `SystemExit` if Spark and plain Python come to different results.
    """
    plain = run(history, scratch / "plain", "python")
    again = run(history, scratch / "plain", "python")
    spark = run(history, scratch / "spark", "spark", "local[2]")
    if spark["digest"] != plain["digest"]:
        raise SystemExit("the two engines come to different results")
    blocks = plain["candidates"]
    added = (spark["cpu"] - plain["cpu"]) / blocks * 1e3
    note = f"{blocks:,} blocks, CPU ms a block, adds {added:.2f}"
    milliseconds = spark["cpu"] / blocks * 1e3
    base = plain["cpu"] / blocks * 1e3
    name = "audit by Spark, local[2]"
    yield Result(
        name, "plain Python", milliseconds, base, milliseconds / base, target=1.18, note=note
    )
    pairs = [
        [
            run(history, scratch / f"{engine}{index}", engine, master)["cpu"]
            for engine, master in PAIR
        ]
        for index in range(PAIRS)
    ]
    milliseconds, base = (median(cpu) / blocks * 1e3 for cpu in zip(*pairs, strict=True))
    note = f"CPU ms a block, medians of {PAIRS} in turns"
    yield Result(name, "the pool", milliseconds, base, milliseconds / base, note=note)
    yield _small_audit(small, scratch)
    ratio = again["cpu"] / plain["cpu"]
    note = f"{again['judged']} segments judged again"
    yield Result(
        "second run, nothing new",
        "first run",
        again["cpu"] * 1e3,
        plain["cpu"] * 1e3,
        ratio,
        target=0.02,
        note=note,
    )
    if executors:
        yield _two_executors(history, scratch)


def _small_audit(small: Path, scratch: Path) -> Result:
    """Return the line about a small history, whose cost is mostly that of starting Spark."""
    plain = run(small, scratch / "small-python", "python")
    spark = run(small, scratch / "small-spark", "spark")
    plain_ms = plain["cpu"] * 1e3
    spark_ms = spark["cpu"] * 1e3
    name = f"audit by Spark of {plain['candidates']} blocks"
    note = f"fixed cost {spark['cpu'] - plain['cpu']:.1f} s"
    return Result(name, "plain Python", spark_ms, plain_ms, spark_ms / plain_ms, note=note)


def _two_executors(history: Path, scratch: Path) -> Result:
    """Return the line about the wall time with two executors instead of one."""
    load = os.getloadavg()[0]
    one = run(history, scratch / "1", "spark", "local-cluster[1,1,1024]")["wall"]
    two = run(history, scratch / "2", "spark", "local-cluster[2,1,1024]")["wall"]
    note = f"wall time, load {load:.1f} before"
    return Result("two executors", "one executor", two * 1e3, one * 1e3, two / one, note=note)


def pieces(history: Path, small: Path, scratch: Path) -> str:
    """Describe the CPU time of one more block, for the driver and its units, and the speed-ups."""
    whole = spent(history, scratch / "pieces")
    base = spent(small, scratch / "small-pieces")
    more = {
        name: (whole[name] - base[name]) / (whole["blocks"] - base["blocks"]) * 1e3
        for name in PIECES
    }
    shown = ", ".join(f"{name} {cost:.3f}" for name, cost in more.items())
    kinds = {"many networks": 0.0, "one network": whole["largest"]}
    factors = "; ".join(
        f"{name}: {' / '.join(speedups(more, share))}" for name, share in kinds.items()
    )
    return (
        f"ms for one more block: {shown}; times as fast on {' / '.join(map(str, CORES))} cores,"
        f" {factors}"
    )


def spent(history: Path, out: Path) -> defaultdict[str, float]:
    """Return the CPU seconds of an audit in this process, by piece.

    Two further keys are the number of `blocks`, and `largest`, the share of the largest chain in
    the blocks of its network.
    """
    seconds: defaultdict[str, float] = defaultdict(float)
    give_out = PythonMapper.map

    def timed(mapper: PythonMapper, unit: Unit, *given: Any) -> list[Answer]:
        def one(text: str, place: str) -> Answer:
            name = unit.__name__
            if name == "judge_or_fold":
                name = "fold" if '"befores"' in text else "judge"
            started = process_time()
            try:
                return unit(text, place)
            finally:
                seconds[name] += process_time() - started

        return give_out(mapper, one, *given)

    PythonMapper.map = timed  # type: ignore[method-assign,assignment]  # the same arguments
    started = process_time()
    result = audit(history, out, engine="python")
    PythonMapper.map = give_out  # type: ignore[method-assign]
    seconds["driver"] = process_time() - started - sum(seconds.values())
    first = [
        row["candidates"] for row in result.chains if row["network"] == result.chains[0]["network"]
    ]
    return defaultdict(
        float, {**seconds, "blocks": result.candidates, "largest": max(first) / sum(first)}
    )


def speedups(more: Mapping[str, float], largest: float) -> Iterator[str]:
    """Yield the speed-up on each number of cores.

    The units of a round run at the same time as the fold of its largest chain. The driver runs
    alone.
    """
    units = sum(more.values()) - more["driver"]
    for cores in CORES:
        a_core = max(ROUND, ROUND_OF_CORE * cores) / cores
        longest = max(units / cores * (1 + 1 / a_core), more["fold"] * largest)
        yield f"{sum(more.values()) / (longest + more['driver']):.3g}"


def main() -> None:
    """Measure and print all lines."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.spark",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--networks", type=int, default=2, help="networks of the history that is made (default 2)"
    )
    parser.add_argument(
        "--relay-blocks", type=int, default=200, help="relay blocks of each (default 200)"
    )
    parser.add_argument("--history", type=Path, help="a history to measure over instead")
    parser.add_argument("--executors", action="store_true", help="two executors beside one too")
    parser.add_argument("--json", type=Path, help="write the lines there too")
    given = parser.parse_args()
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        history = given.history
        if history is None:
            history = scratch / "history"
            make_history(history, given.networks, given.relay_blocks)
        make_history(scratch / "lone", 1, 60, shared=False)
        print(
            "| workload | ms | beside | ms | ratio | target |\n|---|---|---|---|---|---|",
            flush=True,
        )
        lone = scratch / "lone"
        for result in chain(
            stored(history, lone), measured(history, scratch, lone, executors=given.executors)
        ):
            results.append(result)
            print(row(result), flush=True)
        print(f"\n{pieces(history, scratch / 'lone', scratch)}", flush=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    print(f"\nmost memory of one process: {peak} MiB; load {os.getloadavg()[0]:.1f} at the end")
    if given.json is not None:
        given.json.write_text(
            json.dumps([asdict(result) for result in results], indent=1) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()

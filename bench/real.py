"""What auditing real relay proofs costs: processor time, memory and bytes per block, and what a year would take.

    python -m bench.real --blocks 2000

The ten mainnet proofs of `examples/mainnet/` are used as blocks of a chain, repeated under numbers of their own,
in units of a thousand as `pubsub fetch` writes them. The audit opens and attributes each of them again. What
neighbouring blocks share is not known from blocks that are far apart, so the bytes of a history are measured of nodes
that all differ and do not pack: an upper bound.
"""

import argparse
import resource
import tempfile
import time
from dataclasses import replace
from hashlib import shake_128
from itertools import cycle, islice
from pathlib import Path

from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.spark_audit.audit.run import audit
from pubsub_emulator.spark_audit.history.storage import Store, open_store
from pubsub_emulator.spark_audit.real_proofs.imported import UNIT_BLOCKS, Present, RelayProof, in_units, write_segment
from pubsub_emulator.spark_audit.real_proofs.relay_proofs import read_relay_proof

ROOT = Path(__file__).resolve().parents[1]
YEAR_SECONDS = 365 * 86_400


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="What auditing real relay proofs costs.")
    parser.add_argument("--blocks", type=int, default=2000)
    parser.add_argument("--engine", default="python", choices=["python", "pool"])
    asked = parser.parse_args()
    recorded = [
        read_relay_proof(path)
        for path in sorted((ROOT / "examples" / "mainnet").glob("*.json"))
        if "dev" not in path.name
    ]
    with tempfile.TemporaryDirectory() as folder:
        many = [
            replace(proof, network="real", chain=ParaId(1000), number=at)
            for at, proof in enumerate(islice(cycle(recorded), asked.blocks), 1)
        ]
        different = [replace(proof, proof=_noise(proof)) for proof in many[:UNIT_BLOCKS]]
        stored = _write(open_store(Path(folder) / "different"), different)
        writing = _cpu()
        store = open_store(Path(folder) / "many")
        _write(store, many)
        written = _cpu() - writing
        began, wall = _cpu(), time.monotonic()
        result = audit(store, Path(folder) / "audit", engine=asked.engine)
        spent, seconds = _cpu() - began, time.monotonic() - wall
        out = _size(open_store(Path(folder) / "audit")) / asked.blocks
    each = 1000 * spent / asked.blocks
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024
    proofs = sum(len(node) for proof in recorded for node in proof.proof) / len(recorded)
    print(f"{asked.blocks:,} blocks, {result.exit_code=}, {seconds:.1f} s by the clock, peak {peak:.0f} MiB")
    print(f"{each:.2f} ms of processor time a block audited, {1000 * written / asked.blocks:.2f} ms written")
    print(f"per block: nodes {proofs:,.0f} bytes, history at most {stored:,.0f} bytes, output {out:,.0f} bytes")
    for period in (12, 6):
        blocks = YEAR_SECONDS // period
        hours = blocks * each / 3_600_000
        print(
            f"a year of blocks of {period} s: {blocks:,} blocks, {hours:,.1f} core hours, "
            f"history at most {blocks * stored / 2**30:,.1f} GiB, output {blocks * out / 2**30:,.1f} GiB"
        )


def _write(store: Store, proofs: list[RelayProof]) -> float:
    """Write proofs and say how many bytes each takes."""
    present = Present.of(store)
    by_network: dict[str, list[RelayProof]] = {}
    for proof in proofs:
        by_network.setdefault(proof.network, []).append(proof)
    for group in by_network.values():
        for unit in in_units(group):
            write_segment(store, present, unit)
    return _size(store) / len(proofs)


def _noise(proof: RelayProof) -> tuple[bytes, ...]:
    """Nodes of the same number and sizes as the proof's, with bytes that no compression shortens."""
    seed = proof.number.to_bytes(4, "little")
    return tuple(shake_128(seed + bytes((at,))).digest(len(node)) for at, node in enumerate(proof.proof))


def _size(store: Store) -> int:
    return sum(stamp.size for stamp in store.walk().values())


def _cpu() -> float:
    """Processor time of this process and of those it waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


if __name__ == "__main__":
    main()

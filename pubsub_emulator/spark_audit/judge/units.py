"""The two units of a round: judging a segment of some chains, and folding judged segments.

A unit is a function that an engine runs on a worker. Each call writes its result into a folder of
its own. While the segments of a round are judged, those of the previous round are folded.
"""

import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import chain as chained
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.spark_audit.engine.engine import Answer, UnitTask
from pubsub_emulator.spark_audit.engine.pace import report_progress
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.canonical import digest_rows, encode_row
from pubsub_emulator.spark_audit.history.manifest import canonical_json, digest_of
from pubsub_emulator.spark_audit.history.reader import Fault, check_file
from pubsub_emulator.spark_audit.history.reader import read_file as read_history
from pubsub_emulator.spark_audit.history.row import Row, fields_of
from pubsub_emulator.spark_audit.history.rows import columns_of
from pubsub_emulator.spark_audit.history.schema import SchemaError, Table
from pubsub_emulator.spark_audit.history.storage import Store, open_store
from pubsub_emulator.spark_audit.judge import patterns, results
from pubsub_emulator.spark_audit.judge.aggregate import BLOCK_COLUMNS, PUBLISHER_COLUMNS, Sizes
from pubsub_emulator.spark_audit.judge.check import check_chain
from pubsub_emulator.spark_audit.judge.findings import Thresholds
from pubsub_emulator.spark_audit.judge.notes import ChainResult, evidence_error
from pubsub_emulator.spark_audit.judge.shared import Shared
from pubsub_emulator.spark_audit.judge.task import CHECK_VERSION, Task, commits_before


def judge_segment(text: str, out: str) -> Answer:
    """Judge the segment of a task, given as JSON, and return the receipt. This is a unit.

    If the output `out` has the result already, it is not made again. Raises `RulesError`,
    `OSError`.
    """
    task = Task.from_json(text)
    store = open_store(out)
    earlier = results.read_receipt(store, task.name)
    # An earlier attempt may have written the result before its worker was lost.
    if earlier is not None:
        return earlier
    shared = Shared.of(task)
    chains = [_ensure_writable(check_chain(task, files, shared)) for files in task.chains]
    # The rows of all chains go into one file per table.
    chain_tables = [chain.tables() for chain in chains]
    tables: dict[str, tuple[Table, list[Row]]] = {}
    for table in schema.OF_SEGMENT:
        rows = list(chained.from_iterable(of_chain[table] for of_chain in chain_tables))
        tables[table.name] = (table, rows)
    for entry in task.checked:
        shared.faults += check_file(shared.store, entry)
    unread = tables[schema.READ_ERRORS.name][1]
    unread.extend(fault.row() for fault in shared.faults)
    transient = shared.transient or any(chain.transient for chain in chains)
    judged = [
        {**asdict(chain.receipt), **_account(tables_of_chain)}
        for chain, tables_of_chain in zip(chains, chain_tables, strict=True)
    ]
    place = fields_of(task, ("network", "segment", "fingerprint"))
    receipt = {**place, "chains": judged, "read_errors": len(unread)}
    return results.write_result(store, task.name, tables, receipt=receipt, keep=not transient)


def _ensure_writable(chain: ChainResult) -> ChainResult:
    """Return the result, or a result with only a fault if one of the rows does not fit its table.

    Such a row (for example with a number beyond 64 bits) comes from values in the history.
    """
    try:
        for table, rows in chain.tables().items():
            table.arrow(rows)
    except SchemaError as error:
        receipt = replace(chain.receipt, complete=False, seam="none", judged=0, proof_bytes=0)
        path = f"{schema.BLOCKS.name}/network={receipt.network}/chain={receipt.chain}"
        fault = Fault(
            path,
            str(error),
            network=receipt.network,
            chain=receipt.chain,
            segment=receipt.segment,
        )
        return ChainResult(receipt, read_errors=[fault.row()])
    return chain


def _account(tables: Mapping[Table, list[Row]]) -> dict[str, object]:
    """Return the parts of a chain's receipt that are computed from its rows."""
    return {
        "digests": {table.name: digest_rows(table, rows).hex() for table, rows in tables.items()},
        "findings": _counts(tables[schema.FINDINGS]),
    }


def _counts(rows: Iterable[Row]) -> results.Counts:
    """Count findings by severity and code."""
    counts = Counter((row["severity"], row["code"]) for row in rows)
    return [[*name, count] for name, count in sorted(counts.items())]


_PIECE: Final = 65_536
"""The maximum number of bytes of a state that are decompressed at a time."""
BLOCK_WEIGHT: Final = 128
"""The weight of folding one block: judging this many bytes of a history takes about as long."""


@dataclass(frozen=True, slots=True)
class Fold(UnitTask):
    """The task of adding judged segments of some of a network's chains to their totals.

    The totals of earlier segments are in the states that the previous folds wrote.
    """

    root: str
    """The history's address."""
    network: str
    chains: tuple[int, ...]
    first: int
    """The first segment that is added."""
    last: int
    """The last segment that is added."""
    segments: tuple[tuple[results.RowRange | None, results.RowRange | None], ...]
    """Block and publisher measures of each task in order, `None` where there are no rows."""
    befores: tuple[str, ...]
    """Paths of the states that the previous folds wrote."""
    limits: Thresholds
    keep: bool
    """Whether later runs may use the result. It is false if the fold depends on a failed read that
    may succeed next time."""
    weight: int
    """The expected duration, in the unit of `Task.weight`. Engines start heavy tasks first."""
    fingerprint: str
    """A digest of everything that the result depends on."""

    @property
    def name(self) -> str:
        """The folder of the result, relative to the audit's output."""
        return f"chains/network={self.network}/{self.last:08d}-{self.fingerprint[:16]}"

    @staticmethod
    def from_json(text: str) -> "Fold":
        """Return the fold that `to_json` wrote."""
        data: dict[str, Any] = json.loads(text)
        data["segments"] = tuple(tuple(map(_row_range, pair)) for pair in data["segments"])
        tuples = {name: tuple(data[name]) for name in ("chains", "befores")}
        return Fold(**{**data, **tuples, "limits": Thresholds(**data["limits"])})


def _row_range(data: dict[str, Any] | None) -> results.RowRange | None:
    return None if data is None else results.RowRange(**data)


def fold_fingerprint(
    befores: Sequence[str],
    network: str,
    chains: Sequence[int],
    receipts: Sequence[results.SegmentReceipt],
    limits: Thresholds,
) -> str:
    """Return a digest of a fold's inputs.

    They are the fingerprints of the previous folds (`befores`), the results of the segments, and
    the thresholds.
    """
    judged = chained.from_iterable(receipt["chains"] for receipt in receipts)
    folded = (chain for chain in judged if chain["chain"] in chains)
    digests = [[chain["chain"], chain["digests"]] for chain in folded]
    return digest_of(
        canonical_json([CHECK_VERSION, befores, network, chains, digests, asdict(limits)])
    )


def judge_or_fold(text: str, out: str) -> Answer:
    """Run a task or a fold, given as JSON, and return its receipt. This is a unit.

    Raises `OSError`, `ResultError`.
    """
    # Only the JSON of a fold has this key.
    if "befores" in json.loads(text):
        return fold_chains(text, out)
    return judge_segment(text, out)


def fold_chains(text: str, out: str) -> Answer:
    """Add judged segments to the totals of their chains and return the receipt. This is a unit.

    The totals are patterns (habits of collators, as findings) and sizes (rows of `summaries`). A
    settled finding is final. An open finding is about a run of blocks that later segments may
    lengthen. Open findings and summaries replace those of the previous fold. Raises `OSError`,
    `ResultError`.
    """
    fold = Fold.from_json(text)
    store = open_store(out)
    earlier = results.read_receipt(store, fold.name) if fold.keep else None
    if earlier is not None:
        return earlier
    states = _read_state(store, fold)
    settled: list[Row] = []
    faults: list[Row] = []
    for index, segment in enumerate(fold.segments):
        report_progress(index, len(fold.segments))
        for chain, blocks, publishers in _by_chain(store, segment, fold.chains):
            state = states.setdefault(
                chain, _ChainState(patterns.HabitMemory(fold.limits), Sizes())
            )
            rows = blocks.select(patterns.HABIT_COLUMNS).to_pylist()
            for row in state.memory.add(rows, _served(publishers), _headers(fold, chain)):
                # A finding is only reported if its own evidence shows it (AU-11).
                if evidence_error(row["code"], row["evidence"]) is None:
                    settled.append(row)
                    state.settle(row)
                else:
                    error = f"the evidence of a finding {row['code']} does not show it"
                    place = columns_of(row, ("network", "chain", "segment", "position"))
                    faults.append(
                        Fault(f"{schema.BLOCKS.name}/network={fold.network}", error, **place).row()
                    )
            state.sizes.add(blocks, publishers)
    faults += [
        _crowded(fold, chain).row() for chain, state in states.items() if state.memory.crowded
    ]
    pending = {chain: list(state.memory.open_runs()) for chain, state in states.items()}
    sizes = {chain: list(state.sizes.rows(fold.network, chain)) for chain, state in states.items()}
    tables: dict[str, tuple[Table, list[Row]]] = {
        "findings": (schema.FINDINGS, settled),
        "open": (schema.FINDINGS, list(chained.from_iterable(pending.values()))),
        "summaries": (schema.SUMMARIES, list(chained.from_iterable(sizes.values()))),
        "read_errors": (schema.READ_ERRORS, faults),
    }
    digests: dict[str, list[str]] = {}
    for chain, state in sorted(states.items()):
        open_digest = digest_rows(schema.FINDINGS, pending[chain])
        sizes_digest = digest_rows(schema.SUMMARIES, sizes[chain])
        digests[str(chain)] = [state.settled, open_digest.hex(), sizes_digest.hex()]
    counts = {
        "settled": _counts(settled),
        "open": _counts(tables["open"][1]),
        "read_errors": len(faults),
    }
    receipt = {
        **fields_of(fold, ("network", "first", "last", "fingerprint")),
        **counts,
        "chains": digests,
    }
    others = {"state.json.z": _pack(states)}
    return results.write_result(
        store, fold.name, tables, receipt=receipt, others=others, keep=fold.keep
    )


def _crowded(fold: Fold, chain: int) -> Fault:
    """Return the fault of a chain with more seals than the memory for patterns can hold.

    All folds of a chain return the same fault, so that it is counted once however the work is
    split.
    """
    error = (
        f"it has more than {patterns.MOST_SEALS} seals for {2 * patterns.SLOT_WINDOW} slots: not"
        " all equivocations are noticed"
    )
    path = f"{schema.BLOCKS.name}/network={fold.network}/chain={chain}"
    return Fault(path, error, network=fold.network, chain=chain)


@dataclass(slots=True)
class _ChainState:
    """The totals of one chain so far."""

    memory: patterns.HabitMemory
    """The memory for patterns."""
    sizes: Sizes
    settled: str = ""
    """A running digest over the chain's settled findings."""

    def settle(self, row: Row) -> None:
        """Add a settled finding to the digest."""
        self.settled = blake2_256(self.settled.encode() + encode_row(schema.FINDINGS, row)).hex()


def _pack(states: Mapping[int, _ChainState]) -> bytes:
    """Return the states of chains as the compressed file that the next fold reads.

    Each chain has a line of its own, so that only one state at a time is in memory as JSON.
    """
    packer = zlib.compressobj(1)
    out = bytearray()
    for chain, state in sorted(states.items()):
        # `canonical_json` ends with a line break.
        body = [chain, state.memory.to_json(), state.sizes.to_json(), state.settled]
        out += packer.compress(canonical_json(body))
    out += packer.flush()
    return bytes(out)


def _read_state(store: Store, fold: Fold) -> dict[int, _ChainState]:
    """Return the states that the previous folds wrote, for the chains of this fold.

    Raises `ResultError` if a file is missing or damaged.
    """
    states: dict[int, _ChainState] = {}
    for path in fold.befores:
        try:
            for line in _lines(results.read_file(store, path)):
                chain, memory_data, sizes_data, settled = json.loads(line)
                if chain in fold.chains:
                    memory = patterns.HabitMemory.from_json(memory_data, fold.limits)
                    states[chain] = _ChainState(memory, Sizes.from_json(sizes_data), settled)
        except (ValueError, KeyError, TypeError, OverflowError, zlib.error) as error:
            raise results.ResultError(f"{store}/{path}: {error}") from None
    return states


def _lines(packed: bytes) -> Iterator[bytes]:
    """Yield the lines of a compressed file, one at a time. Raises `zlib.error`."""
    unfinished = b""
    for piece in _pieces(packed):
        *lines, unfinished = (unfinished + piece).split(b"\n")
        yield from lines


def _pieces(packed: bytes) -> Iterator[bytes]:
    """Decompress a file piece by piece. Raises `zlib.error`."""
    unpacker = zlib.decompressobj()
    remaining = packed
    while remaining:
        yield unpacker.decompress(remaining, _PIECE)
        remaining = unpacker.unconsumed_tail
    yield unpacker.flush()
    if not unpacker.eof:
        raise zlib.error("the file is cut off")


def _by_chain(
    store: Store,
    segment: tuple[results.RowRange | None, results.RowRange | None],
    chains: Sequence[int],
) -> Iterator[tuple[int, pa.Table, pa.Table]]:
    """Yield ParaId, block measures and publisher measures of each chain in a task's result.

    Chains that are not in `chains` are left out. The block measures are ordered by position. Only
    the columns that folding needs are read.
    """
    # Columns that both lists name are read once. `dict.fromkeys` keeps their order.
    block_columns = list(dict.fromkeys((*patterns.HABIT_COLUMNS, *BLOCK_COLUMNS)))
    blocks = _table(store, segment[0], schema.BLOCK_MEASURES, names=block_columns)
    publisher_columns = list(
        dict.fromkeys(("chain", "position", *patterns.SERVED_COLUMNS, *PUBLISHER_COLUMNS))
    )
    publishers = _table(store, segment[1], schema.PUBLISHER_MEASURES, names=publisher_columns)
    for chain in sorted({*chains}.intersection(pc.unique(blocks["chain"]).to_pylist())):
        chain_blocks = blocks.filter(pc.equal(blocks["chain"], chain)).sort_by("position")
        yield chain, chain_blocks, publishers.filter(pc.equal(publishers["chain"], chain))


def _table(
    store: Store, rows: results.RowRange | None, table: Table, names: Sequence[str]
) -> pa.Table:
    """Return some columns of rows. The table is empty if there are no rows."""
    empty = pa.schema([table.schema.field(name) for name in names]).empty_table()
    if rows is None:
        return empty
    return pa.concat_tables(
        [empty, results.read_some(store, rows, table, columns=names).select(names)]
    )


def _served(publishers: pa.Table) -> patterns.PublisherRows:
    """Return a function that gives a block's publisher measures."""
    rows: dict[int, list[Row]] = {}
    for row in publishers.select(["position", *patterns.SERVED_COLUMNS]).to_pylist():
        rows.setdefault(row["position"], []).append(row)
    return lambda segment, position: rows.get(position, [])  # noqa: ARG005  # all rows are of one segment


def _headers(fold: Fold, chain: int) -> patterns.Headers:
    """Return a function that reads a chain's headers from the history.

    It is only called for suspected equivocations. The headers of the last two segments that were
    read stay in memory, since the two headers of an equivocation can be in two segments.
    """

    @lru_cache(maxsize=2)
    def read(segment: int) -> dict[int, bytes]:
        """Return the chain's headers in a segment by position."""
        commits = commits_before(fold.root, fold.network, segment + 1)
        files = next((commit.files for commit in commits if commit.segment == segment), ())
        headers: dict[int, bytes] = {}
        for entry in files:
            if (entry.table, entry.chain) != (schema.BLOCKS.name, chain):
                continue
            for group in read_history(open_store(fold.root), entry):
                if not isinstance(group, Fault):
                    positions = group.column("position").to_pylist()
                    encoded = group.column("header").to_pylist()
                    headers.update(zip(positions, encoded, strict=True))
        return headers

    return lambda segment, position: read(segment).get(position)

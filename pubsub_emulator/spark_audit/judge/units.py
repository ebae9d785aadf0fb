"""The units of an audit: judge one segment of some chains, fold segments of some chains; each into a result of its own.

The driver gives out both together: while segments are judged, those of the round before are folded.
"""

import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.spark_audit.engine.engine import Answer, UnitTask
from pubsub_emulator.spark_audit.engine.pace import told
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
from pubsub_emulator.spark_audit.judge.notes import ChainResult, unshown
from pubsub_emulator.spark_audit.judge.shared import Shared
from pubsub_emulator.spark_audit.judge.task import CHECK_VERSION, Task, commits_before


def judge_segment(text: str, out: str) -> Answer:
    """The unit that judges the segment a task names, unless its result is there. Raises `OSError`."""
    task = Task.from_json(text)
    store = open_store(out)
    done = results.read_receipt(store, task.name)
    if done is not None:  # another attempt at the unit was here, and its worker was lost after that
        return done
    shared = Shared.of(task)
    chains = [_fitting(check_chain(task, files, shared)) for files in task.chains]
    every = [chain.tables() for chain in chains]
    tables = {table.name: (table, [row for each in every for row in each[table]]) for table in schema.OF_SEGMENT}
    shared.faults += [fault for entry in task.checked for fault in check_file(shared.store, entry)]
    unread = tables[schema.QUARANTINE.name][1]
    unread.extend(fault.row() for fault in shared.faults)
    passing = shared.passing or any(chain.passing for chain in chains)
    judged = [{**asdict(chain.receipt), **_account(of)} for chain, of in zip(chains, every, strict=True)]
    place = fields_of(task, ("network", "segment", "fingerprint"))
    receipt = {**place, "chains": judged, "quarantined": len(unread)}
    return results.write_result(store, task.name, tables, receipt, keep=not passing)


def _fitting(chain: ChainResult) -> ChainResult:
    """The result, or in its place a fault when a row of it fits no table: that is the history's doing, too."""
    try:
        for table, rows in chain.tables().items():
            table.arrow(rows)
    except SchemaError as error:
        receipt = replace(chain.receipt, complete=False, seam="none", judged=0, proof_bytes=0)
        path = f"{schema.BLOCKS.name}/network={receipt.network}/chain={receipt.chain}"
        fault = Fault(path, str(error), None, receipt.network, receipt.chain, receipt.segment)
        return ChainResult(receipt, quarantine=[fault.row()])
    return chain


def _account(tables: Mapping[Table, list[Row]]) -> dict[str, object]:
    return {
        "digests": {table.name: digest_rows(table, rows).hex() for table, rows in tables.items()},
        "findings": _counts(tables[schema.FINDINGS]),
    }


def _counts(rows: Iterable[Row]) -> results.Counts:
    found = Counter((row["severity"], row["code"]) for row in rows)
    return [[*name, count] for name, count in sorted(found.items())]


BLOCK_WEIGHT: Final = 128
"""Bytes of a history that take as long to judge as a block to fold."""


@dataclass(frozen=True, slots=True)
class Fold(UnitTask):
    """Judged segments of some chains of a network, in order, that are added to what the segments before came to.

    `segments` are each task's block and publisher measures, `befores` the states that the folds before left.
    """

    root: str
    network: str
    chains: tuple[int, ...]
    first: int
    last: int
    segments: tuple[tuple[results.Rows | None, results.Rows | None], ...]
    befores: tuple[str, ...]
    limits: Thresholds
    keep: bool
    weight: int
    """Relative duration in the measure of `Task.weight`, to give out long ones first."""
    fingerprint: str

    @property
    def name(self) -> str:
        """The path of the results, below the audit's output."""
        return f"chains/network={self.network}/{self.last:08d}-{self.fingerprint[:16]}"

    @staticmethod
    def from_json(text: str) -> "Fold":
        """The inverse of `to_json`."""
        data: dict[str, Any] = json.loads(text)
        pairs = ((each and results.Rows(**each) for each in pair) for pair in data["segments"])
        data["segments"] = tuple(map(tuple, pairs))
        lists = {name: tuple(data[name]) for name in ("chains", "befores")}
        return Fold(**{**data, **lists, "limits": Thresholds(**data["limits"])})


def fold_fingerprint(
    befores: Sequence[str],
    network: str,
    chains: Sequence[int],
    receipts: Sequence[results.SegmentReceipt],
    limits: Thresholds,
) -> str:
    """A digest of a fold's inputs: the folds before it and the results of its segments."""
    mine = (chain for receipt in receipts for chain in receipt["chains"] if chain["chain"] in chains)
    digests = [[chain["chain"], chain["digests"]] for chain in mine]
    return digest_of(canonical_json([CHECK_VERSION, befores, network, chains, digests, asdict(limits)]))


def judge_or_fold(text: str, out: str) -> Answer:
    """The unit of a round, which a task or a fold describes. Raises `OSError`, `ResultError`."""
    return (fold_chains if "befores" in json.loads(text) else judge_segment)(text, out)


def fold_chains(text: str, out: str) -> Answer:
    """The unit that adds segments to chains: patterns and sizes. Raises `OSError`, `ResultError`."""
    fold = Fold.from_json(text)
    store = open_store(out)
    done = results.read_receipt(store, fold.name) if fold.keep else None
    if done is not None:
        return done
    chains = _read_state(store, fold)
    settled: list[Row] = []
    faults: list[Row] = []
    for at, segment in enumerate(fold.segments):
        told(at, len(fold.segments))
        for chain, blocks, publishers in _by_chain(store, segment, fold.chains):
            state = chains.setdefault(chain, _ChainState(patterns.HabitMemory(fold.limits), Sizes()))
            rows = blocks.select(patterns.HABIT_COLUMNS).to_pylist()
            for row in state.watch.add(rows, _served(publishers), _headers(fold, chain)):
                if unshown(row["code"], row["evidence"]) is None:
                    settled.append(row)
                    state.settle(row)
                else:
                    said = f"the evidence of a finding {row['code']} does not show it"
                    place = columns_of(row, ("network", "chain", "segment", "position"))
                    faults.append(Fault(f"{schema.BLOCKS.name}/network={fold.network}", said, **place).row())
            state.sizes.add(blocks, publishers)
    pending = {chain: list(state.watch.open_runs()) for chain, state in chains.items()}
    sizes = {chain: list(state.sizes.rows(fold.network, chain)) for chain, state in chains.items()}
    tables: dict[str, tuple[Table, list[Row]]] = {
        "findings": (schema.FINDINGS, settled),
        "open": (schema.FINDINGS, [row for rows in pending.values() for row in rows]),
        "summaries": (schema.SUMMARIES, [row for rows in sizes.values() for row in rows]),
        "quarantine": (schema.QUARANTINE, faults),
    }
    digests: dict[str, list[str]] = {}
    for chain, state in sorted(chains.items()):
        found, summed = digest_rows(schema.FINDINGS, pending[chain]), digest_rows(schema.SUMMARIES, sizes[chain])
        digests[str(chain)] = [state.settled, found.hex(), summed.hex()]
    counts = {"settled": _counts(settled), "open": _counts(tables["open"][1]), "quarantined": len(faults)}
    receipt = {**fields_of(fold, ("network", "first", "last", "fingerprint")), **counts, "chains": digests}
    others = {"state.json.z": _pack(chains)}
    return results.write_result(store, fold.name, tables, receipt, others=others, keep=fold.keep)


@dataclass(slots=True)
class _ChainState:
    """One chain so far; `settled` is a running digest over its findings that nothing changes any more."""

    watch: patterns.HabitMemory
    sizes: Sizes
    settled: str = ""

    def settle(self, row: Row) -> None:
        self.settled = blake2_256(self.settled.encode() + encode_row(schema.FINDINGS, row)).hex()


def _pack(chains: Mapping[int, _ChainState]) -> bytes:
    body = [[chain, s.watch.to_json(), s.sizes.to_json(), s.settled] for chain, s in sorted(chains.items())]
    return zlib.compress(canonical_json(body), 1)


def _read_state(store: Store, fold: Fold) -> dict[int, _ChainState]:
    """What the folds before left of these chains."""
    found: dict[int, _ChainState] = {}
    for path in fold.befores:
        try:
            for chain, watch, sizes, settled in json.loads(zlib.decompress(results.read_file(store, path))):
                if chain in fold.chains:
                    memory = patterns.HabitMemory.from_json(watch, fold.limits)
                    found[chain] = _ChainState(memory, Sizes.from_json(sizes), settled)
        except (ValueError, KeyError, TypeError, zlib.error) as error:
            raise results.ResultError(f"{store}/{path}: {error}") from None
    return found


def _by_chain(
    store: Store, segment: tuple[results.Rows | None, results.Rows | None], chains: Sequence[int]
) -> Iterator[tuple[int, pa.Table, pa.Table]]:
    """Those of the chains that a task's result has, each with its block and publisher measures in order."""
    wanted = list(dict.fromkeys((*patterns.HABIT_COLUMNS, *BLOCK_COLUMNS)))
    blocks = _table(store, segment[0], schema.BLOCK_MEASURES, wanted)
    names = list(dict.fromkeys(("chain", "position", *patterns.SERVED_COLUMNS, *PUBLISHER_COLUMNS)))
    publishers = _table(store, segment[1], schema.PUBLISHER_MEASURES, names)
    for chain in sorted({*chains}.intersection(pc.unique(blocks["chain"]).to_pylist())):
        mine = blocks.filter(pc.equal(blocks["chain"], chain)).sort_by("position")
        yield chain, mine, publishers.filter(pc.equal(publishers["chain"], chain))


def _table(store: Store, rows: results.Rows | None, table: Table, names: Sequence[str]) -> pa.Table:
    empty = pa.schema([table.schema.field(name) for name in names]).empty_table()
    return (
        empty if rows is None else pa.concat_tables([empty, results.read_some(store, rows, table, names).select(names)])
    )


def _served(publishers: pa.Table) -> patterns.PublisherRows:
    rows: dict[int, list[Row]] = {}
    for row in publishers.select(["position", *patterns.SERVED_COLUMNS]).to_pylist():
        rows.setdefault(row["position"], []).append(row)
    return lambda segment, position: rows.get(position, [])  # noqa: ARG005  # of one segment


def _headers(fold: Fold, chain: int) -> patterns.Headers:
    """A chain's headers from the history, for the few that are asked for; those of one segment are kept."""

    @lru_cache(maxsize=1)
    def read(segment: int) -> dict[int, bytes]:
        commits = commits_before(fold.root, fold.network, segment + 1)
        files = next((commit.files for commit in commits if commit.segment == segment), ())
        found: dict[int, bytes] = {}
        for entry in (each for each in files if (each.table, each.chain) == (schema.BLOCKS.name, chain)):
            for unit in read_history(open_store(fold.root), entry):
                if not isinstance(unit, Fault):
                    columns = (unit.column(name).to_pylist() for name in ("position", "header"))
                    found.update(zip(*columns, strict=True))
        return found

    return lambda segment, position: read(segment).get(position)

"""`pubsub_audit`: blocks judged straight from a history; a row has one segment of one chain with all that was found."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import pyarrow as pa
from pyspark.sql import datasource as api

from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.manifest import Commit
from pubsub_emulator.spark_audit.history.reader import Fault, History
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.schema import Table
from pubsub_emulator.spark_audit.history.storage import open_store
from pubsub_emulator.spark_audit.judge.check import check_chain
from pubsub_emulator.spark_audit.judge.shared import Shared
from pubsub_emulator.spark_audit.judge.task import ChainFiles, Task, make_tasks
from pubsub_emulator.spark_audit.spark.sources.common import Offset, Options, Source, fitted, may_match, plain
from pubsub_emulator.spark_audit.spark.sources.history import commits_between, ends

SEGMENTS: Final = "segments"
FOUND: Final = {
    table.name: table
    for table in (
        schema.BLOCK_MEASURES,
        schema.PUBLISHER_MEASURES,
        schema.WASTE,
        schema.PROOF_PARTS,
        schema.FINDINGS,
        schema.QUARANTINE,
    )
}
"""The tables that judging a segment fills."""
_KNOWN_UNJUDGED: Final = {"network", "chain", "segment", "candidates"}
_SCALARS: Final = pa.schema(
    [
        ("network", pa.string()),
        ("chain", pa.int64()),
        ("segment", pa.int64()),
        ("candidates", pa.int64()),
        ("complete", pa.bool_()),
        ("judged", pa.int64()),
    ]
)
_LISTS: Final = [(name, pa.list_(plain(pa.struct(list(each.wider.schema))))) for name, each in FOUND.items()]


@dataclass
class TaskPartition(api.InputPartition):
    """A segment of some chains as text, or faults of manifests."""

    task: str | None
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True)
class WantedAudit:
    """The part of a history's judgement that a query reads."""

    root: str
    table: str
    schema: pa.Schema

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Self:
        """Read the options. Raises `SourceError`."""
        options = Options(AuditSource.name(), given)
        options.check("table")
        table = options.choice("table", (SEGMENTS, *FOUND), SEGMENTS)
        every = pa.schema([*_SCALARS, *_LISTS]) if table == SEGMENTS else FOUND[table].wider.schema
        return cls(options.address(), table, options.columns(every))

    def all(self, filters: Sequence[api.Filter]) -> list[TaskPartition]:
        """A segment each. Raises `CommitError` where there is no history, `OSError`."""
        history = History.open(self.root)
        return _partitions(history.root.uri, history.commits, history.faults, {}, filters)

    def newest(self) -> Offset:
        """By network, the segment after those that follow each other. Raises `CommitError`, `OSError`."""
        return ends(open_store(self.root))

    def between(self, start: Offset, end: Offset) -> list[TaskPartition]:
        """The segments between two offsets; each needs the checkpoints of the one before."""
        store = open_store(self.root)
        commits, faults = commits_between(store, {network: at - 1 for network, at in start.items()}, end)
        return _partitions(store.uri, commits, faults, start)

    def read(self, partition: TaskPartition) -> Iterator[pa.Table]:
        """The rows of a segment. Raises `OSError`."""
        yield from self._quarantined(partition.faults)
        if partition.task is None:
            return
        task = Task.from_json(partition.task)
        place = {"network": task.network, "segment": task.segment}
        if self.table == SEGMENTS and set(self.schema.names) <= _KNOWN_UNJUDGED:
            rows = [{**place, "chain": each.chain, "candidates": _candidates(each)} for each in task.chains]
            yield pa.Table.from_pylist(rows, schema=_SCALARS)
            return
        shared = Shared.of(task)
        for files in task.chains:
            found = check_chain(task, files, shared)
            if self.table == SEGMENTS:
                yield _nested({name: getattr(found.receipt, name) for name in _SCALARS.names}, found.tables())
            else:
                yield FOUND[self.table].arrow(found.tables()[FOUND[self.table]])
        yield from self._quarantined(shared.faults)

    def _quarantined(self, faults: Sequence[Fault]) -> Iterator[pa.Table]:
        rows = [fault.row() for fault in faults]
        if rows and self.table == schema.QUARANTINE.name:
            yield schema.QUARANTINE.arrow(rows)
        for row in rows if self.table == SEGMENTS else ():
            scalars = {name: row.get(name) for name in _SCALARS.names} | {"complete": False}
            yield _nested(scalars, {schema.QUARANTINE: [row]})


class AuditSource(Source):
    """Options: `path`, `table` (segments), `columns`.

    The table `segments` has `network`, `chain`, `segment`, the numbers of `candidates` and of those `judged`, whether
    all could be judged (`complete`), and every other table as a list of structs, so that one judging serves several
    questions: `SELECT f.* FROM audit LATERAL VIEW explode(findings) AS f`. Where `columns` names none but the first
    four, manifests are read and nothing is judged. Filters on network, chain and segment spare the rest; a stream
    judges every segment once. Findings about the habits of a chain need all its segments: `pubsub audit` makes them.
    """

    wanted = WantedAudit

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "pubsub_audit"


def _candidates(files: ChainFiles) -> int:
    return sum(entry.rows for entry in files.blocks)


def _nested(scalars: Mapping[str, object], tables: Mapping[Table, list[Row]]) -> pa.Table:
    """One row: the scalars, and each table as a list of structs."""
    columns = {each.name: pa.array([scalars[each.name]], each.type) for each in _SCALARS}
    for name, kind in _LISTS:
        found = fitted(FOUND[name].arrow(tables.get(FOUND[name], [])), kind.value_type)
        structs = found.to_struct_array().combine_chunks()
        columns[name] = pa.ListArray.from_arrays(pa.array([0, len(found)], pa.int32()), structs)
    return pa.table(columns)


def _partitions(
    root: str,
    commits: Sequence[Commit],
    faults: Sequence[Fault],
    start: Offset,
    filters: Sequence[api.Filter] = (),
) -> list[TaskPartition]:
    parts = [TaskPartition(None, tuple(faults))] if faults else []
    for task in make_tasks(root, commits):
        place = {name: (getattr(task, name),) * 2 for name in ("network", "segment")}
        chains = tuple(each for each in task.chains if may_match(filters, chain=(each.chain,) * 2, **place))
        if chains and task.segment >= start.get(task.network, 0):
            parts.append(TaskPartition(replace(task, chains=chains).to_json()))
    return parts

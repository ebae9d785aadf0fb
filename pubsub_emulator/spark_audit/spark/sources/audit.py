"""`pubsub_audit`: blocks judged straight from a history; a row has one segment of one chain with all that was found."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa
from pyspark.sql import datasource as api

from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.manifest import Commit
from pubsub_emulator.spark_audit.history.reader import Fault
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.schema import Table
from pubsub_emulator.spark_audit.judge.check import check_chain
from pubsub_emulator.spark_audit.judge.shared import Shared
from pubsub_emulator.spark_audit.judge.task import Task, make_tasks
from pubsub_emulator.spark_audit.judge.units import ITEM_TABLES
from pubsub_emulator.spark_audit.spark.sources.common import Offset, Source, fitted, may_match, plain
from pubsub_emulator.spark_audit.spark.sources.history import OfHistory

SEGMENTS: Final = "segments"
FOUND: Final = {table.name: table for table in ITEM_TABLES}
_KNOWN_UNJUDGED: Final = {"network", "chain", "segment", "candidates"}
_INT: Final = pa.int64()
_SCALARS: Final = pa.schema(
    {
        "network": pa.string(),
        "chain": _INT,
        "segment": _INT,
        "candidates": _INT,
        "complete": pa.bool_(),
        "judged": _INT,
    }
)
_LISTS: Final = [(name, pa.list_(plain(pa.struct(list(each.wider.schema))))) for name, each in FOUND.items()]


class WantedAudit(OfHistory):
    """A history's judgement; a partition is a segment of some chains, or faults of manifests."""

    source = "pubsub_audit"
    options = ("table",)
    before = 1  # a segment needs the checkpoints of the one before

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__(given)
        self.table = self.choice("table", (SEGMENTS, *FOUND), SEGMENTS)
        every = pa.schema([*_SCALARS, *_LISTS]) if self.table == SEGMENTS else FOUND[self.table].wider.schema
        self.schema = self.columns(every)

    def rows(self, part: Task | Sequence[Fault]) -> Iterator[pa.Table]:
        """The rows of a segment. Raises `OSError`."""
        if not isinstance(part, Task):
            yield from self._quarantined(part)
            return
        place = {"network": part.network, "segment": part.segment}
        if self.table == SEGMENTS and set(self.schema.names) <= _KNOWN_UNJUDGED:
            counts = {each.chain: sum(entry.rows for entry in each.blocks) for each in part.chains}
            rows = [{**place, "chain": chain, "candidates": count} for chain, count in counts.items()]
            yield pa.Table.from_pylist(rows, schema=_SCALARS)
            return
        shared = Shared.of(part)
        for files in part.chains:
            found = check_chain(part, files, shared)
            if self.table == SEGMENTS:
                yield _nested({name: getattr(found.receipt, name) for name in _SCALARS.names}, found.tables())
            else:
                yield FOUND[self.table].arrow(found.tables()[FOUND[self.table]])
        yield from self._quarantined(shared.faults)

    def cut(self, commits: Sequence[Commit], faults: Sequence[Fault], start: Offset) -> list[api.InputPartition]:
        """A segment each."""
        parts = [api.InputPartition(faults)] if faults else []
        for task in make_tasks(self.root, commits):
            place = {name: (getattr(task, name),) * 2 for name in ("network", "segment")}
            chains = [each for each in task.chains if may_match(self.filters, {**place, "chain": (each.chain,) * 2})]
            if chains and task.segment >= start.get(task.network, 0):
                parts.append(api.InputPartition(replace(task, chains=tuple(chains))))
        return parts

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


def _nested(scalars: Mapping[str, object], tables: Mapping[Table, list[Row]]) -> pa.Table:
    """One row: the scalars, and each table as a list of structs."""
    columns = {each.name: pa.array([scalars[each.name]], each.type) for each in _SCALARS}
    for name, kind in _LISTS:
        found = fitted(FOUND[name].arrow(tables.get(FOUND[name], [])), kind.value_type)
        structs = found.to_struct_array().combine_chunks()
        columns[name] = pa.ListArray.from_arrays(pa.array([0, len(found)], pa.int32()), structs)
    return pa.table(columns)

"""The format `pubsub_audit`: segments of chains, judged directly from a history."""

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa
from pyspark.sql import datasource as api

from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.columns import plain_schema
from pubsub_emulator.spark_audit.history.manifest import Commit
from pubsub_emulator.spark_audit.history.reader import Fault
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.schema import Table
from pubsub_emulator.spark_audit.judge.task import Task, make_tasks
from pubsub_emulator.spark_audit.spark.sources.common import (
    may_match,
    partitions_of,
    same_bounds,
)
from pubsub_emulator.spark_audit.spark.sources.history import OfHistory

SEGMENTS: Final = "segments"
"""The table with one row for each segment of a chain."""
FOUND: Final = {table.name: table for table in schema.OF_SEGMENT}
"""The other tables by name."""
_KNOWN: Final = pa.schema(
    {
        "network": pa.string(),
        "chain": pa.int64(),
        "segment": pa.int64(),
        "candidates": pa.int64(),
    }
)
"""Columns of `segments` that follow from the manifests alone."""
_SCALARS: Final = pa.schema([*_KNOWN, ("complete", pa.bool_()), ("judged", pa.int64())])
"""Columns of `segments` that are not lists."""
_LISTS: Final = [
    (name, pa.list_(pa.struct(list(table.wider.schema)))) for name, table in FOUND.items()
]
_SEGMENTS: Final = plain_schema(pa.schema([*_SCALARS, *_LISTS]))


class AuditSource(OfHistory):
    """A reader of the audit of a history. Options: `path`, `table` (default `segments`), `columns`.

    The table `segments` has `network`, `chain`, `segment`, the numbers of `candidates` and of those
    that were `judged`, `complete` (whether all could be judged), and every other table as a list of
    structs. So judging a segment once can answer several questions: `SELECT f.* FROM audit LATERAL
    VIEW explode(findings) AS f`. If `columns` names only some of the first four, the manifests are
    read and no block is judged.

    With filters on network, chain and segment, other segments are not judged. A stream judges every
    segment once. There are no findings about patterns, because they need all segments of a chain;
    `pubsub audit` makes them.

    A partition is a segment of some chains, or the faults of manifests.
    """

    format = "pubsub_audit"
    known = (*OfHistory.known, "table")
    before = 1
    """A segment needs the checkpoints in the commit of the segment before."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self.table = self.choice("table", (SEGMENTS, *FOUND), SEGMENTS)
        self.columns = self.chosen(
            _SEGMENTS if self.table == SEGMENTS else FOUND[self.table].wider.schema
        )

    def rows(self, part: Task | Sequence[Fault]) -> Iterator[pa.Table]:
        """Yield the rows of a partition. Raises `OSError`."""
        if not isinstance(part, Task):
            yield from self._read_errors(part)
            return
        place = {"network": part.network, "segment": part.segment}
        if self.table == SEGMENTS and set(self.columns.names) <= set(_KNOWN.names):
            # The manifests have these columns, so the segment need not be judged.
            counts = {
                files.chain: sum(entry.rows for entry in files.blocks) for files in part.chains
            }
            rows = [
                {**place, "chain": chain, "candidates": count} for chain, count in counts.items()
            ]
            yield pa.Table.from_pylist(rows, schema=_KNOWN)
            return
        # Only a process that judges blocks needs these modules, which take a fifth of a second.
        from pubsub_emulator.spark_audit.judge.check import check_chain  # noqa: PLC0415  # as above
        from pubsub_emulator.spark_audit.judge.shared import Shared  # noqa: PLC0415  # as above

        shared = Shared.of(part)
        for files in part.chains:
            result = check_chain(part, files, shared)
            if self.table == SEGMENTS:
                yield _nested(
                    {name: getattr(result.receipt, name) for name in _SCALARS.names},
                    result.tables(),
                )
            else:
                yield FOUND[self.table].arrow(result.tables()[FOUND[self.table]])
        yield from self._read_errors(shared.faults)

    def cut(
        self, commits: Sequence[Commit], faults: Sequence[Fault], start: Mapping[str, int]
    ) -> list[api.InputPartition]:
        """Return a partition for each segment and group of chains, and one for faults."""
        parts: list[Task | Sequence[Fault]] = [faults] if faults else []
        for task in make_tasks(self.root, commits):
            chains = [
                files
                for files in task.chains
                if self.fits({"chain": files.chain})
                and may_match(
                    self.filters,
                    same_bounds(network=task.network, segment=task.segment, chain=files.chain),
                )
            ]
            first = max(start.get(task.network, 0), self.begin)
            if chains and task.segment >= first:
                parts.append(replace(task, chains=tuple(chains)))
        return partitions_of(parts)

    def _read_errors(self, faults: Sequence[Fault]) -> Iterator[pa.Table]:
        """Yield faults as rows of `read_errors`, or of `segments` with incomplete segments."""
        rows = [fault.row() for fault in faults]
        if rows and self.table == schema.READ_ERRORS.name:
            yield schema.READ_ERRORS.arrow(rows)
        if self.table == SEGMENTS:
            for row in rows:
                scalars = {name: row.get(name) for name in _SCALARS.names} | {"complete": False}
                yield _nested(scalars, {schema.READ_ERRORS: [row]})


def _nested(scalars: Mapping[str, object], tables: Mapping[Table, list[Row]]) -> pa.Table:
    """Return one row with scalars, and each table as a list of structs."""
    lists = {name: table.arrow(tables.get(table, [])).to_pylist() for name, table in FOUND.items()}
    return pa.Table.from_pylist([{**scalars, **lists}], schema=_SEGMENTS)

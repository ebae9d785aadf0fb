"""The units of an audit: judge one segment, look through one chain, each into a result directory of its own."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from pubsub_emulator.spark_audit.audit.aggregate import BLOCK_COLUMNS, PUBLISHER_COLUMNS, summarize
from pubsub_emulator.spark_audit.audit.check import SegmentResult, check_segment
from pubsub_emulator.spark_audit.audit.findings import Thresholds
from pubsub_emulator.spark_audit.audit.patterns import HABIT_COLUMNS, SERVED_COLUMNS, chain_habits
from pubsub_emulator.spark_audit.audit.results import read_groups, read_receipt, read_rows, write_result
from pubsub_emulator.spark_audit.engine.segment_task import CHECK_VERSION, Task
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.commit import FileEntry, canonical_json, digest_of
from pubsub_emulator.spark_audit.history.reader import Fault, read_file
from pubsub_emulator.spark_audit.history.rows import Row


@dataclass(frozen=True, slots=True)
class ChainTask:
    """All judged segments of one chain, in order, for what only a history shows."""

    root: str
    network: str
    chain: int
    folders: tuple[str, ...]
    blocks: tuple[tuple[FileEntry, ...], ...]
    limits: Thresholds
    fingerprint: str

    @property
    def name(self) -> str:
        """Where the results stand, below the audit's output."""
        return f"network={self.network}/chain={self.chain}/{self.fingerprint[:16]}"

    def to_json(self) -> str:
        """As it travels to a worker."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> "ChainTask":
        """The inverse of `to_json`."""
        data: dict[str, Any] = json.loads(text)
        data["folders"] = tuple(data["folders"])
        data["blocks"] = tuple(tuple(FileEntry.from_json(entry) for entry in group) for group in data["blocks"])
        data["limits"] = Thresholds(**data["limits"])
        return ChainTask(**data)


def make_chain_task(
    out: Path, tasks: Sequence[Task], receipts: Sequence[dict[str, Any]], limits: Thresholds
) -> ChainTask:
    """The task over all segments of one chain; its fingerprint covers what their judgement gave."""
    first = tasks[0]
    digests = [receipt["digests"] for receipt in receipts]
    body = [CHECK_VERSION, first.network, first.chain, digests, asdict(limits)]
    return ChainTask(
        first.root,
        first.network,
        first.chain,
        tuple(str(out / "items" / task.name) for task in tasks),
        tuple(task.blocks for task in tasks),
        limits,
        digest_of(canonical_json(body)),
    )


def judge_segment(text: str, out: Path) -> dict[str, Any]:
    """The unit that judges the segment a task names, unless its result is there. Raises `OSError`."""
    task = Task.from_json(text)
    folder = out / "items" / task.name
    done = read_receipt(folder)
    if done is not None:  # another attempt at the unit was here, and its executor was lost after that
        return done
    result: SegmentResult = check_segment(task)
    return write_result(folder, result.tables(), {**result.receipt, "fingerprint": task.fingerprint})


def look_through_chain(text: str, out: Path) -> dict[str, Any]:
    """The unit that looks through the chain a task names: its habits and its sizes. Raises `OSError`, `ResultError`."""
    task = ChainTask.from_json(text)
    habits = list(chain_habits(_block_rows(task), _Publishers(task), _Headers(task), task.limits))
    sizes = summarize(
        task.network,
        task.chain,
        _columns(task, schema.BLOCK_MEASURES, BLOCK_COLUMNS),
        _columns(task, schema.PUBLISHER_MEASURES, PUBLISHER_COLUMNS),
    )
    receipt = {"network": task.network, "chain": task.chain, "fingerprint": task.fingerprint}
    return write_result(out / "chains" / task.name, {schema.FINDINGS: habits, schema.SUMMARIES: sizes}, receipt)


def _files(task: ChainTask, table: schema.Table) -> Iterator[Path]:
    """The result files of a table among a chain's segments; one without rows has none."""
    for folder in task.folders:
        path = Path(folder) / f"{table.name}.parquet"
        if path.is_file():
            yield path


def _columns(task: ChainTask, table: schema.Table, names: Sequence[str]) -> pa.Table:
    """Some columns of a table, over all of a chain's segments. Raises `ResultError`."""
    empty = pa.schema([table.schema.field(name) for name in names]).empty_table()
    parts = [part for path in _files(task, table) for part in read_groups(path, table, names)]
    return pa.concat_tables([empty, *(part.select(names) for part in parts)])


def _block_rows(task: ChainTask) -> Iterator[Row]:
    for path in _files(task, schema.BLOCK_MEASURES):
        yield from read_rows(path, schema.BLOCK_MEASURES, HABIT_COLUMNS)


class _Publishers:
    """A chain's publisher measures by block, one segment in memory at a time."""

    def __init__(self, task: ChainTask) -> None:
        self.folders = iter(task.folders)
        self.segment: int | None = None
        self.rows: dict[int, list[Row]] = {}

    def __call__(self, segment: int, position: int) -> list[Row]:
        while self.segment is None or self.segment < segment:
            folder = next(self.folders, None)
            if folder is None:
                return []
            self.rows = {}
            self.segment = int(Path(folder).name.split("-")[0])
            path = Path(folder) / f"{schema.PUBLISHER_MEASURES.name}.parquet"
            if path.is_file():
                for row in read_rows(path, schema.PUBLISHER_MEASURES, ("position", *SERVED_COLUMNS)):
                    self.rows.setdefault(row["position"], []).append(row)
        return self.rows.get(position, []) if self.segment == segment else []


class _Headers:
    """A chain's headers from the history, for the few that are asked for."""

    def __init__(self, task: ChainTask) -> None:
        self.root = Path(task.root)
        self.files = {entry.segment: group for group in task.blocks for entry in group}

    def __call__(self, segment: int, position: int) -> bytes | None:
        for entry in self.files.get(segment, ()):
            for unit in read_file(self.root, entry):
                if isinstance(unit, Fault):
                    continue
                for row in unit.select(["position", "header"]).to_pylist():
                    if row["position"] == position:
                        header: bytes | None = row["header"]
                        return header
        return None

"""The units of work that both engines run: judge one segment, look through one chain, each into a result directory."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from primitives.errors import PubsubError
from spark_audit import schema
from spark_audit.aggregate import summarize
from spark_audit.check import SegmentResult, check_segment
from spark_audit.commit import FileEntry, canonical_json, digest_of
from spark_audit.findings import Thresholds
from spark_audit.habits import chain_habits
from spark_audit.reader import Fault, read_file
from spark_audit.results import read_receipt, read_rows, write_result
from spark_audit.rows import Row
from spark_audit.task import CHECK_VERSION, Task

Report = Callable[[int], None]
"""Told how many units are done."""


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


def verify_task(task: Task, out: Path) -> dict[str, Any]:
    """Judge a segment and write what was found, unless that is there. Raises `OSError` when it cannot be written."""
    folder = out / "items" / task.name
    done = read_receipt(folder)
    if done is not None:  # another attempt at the unit was here, and its executor was lost after that
        return done
    result: SegmentResult = check_segment(task)
    return write_result(folder, result.tables(), {**result.receipt, "fingerprint": task.fingerprint})


def habits_task(task: ChainTask, out: Path) -> dict[str, Any]:
    """Look through a chain and write what its habits are. Raises `OSError`, `ResultError`."""
    limits = task.limits
    rows = list(chain_habits(_block_rows(task), _Publishers(task), _Headers(task), limits))
    receipt = {"network": task.network, "chain": task.chain, "fingerprint": task.fingerprint}
    return write_result(out / "habits" / task.name, {schema.FINDINGS: rows}, receipt)


class EngineLost(PubsubError):
    """The engine cannot be started, or was lost with work undone."""


class Engine(Protocol):
    """Who runs the units: this process, or Spark."""

    name: str

    def verify(self, tasks: Sequence[Task], out: Path, report: Report) -> list[dict[str, Any]]:
        """The receipts of all tasks, in their order."""

    def habits(self, tasks: Sequence[ChainTask], out: Path) -> list[dict[str, Any]]:
        """The receipts of all chains, in their order."""

    def summarize(self, blocks: Sequence[Path], publishers: Sequence[Path]) -> list[Row]:
        """Rows of `summaries` over result files."""

    def close(self) -> None:
        """Stop what was started."""


class PythonEngine:
    """Everything in this process, one unit after the other."""

    name = "python"

    def verify(self, tasks: Sequence[Task], out: Path, report: Report) -> list[dict[str, Any]]:
        """The receipts of all tasks, in their order."""
        receipts = []
        for done, task in enumerate(tasks, 1):
            receipts.append(verify_task(task, out))
            report(done)
        return receipts

    def habits(self, tasks: Sequence[ChainTask], out: Path) -> list[dict[str, Any]]:
        """The receipts of all chains, in their order."""
        return [habits_task(task, out) for task in tasks]

    def summarize(self, blocks: Sequence[Path], publishers: Sequence[Path]) -> list[Row]:
        """Rows of `summaries` over result files."""
        return summarize(
            (row for path in blocks for row in read_rows(path, schema.BLOCK_MEASURES)),
            (row for path in publishers for row in read_rows(path, schema.PUBLISHER_MEASURES)),
        )

    def close(self) -> None:
        """Nothing was started."""


def _block_rows(task: ChainTask) -> Iterator[Row]:
    for folder in task.folders:
        path = Path(folder) / f"{schema.BLOCK_MEASURES.name}.parquet"
        if path.is_file():
            yield from read_rows(path, schema.BLOCK_MEASURES)


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
                for row in read_rows(path, schema.PUBLISHER_MEASURES):
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

"""The work of an audit: units are run on an engine unless the output has their results already."""

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from pubsub_emulator.spark_audit.engine.engine import Answer, Mapper, Unit
from pubsub_emulator.spark_audit.history.address import is_remote
from pubsub_emulator.spark_audit.history.manifest import COMMITS, MOST_BYTES
from pubsub_emulator.spark_audit.history.storage import Stamp, Store, open_store
from pubsub_emulator.spark_audit.judge import results
from pubsub_emulator.spark_audit.judge.task import Task
from pubsub_emulator.spark_audit.judge.units import Fold, judge_or_fold
from pubsub_emulator.spark_audit.tables.pack import UNIT, pack, pack_here


@dataclass(frozen=True, slots=True)
class AuditProgress:
    """The state of the work, for a progress display."""

    phase: str
    """`start`, `verify`, `chains`, `summary` or `tables`."""
    done: float
    """Units done, plus the finished shares of units that are running."""
    total: int


Watcher = Callable[[AuditProgress], None]

_ELSEWHERE: Final = "driver and workers must share the output, for example an s3:// address"


@dataclass(slots=True)
class Work:
    """The engine of one run, and the result files in its output."""

    out: Store
    opener: Callable[[int], Mapper]
    """Starts an engine for this many units. It is called at most once."""
    watch: Watcher
    opened: Mapper | None = None
    """The engine while it runs."""
    engine: str | None = None
    """The name of the engine that ran, `None` if there was no work."""
    judged: int = 0
    """Units that this run judged, rather than taking the results of an earlier run."""
    candidates: int = 0
    """Candidates in the units that this run judged."""
    seconds: float = 0.0
    """Seconds in which units were judged, for the report's rate."""
    result_files: dict[str, Stamp] = field(default_factory=dict)
    """Files of results that are in the output, by path."""

    @property
    def cores(self) -> int:
        """The number of the engine's cores, 0 if it does not run."""
        return 0 if self.opened is None else self.opened.cores

    def list_results(self) -> None:
        """List the results that earlier runs left in the output. Raises `OSError`."""
        for folder in results.FOLDERS:
            self.result_files.update(self.out.walk(folder))

    def close(self) -> None:
        """Stop the engine if it was started."""
        if self.opened is not None:
            self.opened.close()
            self.opened = None

    def run(
        self,
        folds: Sequence[Fold],
        tasks: Sequence[Task],
        known_tasks: Sequence[results.SegmentReceipt | None],
        left: int,
    ) -> tuple[list[results.FoldReceipt], list[results.SegmentReceipt]]:
        """Run folds and tasks, and return their receipts in the same order.

        `known_tasks` has for each task the receipt of an earlier run, or `None`. Work whose result
        is known or in the output is not done again. `left` is the number of segments in later
        rounds, for the progress display. Raises `OSError`, `ResultError`, `EngineLost`.
        """
        known = [*map(self._known_fold, folds), *known_tasks]
        work: list[Fold | Task] = [*folds, *tasks]
        todo = [unit for unit, receipt in zip(work, known, strict=True) if receipt is None]
        fresh = sum(receipt is None for receipt in known_tasks)
        started = time.monotonic()
        self._remove_receipts(todo)
        made = iter(self._map(todo, left, fresh))
        receipts: list[Any] = [next(made) if receipt is None else receipt for receipt in known]
        # Folds run at the same time. A call that only folds does not count as judging.
        if fresh:
            self.seconds += time.monotonic() - started
        judged = receipts[len(folds) :]
        for receipt, known_receipt in zip(judged, known_tasks, strict=True):
            if known_receipt is None:
                self.candidates += sum(chain["candidates"] for chain in receipt["chains"])
        return receipts[: len(folds)], judged

    def whole_task(self, task: Task) -> results.SegmentReceipt | None:
        """Return the receipt of a task if its result is complete and may be reused, or `None`."""
        return cast("results.SegmentReceipt | None", self._whole(task.name))

    def _known_fold(self, fold: Fold) -> results.FoldReceipt | None:
        """Return the receipt of a fold if its result is complete and may be reused, or `None`.

        A fold over results that may not be reused must be done again.
        """
        if not fold.keep:
            return None
        return cast("results.FoldReceipt | None", self._whole(fold.name))

    def _whole(self, folder: str) -> results.CommonReceipt | None:
        """Return the receipt in a folder of results if all its files are there and undamaged.

        Returns `None` as well if the result must not be reused.
        """
        if f"{folder}/{results.RECEIPT}" not in self.result_files:
            return None
        receipt = cast("results.CommonReceipt | None", results.read_receipt(self.out, folder))
        if receipt is None or not receipt["kept"]:
            return None
        is_whole = results.files_are_whole(self.out, receipt, self.result_files)
        return receipt if is_whole else None

    def _remove_receipts(self, tasks: Iterable[Task | Fold]) -> None:
        """Remove the receipts of damaged results that are about to be made again.

        If a worker found the old receipt, it would believe that the work is done.
        """
        for task in tasks:
            if f"{task.name}/{results.RECEIPT}" in self.result_files:
                self.out.remove(f"{task.name}/{results.RECEIPT}")

    def _map(self, tasks: Sequence[Task | Fold], left: int, fresh: int) -> list[Answer]:
        """Run tasks on the engine, starting it first if necessary, and return their receipts.

        `fresh` is the number of tasks that judge segments, `left` the number of segments in later
        rounds; both only matter for the progress display.
        """
        is_judging = fresh > 0 or left > 0
        phase = "verify" if is_judging else "chains"
        already_done = self.judged if is_judging else 0
        total = already_done + len(tasks) + left
        self.watch(AuditProgress(phase, already_done, total))
        if not tasks:
            return []
        if self.opened is None:
            self.watch(AuditProgress("start", 0, total))
            self.opened = self.opener(len(tasks) + left)
            self.engine = self.opened.name
            self.watch(AuditProgress(phase, already_done, total))
        texts = [task.to_json() for task in tasks]
        weights = [task.weight for task in tasks]

        def report(count: float) -> None:
            self.watch(AuditProgress(phase, already_done + count, total))

        receipts = self.opened.map(
            judge_or_fold,
            texts,
            self.out.uri,
            report,
            weights,
        )
        self.judged += fresh
        for folder in {task.name.partition("/")[0] for task in tasks}:
            # One listing of a folder is much cheaper than a request for each file.
            self.result_files.update(self.out.walk(folder))
        self._ensure_written(receipts)
        return receipts

    def _ensure_written(self, receipts: Iterable[Answer]) -> None:
        """Raise `ResultError` if a worker's files are not in the output.

        This happens if driver and workers have different file systems.
        """
        for receipt in receipts:
            for path, size in receipt["files"].values():
                stamp = self.result_files.get(path)
                if stamp is None or stamp.size != size:
                    raise results.ResultError(
                        f"{self.out}/{path} is missing although a worker wrote it: {_ELSEWHERE}"
                    )

    def pack(self, tasks: Sequence[str], store: Store) -> Sequence[Answer]:
        """Write parts of tables, on the engine if it runs."""
        if self.opened is None or not tasks:
            return pack_here(tasks, store)
        return self.opened.map(pack, tasks, store.uri, lambda _done: None)

    def read_manifests(self, history: Store, names: Sequence[str]) -> Store:
        """Return the history with the content of these manifests, if workers can read them faster.

        From a remote store, many workers can read more files at the same time than this process.
        """
        if self.opened is None or not is_remote(history.uri):
            return history
        texts: dict[str, bytes] = {}
        for answer in self._run_in_chunks(read_manifests, names, history):
            texts |= {path: text.encode() for path, text in answer.items()}
        return history.holding(texts)

    def remove(self, paths: Iterable[str]) -> None:
        """Remove files of the output, on the engine if it runs and the output is remote."""
        removed = list(paths)
        for path in removed:
            self.result_files.pop(path, None)
        self._run_in_chunks(remove_files, removed, self.out)

    def remove_gathered(self, gathered: Sequence[str]) -> None:
        """Remove result files whose rows are in the tables now.

        If there are no other results, the whole folder is cleared, which is much faster than
        removing files one by one.
        """
        item_files = {path for path in self.result_files if path.startswith(f"{results.ITEMS}/")}
        if not gathered or not item_files.issubset(gathered):
            self.remove(gathered)
            return
        self.out.clear(results.ITEMS)
        for path in gathered:
            self.result_files.pop(path, None)

    def _run_in_chunks(self, unit: Unit, items: Iterable[str], store: Store) -> list[Answer]:
        """Run a unit over chunks of items and return an answer for each chunk.

        The chunks run on the engine if it runs and the store is remote, otherwise in this process.
        """
        item_list = list(items)
        tasks = [
            json.dumps(item_list[start : start + UNIT]) for start in range(0, len(item_list), UNIT)
        ]
        if not tasks or self.opened is None or not is_remote(store.uri):
            return [unit(task, store.uri) for task in tasks]
        return self.opened.map(unit, tasks, store.uri, lambda _done: None)


def read_manifests(text: str, history: str) -> Answer:
    """Read manifests on a worker and return their texts by path.

    A manifest that cannot be read is left out.
    """
    store = open_store(history)

    def read(name: str) -> tuple[str, str] | None:
        # If this fails, the driver reads the manifest again and reports the error.
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return f"{COMMITS}/{name}", store.read(f"{COMMITS}/{name}", MOST_BYTES).decode()
        return None

    return dict(entry for entry in store.each(read, json.loads(text)) if entry is not None)


def remove_files(text: str, out: str) -> Answer:
    """Remove files on a worker. A file that cannot be removed stays until a later run."""
    store = open_store(out)

    def remove(path: str) -> None:
        with contextlib.suppress(OSError):
            store.remove(path)

    for _ in store.each(remove, json.loads(text)):
        pass
    return {}

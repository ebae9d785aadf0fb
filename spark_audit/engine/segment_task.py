"""Work items: one segment of one chain, with the files that it needs and a fingerprint of all that its result rests on.

Segments are verified apart from each other, so a task is what Spark distributes, what a re-run skips when nothing of it
changed (AU-6), and what a damaged file spoils at most.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from pubsub_emulator.primitives.version import VERSION
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.commit import FileEntry, canonical_json, digest_of
from pubsub_emulator.spark_audit.history.reader import History

CHECK_VERSION: Final = 4
"""Raised when the same rows would be judged or measured otherwise: results of an older version are made again."""


@dataclass(frozen=True, slots=True)
class Task:
    """One segment of one chain; files are in commit order, `relay` are the headers of this segment and the last."""

    root: str
    network: str
    chain: int
    segment: int
    checkpoints: tuple[FileEntry, ...]
    blocks: tuple[FileEntry, ...]
    deliveries: tuple[FileEntry, ...]
    nodes: tuple[FileEntry, ...]
    relay: tuple[FileEntry, ...]
    fingerprint: str

    @property
    def name(self) -> str:
        """Where the results stand, below the audit's output."""
        return f"network={self.network}/chain={self.chain}/{self.segment:08d}-{self.fingerprint[:16]}"

    def to_json(self) -> str:
        """As it travels to a worker."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> "Task":
        """The inverse of `to_json`."""
        data: dict[str, Any] = json.loads(text)
        for name in ("checkpoints", "blocks", "deliveries", "nodes", "relay"):
            data[name] = tuple(FileEntry.from_json(entry) for entry in data[name])
        return Task(**data)


def make_tasks(history: History) -> list[Task]:
    """Every segment of every chain that the history speaks of, by network, chain and segment."""
    files: dict[tuple[str, str, int | None, int], list[FileEntry]] = {}
    places: dict[tuple[str, int, int], None] = {}
    for commit in history.commits:
        for entry in commit.files:
            files.setdefault((entry.table, entry.network, entry.chain, entry.segment), []).append(entry)
            if entry.chain is not None and entry.table in {schema.BLOCKS.name, schema.CHECKPOINTS.name}:
                places[entry.network, entry.chain, entry.segment] = None
    # Chains keep existing between their first and last segment; the network's commits say which segments there are.
    segments: dict[str, set[int]] = {}
    for commit in history.commits:
        segments.setdefault(commit.network, set()).add(commit.segment)
    first: dict[tuple[str, int], int] = {}
    last: dict[tuple[str, int], int] = {}
    for network, chain, segment in places:
        first[network, chain] = min(segment, first.get((network, chain), segment))
        last[network, chain] = max(segment, last.get((network, chain), segment))
    tasks = []
    for network, chain in sorted(first):
        for segment in range(first[network, chain], last[network, chain] + 1):

            def of(
                table: schema.Table, at: Iterable[int], chain: int | None = chain, network: str = network
            ) -> tuple[FileEntry, ...]:
                return tuple(entry for s in at for entry in files.get((table.name, network, chain, s), ()))

            tasks.append(
                _task(
                    history.root,
                    network,
                    chain,
                    segment,
                    {
                        "checkpoints": of(schema.CHECKPOINTS, (segment - 1, segment)),
                        "blocks": of(schema.BLOCKS, (segment,)),
                        "deliveries": of(schema.DELIVERIES, (segment,)),
                        "nodes": of(schema.NODES, (segment,), None),
                        "relay": of(schema.RELAY_HEADERS, (segment - 1, segment), None),
                    },
                )
            )
    return tasks


def _task(root: Path, network: str, chain: int, segment: int, files: dict[str, tuple[FileEntry, ...]]) -> Task:
    stated = {
        name: [
            [entry.path, entry.size, entry.frame, [extent.digest for extent in entry.row_groups]] for entry in entries
        ]
        for name, entries in files.items()
    }
    seen = {name: [_on_disk(root / entry.path) for entry in entries] for name, entries in files.items()}
    body = [CHECK_VERSION, VERSION, network, chain, segment, stated, seen]
    return Task(str(root), network, chain, segment, fingerprint=digest_of(canonical_json(body)), **files)


def _on_disk(path: Path) -> list[int]:
    """Size and time of a file: a file that was damaged or mended since is looked at again."""
    try:
        stat = path.stat()
    except OSError:
        return []
    return [stat.st_size, stat.st_mtime_ns]


@lru_cache(maxsize=4)
def history_of(root: str) -> History:
    """A history's manifests, read once a process: for the rare block on a relay parent of long ago."""
    return History.open(Path(root))

"""Work items: a segment of some chains of a network, with the files needed and a fingerprint of all it rests on.

A task is what an engine gives out, and what a re-run skips when nothing of it changed (AU-6). The chains of a segment
share its proof nodes, so one task has them all, or two. How chains are grouped follows from the manifests alone.
"""

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pubsub_emulator.spark_audit.engine.engine import UnitTask
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.listing import Listing, place_of
from pubsub_emulator.spark_audit.history.manifest import (
    COMMITS,
    Commit,
    CommitError,
    FileEntry,
    canonical_json,
    digest_of,
    read_manifest,
)
from pubsub_emulator.spark_audit.history.row import Kept
from pubsub_emulator.spark_audit.history.schema import Table
from pubsub_emulator.spark_audit.history.storage import open_store

CHECK_VERSION: Final = 9
"""Raised when the same rows would be judged or measured otherwise: results of an older version are made again."""

LARGE: Final = 4 * 1_048_576
"""Bytes of a segment's files from which its chains make two tasks: nodes are then read twice, never more often."""

_CHAIN_FILES: Final = ("checkpoints", "blocks", "deliveries")
_SHARED_FILES: Final = ("nodes", "relay", "changes", "checked")


@dataclass(frozen=True, slots=True)
class ChainFiles:
    """One chain's files of a segment; `next_position` is what the manifest states for the segment after."""

    chain: int
    checkpoints: tuple[FileEntry, ...]
    blocks: tuple[FileEntry, ...]
    deliveries: tuple[FileEntry, ...]
    next_position: int | None

    @property
    def size(self) -> int:
        """Bytes of the segment's own files."""
        return sum(entry.weight for entry in (*self.blocks, *self.deliveries))


@dataclass(frozen=True, slots=True)
class Task(UnitTask):
    """One segment of some chains; files are in commit order.

    `relay` are the headers of this segment and the one before, `changes` the tables of collator sets and subscriptions,
    `checked` files of the segment that no judgement reads.
    """

    root: str
    network: str
    segment: int
    chains: tuple[ChainFiles, ...]
    nodes: tuple[FileEntry, ...]
    relay: tuple[FileEntry, ...]
    changes: tuple[FileEntry, ...]
    checked: tuple[FileEntry, ...]
    fingerprint: str

    @property
    def name(self) -> str:
        """The path of the results, below the audit's output."""
        return f"items/network={self.network}/{self.segment:08d}-{self.fingerprint[:16]}"

    @property
    def weight(self) -> int:
        """Bytes to read: what tells long tasks from short ones."""
        return sum(entry.weight for entry in self.files())

    @property
    def candidates(self) -> int:
        """Rows of `blocks`, as the manifest says: for progress, never for a result."""
        return sum(entry.rows for chain in self.chains for entry in chain.blocks)

    def files(self) -> Iterable[FileEntry]:
        """Every file that is read."""
        for chain in self.chains:
            yield from (*chain.checkpoints, *chain.blocks, *chain.deliveries)
        yield from (*self.nodes, *self.relay, *self.changes, *self.checked)

    @staticmethod
    def from_json(text: str) -> "Task":
        """The inverse of `to_json`."""
        data: dict[str, Any] = json.loads(text)
        data["chains"] = tuple(
            ChainFiles(**{**each, **{name: _entries(each[name]) for name in _CHAIN_FILES}}) for each in data["chains"]
        )
        return Task(**{**data, **{name: _entries(data[name]) for name in _SHARED_FILES}})


def make_tasks(
    root: str, commits: Iterable[Commit], listing: Listing | None = None, after: Mapping[str, Commit] | None = None
) -> list[Task]:
    """Every segment of the commits, by network, segment and chain; `after` are the last commits before these.

    `listing` is what is there, so that a changed file is looked at again. No number in a manifest makes tasks.
    """
    before = dict(after or {})
    tasks: list[Task] = []
    for commit in commits:
        older = before.get(commit.network)
        known = older if older is not None and older.segment == commit.segment - 1 else None
        tasks += _tasks(root, commit, known, listing)
        before[commit.network] = commit
    return tasks


def _tasks(root: str, commit: Commit, before: Commit | None, listing: Listing | None) -> list[Task]:
    own, older = _by_table(commit), _by_table(before)

    def of(
        table: Table, chain: int | None, *sources: dict[tuple[str, int | None], list[FileEntry]]
    ) -> tuple[FileEntry, ...]:
        return tuple(entry for source in sources for entry in source.get((table.name, chain), ()))

    there = {chain for (table, chain) in own if chain is not None and table != schema.DELIVERIES.name}
    # A checkpoint for the segment after the last one, which is not there, starts nothing.
    started = {chain for (table, chain) in older if table == schema.CHECKPOINTS.name and chain is not None}
    chains: list[ChainFiles] = []
    for chain in sorted(there | started):
        checkpoints, blocks = of(schema.CHECKPOINTS, chain, older, own), of(schema.BLOCKS, chain, own)
        deliveries, position = of(schema.DELIVERIES, chain, own), commit.next_positions.get(chain)
        chains.append(ChainFiles(chain, checkpoints, blocks, deliveries, position))
    shared = {
        "nodes": of(schema.NODES, None, own),
        "relay": of(schema.RELAY_HEADERS, None, older, own),
        "changes": (*of(schema.AUTHORITIES, None, own), *of(schema.SUBSCRIPTIONS, None, own)),
    }
    parts = ((*chain.checkpoints, *chain.blocks, *chain.deliveries) for chain in chains)
    read = {(entry.path, entry.chain) for entries in (*parts, *shared.values()) for entry in entries}
    rest = tuple(entry for entry in commit.files if (entry.path, entry.chain) not in read)
    return [
        _task(root, commit, group, {**shared, "checked": () if at else rest}, listing)
        for at, group in enumerate(_groups(chains, commit))
    ]


def _by_table(commit: Commit | None) -> dict[tuple[str, int | None], list[FileEntry]]:
    out: dict[tuple[str, int | None], list[FileEntry]] = {}
    for entry in () if commit is None else commit.files:
        out.setdefault((entry.table, entry.chain), []).append(entry)
    return out


def _groups(chains: Sequence[ChainFiles], commit: Commit) -> list[tuple[ChainFiles, ...]]:
    """One task, or two of about the same weight."""
    if len(chains) < 2 or sum(entry.weight for entry in commit.files) < LARGE:
        return [tuple(chains)] if chains else []
    half = sum(chain.size for chain in chains) / 2
    first: list[ChainFiles] = []
    for chain in chains[:-1]:
        if first and sum(each.size for each in first) + chain.size / 2 > half:
            break
        first.append(chain)
    return [tuple(first), tuple(chains[len(first) :])]


def _task(
    root: str,
    commit: Commit,
    chains: tuple[ChainFiles, ...],
    shared: dict[str, tuple[FileEntry, ...]],
    listing: Listing | None,
) -> Task:
    task = Task(root, commit.network, commit.segment, chains, **shared, fingerprint="")
    stated = [[each.path, each.size, each.frame, [group.digest for group in each.row_groups]] for each in task.files()]
    positions = [[chain.chain, chain.next_position] for chain in chains]
    body = [CHECK_VERSION, commit.network, commit.segment, positions, stated, _seen(task, listing)]
    return replace(task, fingerprint=digest_of(canonical_json(body)))


def _seen(task: Task, listing: Listing | None) -> list[object]:
    """Sizes and times of the task's files, in numbers."""
    if listing is None:
        return []
    odd = [listing.odd.get(entry.path) for entry in task.files()]
    stamps = [[] if stamp is None else [stamp.size, stamp.time] for stamp in odd]
    return [listing.read_by(task.network, task.segment), stamps]


def _entries(data: Iterable[Kept]) -> tuple[FileEntry, ...]:
    return tuple(FileEntry.from_json(entry) for entry in data)


def commits_before(root: str, network: str, segment: int) -> Iterator[Commit]:
    """A network's readable commits before a segment, the last one first; for the rare block that asks for long ago."""
    store = open_store(root)
    for name in sorted(store.names(COMMITS), reverse=True):
        place = place_of(f"{COMMITS}/{name}")
        if place is not None and place[0] == network and place[1] < segment:
            with contextlib.suppress(CommitError, OSError):
                yield read_manifest(store, name)

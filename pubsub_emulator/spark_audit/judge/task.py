"""The tasks of an audit. A task judges a segment of some chains and names all files that it reads.

An engine distributes tasks to workers. A task's name contains a fingerprint of everything that its
result depends on, so a later run finds the result under the same name and does not judge the
segment again (AU-6).

The chains of a segment share its proof nodes. So one task has all chains, or two tasks have half of
them each if the segment is large. The grouping depends only on the manifests, so it is the same on
every engine.
"""

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain as chained
from typing import Any, Final

from pubsub_emulator.spark_audit.engine.engine import UnitTask
from pubsub_emulator.spark_audit.engine.rules import SHIPPED_RULES, RulesFile
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
from pubsub_emulator.spark_audit.history.row import JsonObject
from pubsub_emulator.spark_audit.history.schema import Table
from pubsub_emulator.spark_audit.history.storage import Store, open_store

CHECK_VERSION: Final = 11
"""Increased when the same rows would be judged or measured differently. Results of an older version
are then made again."""

LARGE: Final = 4 * 1_048_576
"""A segment whose files have at least this many bytes is divided between two tasks. Its nodes are
then read twice. With more tasks, they would be read still more often."""

_CHAIN_FILES: Final = ("checkpoints", "blocks", "deliveries")
_SHARED_FILES: Final = ("nodes", "relay", "changes", "checked")


@dataclass(frozen=True, slots=True)
class ChainFiles:
    """One chain's files of a segment."""

    chain: int
    checkpoints: tuple[FileEntry, ...]
    """Files with the checkpoints that start this segment and the next one."""
    blocks: tuple[FileEntry, ...]
    deliveries: tuple[FileEntry, ...]
    next_position: int | None
    """The position at which the manifest says the next segment starts."""

    @property
    def size(self) -> int:
        """Bytes of the files that only this chain needs."""
        return sum(entry.weight for entry in (*self.blocks, *self.deliveries))

    @staticmethod
    def from_json(data: JsonObject) -> "ChainFiles":
        """Return the files of a chain in a task's JSON."""
        entries = {name: _entries(data[name]) for name in _CHAIN_FILES}
        return ChainFiles(**{**data, **entries})


@dataclass(frozen=True, slots=True)
class Task(UnitTask):
    """One segment of some chains, with the files to read, in commit order."""

    root: str
    """The history's address."""
    network: str
    segment: int
    chains: tuple[ChainFiles, ...]
    nodes: tuple[FileEntry, ...]
    """Files with the segment's proof nodes, which all chains share."""
    relay: tuple[FileEntry, ...]
    """Files with the relay headers of this segment and the one before."""
    changes: tuple[FileEntry, ...]
    """Files with the changes of collator sets and subscriptions."""
    checked: tuple[FileEntry, ...]
    """Files of the segment that are checked but not needed for the judgement. They are all in the
    first task of the segment."""
    fingerprint: str
    """A digest of everything that the result depends on.

    The rules need not be part of it, because the checkpoints contain their digest.
    """
    rules: RulesFile = SHIPPED_RULES
    """The rules that the audit was given for the history."""

    @property
    def name(self) -> str:
        """The folder of the result, relative to the audit's output."""
        return f"items/network={self.network}/{self.segment:08d}-{self.fingerprint[:16]}"

    @property
    def weight(self) -> int:
        """Bytes to read. Engines start heavy tasks first."""
        return sum(entry.weight for entry in self.files())

    @property
    def candidates(self) -> int:
        """The number of rows of `blocks` that the manifest states, for the progress display."""
        blocks = chained.from_iterable(chain.blocks for chain in self.chains)
        return sum(entry.rows for entry in blocks)

    def files(self) -> Iterable[FileEntry]:
        """Yield every file that is read. A file may come twice."""
        for chain in self.chains:
            yield from (*chain.checkpoints, *chain.blocks, *chain.deliveries)
        yield from (*self.nodes, *self.relay, *self.changes, *self.checked)

    @staticmethod
    def from_json(text: str) -> "Task":
        """Return the task that `to_json` wrote."""
        data: dict[str, Any] = json.loads(text)
        data["chains"] = tuple(map(ChainFiles.from_json, data["chains"]))
        data["rules"] = RulesFile(**data["rules"])
        return Task(**{**data, **{name: _entries(data[name]) for name in _SHARED_FILES}})


def make_tasks(
    root: str,
    commits: Iterable[Commit],
    listing: Listing | None = None,
    previous: Mapping[str, Commit] | None = None,
    rules: RulesFile = SHIPPED_RULES,
) -> list[Task]:
    """Return the tasks for the segments of some commits, ordered by network, segment and chain.

    `previous` has the last commits before these, by network. `listing` has the present sizes and
    times of the files. If one changes, the fingerprint changes and the segment is judged again. The
    number of tasks depends only on files that manifests name, not on numbers that they state.
    """
    latest = dict(previous or {})
    tasks: list[Task] = []
    for commit in commits:
        last = latest.get(commit.network)
        preceding = last if last is not None and last.segment == commit.segment - 1 else None
        tasks += _tasks(root, commit, preceding, listing=listing)
        latest[commit.network] = commit
    return [replace(task, rules=rules) for task in tasks] if rules.digest else tasks


def _tasks(
    root: str, commit: Commit, previous: Commit | None, listing: Listing | None
) -> list[Task]:
    """Return the tasks of one commit. `previous` is that of the previous segment, if known."""
    own_files = _by_table(commit)
    previous_files = _by_table(previous)

    def select(
        table: Table, chain: int | None, *sources: dict[tuple[str, int | None], list[FileEntry]]
    ) -> tuple[FileEntry, ...]:
        key = (table.name, chain)
        return tuple(chained.from_iterable(source.get(key, ()) for source in sources))

    present = {
        chain
        for (table, chain) in own_files
        if chain is not None and table != schema.DELIVERIES.name
    }
    # A chain that only has deliveries here is not judged. A chain is judged even without blocks
    # here if the previous segment wrote its checkpoint.
    started = {
        chain
        for (table, chain) in previous_files
        if table == schema.CHECKPOINTS.name and chain is not None
    }
    chains: list[ChainFiles] = []
    for chain in sorted(present | started):
        checkpoints = select(schema.CHECKPOINTS, chain, previous_files, own_files)
        blocks = select(schema.BLOCKS, chain, own_files)
        deliveries = select(schema.DELIVERIES, chain, own_files)
        position = commit.next_positions.get(chain)
        chains.append(
            ChainFiles(chain, checkpoints, blocks, deliveries=deliveries, next_position=position)
        )
    shared = {
        "nodes": select(schema.NODES, None, own_files),
        "relay": select(schema.RELAY_HEADERS, None, previous_files, own_files),
        "changes": (
            *select(schema.AUTHORITIES, None, own_files),
            *select(schema.SUBSCRIPTIONS, None, own_files),
        ),
    }
    parts = ((*chain.checkpoints, *chain.blocks, *chain.deliveries) for chain in chains)
    entries = chained.from_iterable((*parts, *shared.values()))
    read = {(entry.path, entry.chain) for entry in entries}
    unread_entries = tuple(entry for entry in commit.files if (entry.path, entry.chain) not in read)
    return [
        _task(
            root,
            commit,
            group,
            shared={**shared, "checked": () if index else unread_entries},
            listing=listing,
        )
        for index, group in enumerate(_groups(chains, commit))
    ]


def _by_table(commit: Commit | None) -> dict[tuple[str, int | None], list[FileEntry]]:
    """Return a commit's files by table and chain. There are no files if the commit is `None`."""
    out: dict[tuple[str, int | None], list[FileEntry]] = {}
    if commit is not None:
        for entry in commit.files:
            out.setdefault((entry.table, entry.chain), []).append(entry)
    return out


def _groups(chains: Sequence[ChainFiles], commit: Commit) -> list[tuple[ChainFiles, ...]]:
    """Divide the chains into one group, or into two of similar weight if there is much data."""
    if len(chains) < 2 or sum(entry.weight for entry in commit.files) < LARGE:
        return [tuple(chains)] if chains else []
    half = sum(chain.size for chain in chains) / 2
    first: list[ChainFiles] = []
    for chain in chains[:-1]:
        # The chain in the middle goes to the half that has more of it.
        if first and sum(member.size for member in first) + chain.size / 2 > half:
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
    """Make a task with its fingerprint."""
    task = Task(
        root,
        commit.network,
        commit.segment,
        chains,
        nodes=shared["nodes"],
        relay=shared["relay"],
        changes=shared["changes"],
        checked=shared["checked"],
        fingerprint="",
    )
    files = list(map(_identity, task.files()))
    positions = [[chain.chain, chain.next_position] for chain in chains]
    body = [CHECK_VERSION, commit.network, commit.segment, positions, files, _stamps(task, listing)]
    return replace(task, fingerprint=digest_of(canonical_json(body)))


def _identity(entry: FileEntry) -> list[object]:
    """Return the part of an entry that identifies the content of its file."""
    digests = [group.digest for group in entry.row_groups]
    return [entry.path, entry.size, entry.frame, digests]


def _stamps(task: Task, listing: Listing | None) -> list[object]:
    """Return values that change when sizes or times of the task's files change.

    Without a listing, the list is empty.
    """
    if listing is None:
        return []
    entry_stamps = [listing.odd.get(entry.path) for entry in task.files()]
    stamps = [[] if stamp is None else [stamp.size, stamp.time] for stamp in entry_stamps]
    return [listing.read_by(task.network, task.segment), stamps]


def _entries(data: Iterable[JsonObject]) -> tuple[FileEntry, ...]:
    return tuple(FileEntry.from_json(entry) for entry in data)


def commits_before(root: str, network: str, segment: int) -> Iterator[Commit]:
    """Yield a network's readable commits before a segment, the last one first.

    A manifest is read only when its commit is asked for.
    """
    store = open_store(root)
    for name in reversed(manifests_before(store, network, segment)):
        with contextlib.suppress(CommitError, OSError):
            yield read_manifest(store, name)


def manifests_before(store: Store, network: str, segment: int) -> list[str]:
    """Return the names of a network's manifests before a segment, in order of their segments."""
    named: list[tuple[int, str]] = []
    for name in store.names(COMMITS):
        place = place_of(f"{COMMITS}/{name}")
        if place is not None and place[0] == network and place[1] < segment:
            named.append((place[1], name))
    return [name for _, name in sorted(named)]

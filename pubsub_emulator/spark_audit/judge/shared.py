"""Proof nodes, relay headers and changes, which all chains of a segment share.

They are read once. The changes are those of collator sets and subscriptions.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.runtime.rules import SHIPPED, Rules
from pubsub_emulator.spark_audit.engine.pace import report_progress
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.manifest import (
    COMMITS,
    CommitError,
    FileEntry,
    read_manifest,
)
from pubsub_emulator.spark_audit.history.reader import Fault, read_file
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.storage import Store, open_store
from pubsub_emulator.spark_audit.judge.task import Task, manifests_before

MOST_SEGMENTS: Final = 64
"""Earlier segments whose relay headers stay in memory."""


class RootAndSlot(NamedTuple):
    """The facts about a relay block on which judging a candidate depends."""

    root: Hash
    """The storage root."""
    newest_slot: int | None
    """The slot that no candidate judged in this block may exceed, `None` if it is not known."""


@dataclass(slots=True)
class Shared:
    """The content of the common files of one segment.

    A fault of such a file is noted once, not for each chain.
    """

    task: Task
    store: Store
    rules: Rules = SHIPPED
    """The rules that the audit was given for the history."""
    faults: list[Fault] = field(default_factory=list)
    """Faults of the common files so far."""
    judged: int = 0
    """Blocks of the task that were judged so far, for the progress display."""
    _nodes: dict[int, bytes] | None = None
    """Proof nodes by number; `None` before they were read."""
    _relay: dict[int, RootAndSlot] = field(default_factory=dict)
    """Storage root and slot of relay blocks, by number."""
    _roots: dict[int, set[bytes]] = field(default_factory=dict)
    """By relay block number, all storage roots in rows of `relay_headers`."""
    _header_roots: dict[int, set[bytes]] = field(default_factory=dict)
    """By relay block number, the storage roots in rows that have the hash of the relay header. Rows
    without a hash repeat what a parachain's inherent claims."""
    _older: list[str] | None = None
    """Names of the manifests of earlier segments, whose headers the task does not have; `None`
    before they were listed."""
    _headers: dict[str, dict[int, RootAndSlot]] = field(default_factory=dict)
    """Relay blocks of some earlier segments by name of the manifest, in order of their last use."""
    _changes: dict[int, list[Row]] | None = None
    """Changes of collator sets and subscriptions, by chain; `None` before they were read."""
    _changes_whole: bool = True
    """Whether all changes could be read."""

    @staticmethod
    def of(task: Task) -> "Shared":
        """Return the data that a task's chains share. Raises `RulesError`.

        Relay headers are read at once, everything else when it is needed.
        """
        out = Shared(task, open_store(task.root).holding(), task.rules.read())
        out._relay = out._read_relay(task.relay)
        return out

    @property
    def transient(self) -> bool:
        """Whether a read failed that may succeed another time."""
        return any(fault.transient for fault in self.faults)

    def has_fault(self, table: schema.Table) -> bool:
        """Return whether a common file of this table has a fault.

        That fault is noted already, so the chains need not note its consequences.
        """
        return any(fault.path.startswith(f"{table.name}/") for fault in self.faults)

    def note_missing_segment(self) -> None:
        """Note once that the previous segment, which has the chains' checkpoints, is missing."""
        segment = self.task.segment
        error = (
            f"segment {segment - 1} or its checkpoints are not in the history: no chain of segment"
            f" {segment} has a start"
        )
        fault = Fault(COMMITS, error, network=self.task.network, segment=segment)
        if fault not in self.faults:
            self.faults.append(fault)

    @property
    def has_headers(self) -> bool:
        """Whether the history has relay headers of this very segment."""
        return any(entry.segment == self.task.segment for entry in self.task.relay)

    def count(self) -> None:
        """Count one more judged block of the task and report the progress."""
        self.judged += 1
        report_progress(self.judged, self.task.candidates)

    def nodes(self) -> Mapping[int, bytes]:
        """Return the segment's proof nodes by number, each checked against its hash.

        If two different nodes have the same number, both are left out and there is a fault.
        """
        if self._nodes is None:
            self._nodes = self._read_nodes()
        return self._nodes

    def relay(self, number: int) -> RootAndSlot | None:
        """Return storage root and slot of a relay block, `None` if the history has no header of it.

        A block on an old relay parent needs headers of earlier segments. Refused candidates can
        claim any relay parent. So a binary search finds the segment, and only the headers of
        `MOST_SEGMENTS` segments stay in memory.
        """
        if number in self._relay:
            return self._relay[number]
        if self._older is None:
            self._older = manifests_before(self.store, self.task.network, self.task.segment)
        low = 0
        high = len(self._older)
        while low < high:
            middle = (low + high) // 2
            headers = self._older_headers(self._older[middle])
            if not headers:
                # The file cannot be read, or it has no headers. The task of that segment notes it.
                del self._older[middle]
                high -= 1
            elif number < min(headers):
                high = middle
            elif number > max(headers):
                low = middle + 1
            else:
                return headers.get(number)
        return None

    def _older_headers(self, name: str) -> dict[int, RootAndSlot]:
        """Return the relay blocks of an earlier segment by its manifest's name."""
        headers = self._headers.pop(name, None)
        if headers is None:
            headers = {}
            # The task has read the headers of the previous segment already.
            known = {entry.path for entry in self.task.relay}
            with contextlib.suppress(CommitError, OSError):
                entries = (
                    entry
                    for entry in read_manifest(self.store, name).files
                    if entry.table == schema.RELAY_HEADERS.name and entry.path not in known
                )
                headers = self._read_relay(tuple(entries), roots=False)
        self._headers[name] = headers
        while len(self._headers) > MOST_SEGMENTS:
            del self._headers[next(iter(self._headers))]
        return headers

    def relay_roots(self, number: int) -> set[bytes]:
        """Return every storage root of a relay block in rows of `relay_headers`."""
        return self._roots.get(number, set())

    def header_root(self, number: int) -> bytes | None:
        """Return the storage root of a relay block according to its own header.

        Returns `None` if only inherents of parachain blocks state it, or if headers differ.
        """
        roots = self._header_roots.get(number, set())
        return next(iter(roots)) if len(roots) == 1 else None

    def changes(self, chain: int) -> list[Row] | None:
        """Return the rows of `authorities` and `subscriptions` about a chain.

        Returns `None` if not all of them could be read.
        """
        if self._changes is None:
            self._changes = {}
            faults_before = len(self.faults)
            for entry in self.task.changes:
                for row in self._rows(entry):
                    self._changes.setdefault(row["chain"], []).append(row)
            self._changes_whole = len(self.faults) == faults_before
        return self._changes.get(chain, []) if self._changes_whole else None

    def _rows(self, entry: FileEntry) -> list[Row]:
        """Return the rows of a common file, without those of another network or segment."""
        rows: list[Row] = []
        for unit in read_file(self.store, entry):
            if isinstance(unit, Fault):
                self.faults.append(unit)
                continue
            for row in unit.to_pylist():
                # Rows of relay headers have no segment.
                if (
                    row["network"] != self.task.network
                    or row.get("segment", self.task.segment) != self.task.segment
                ):
                    self._fault(entry, "the file has a row of another network or segment")
                else:
                    rows.append(row)
        return rows

    def _read_nodes(self) -> dict[int, bytes]:
        """Read the segment's proof nodes and return them by number.

        Left out are nodes that do not have their hash, and different nodes with the same number.
        """
        nodes: dict[int, bytes] = {}
        ambiguous: set[int] = set()
        for entry in self.task.nodes:
            for row in self._rows(entry):
                number = row["number"]
                data = row["data"]
                if blake2_256(data) != row["hash"]:
                    self._fault(entry, f"node {row['hash'].hex()} does not have that hash")
                elif nodes.setdefault(number, data) != data:
                    self._fault(entry, f"there are two nodes {number} in the segment")
                    ambiguous.add(number)
        return {number: data for number, data in nodes.items() if number not in ambiguous}

    def _read_relay(
        self, entries: tuple[FileEntry, ...], *, roots: bool = True
    ) -> dict[int, RootAndSlot]:
        """Read relay headers and return the blocks by number.

        With `roots`, remember every root that the rows state, for `relay_roots` and `header_root`.

        If two rows of the same block have different roots or slots, that is a fault and the block
        is left out. A second row without a hash is not a fault: it repeats the claim of an
        inherent, which may be wrong.
        """
        blocks: dict[int, RootAndSlot] = {}
        ambiguous: set[int] = set()
        for entry in entries:
            for row in self._rows(entry):
                number = row["number"]
                block = RootAndSlot(Hash(row["storage_root"]), row["slot"])
                if roots:
                    self._roots.setdefault(number, set()).add(row["storage_root"])
                if roots and row["hash"] is not None:
                    self._header_roots.setdefault(number, set()).add(row["storage_root"])
                if blocks.setdefault(number, block) != block and row["hash"] is not None:
                    self._fault(entry, f"relay block {number} has two storage roots or slots")
                    ambiguous.add(number)
        for number in ambiguous:
            del blocks[number]
        return blocks

    def _fault(self, entry: FileEntry, error: str) -> None:
        self.faults.append(Fault(entry.path, error, network=entry.network, segment=entry.segment))

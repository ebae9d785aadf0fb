"""The history writer: an observer of a network that commits its records as segments."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from pubsub_emulator.emulator.network import records
from pubsub_emulator.primitives.header import turn_of
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec, runtime_spec
from pubsub_emulator.spark_audit.history import rows, schema
from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.commit import HistoryPart, write_commit
from pubsub_emulator.spark_audit.history.manifest import (
    HISTORY_TABLES,
    Commit,
    CommitError,
    check_name,
    committed,
)
from pubsub_emulator.spark_audit.history.names import write_names
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.storage import Store, open_store


class HistoryWriter(records.Observer):
    """An observer that writes everything that a network reports into the history at `path`.

    Use it as a context manager. A segment is committed as soon as the next checkpoint of every
    chain has been reported. The last segment is committed at the end of the `with` block, unless an
    exception ended it. There must be only one writer for a network at a time.

    With `resume`, the writer must get the same records again from the start, and skips the segments
    that are committed. `names` has names of chains for tables and reports. Raises `CommitError` if
    the history has the network already and `resume` is not set.
    """

    def __init__(
        self,
        path: Address | Store,
        network: str = "emulator",
        *,
        resume: bool = False,
        names: Mapping[ParaId, str] | None = None,
    ) -> None:
        """Open or create the history.

        Raises `CommitError` if the network's name cannot be used, if its manifests cannot be read,
        or if it is in the history and `resume` is not set. Also raises `StorageError`, `OSError`.
        """
        check_name(network)
        self.store = open_store(path)
        self.network = network
        self.commits: list[Commit] = []
        self._names = dict(names or {})
        self._segment: int | None = None
        """The open segment, `None` before the first checkpoint."""
        self._ending = False
        """Whether a checkpoint of the next segment was reported."""
        self._rows: defaultdict[tuple[str, int | None], list[Row]] = defaultdict(list)
        """The open segment's rows, by table, and by chain if the table is divided by chain."""
        self._place = 0
        """Included blocks since the last relay block, for `events.place`."""
        self._relay_time = 0
        """The time of the last relay block."""
        self._nodes = rows.NodeTable()
        self._chains: defaultdict[int, _Chain] = defaultdict(_Chain)
        self._committed = {commit.segment: commit for commit in committed(self.store, network)}
        if self._committed and not resume:
            problem = f"already holds {network} up to segment {max(self._committed)}"
            way_out = "write to another place or under another network name"
            raise CommitError(f"the history at {self.store} {problem}; {way_out}")

    # An observer

    def relay_block(self, record: records.RelayRecord) -> None:
        """Record a relay block that was built."""
        self._commit_if_ended()
        self._rows_of(schema.RELAY_HEADERS).append(rows.relay_row(self.network, record))
        self._place = 0
        self._relay_time = record.time
        events = rows.relay_events_row(self.network, self._segment or 0, record)
        if events is not None:
            self._rows_of(schema.EVENTS).append(events)

    def authorities(self, record: records.AuthorityRecord) -> None:
        """Record a chain's new collator set."""
        self._chains[record.chain].authorities = record.keys
        place = {"network": self.network, "chain": record.chain, "from_block": record.from_block}
        self._rows_of(schema.AUTHORITIES).append({**place, "keys": list(record.keys)})

    def subscriptions(self, record: records.SubscriptionRecord) -> None:
        """Record a change of a chain's subscriptions."""
        self._rows_of(schema.SUBSCRIPTIONS).append(rows.subscription_row(self.network, record))

    def checkpoint(self, record: records.CheckpointRecord) -> None:
        """Record the state at which a segment of a chain starts.

        The checkpoint that starts the next segment is committed with this segment, because it shows
        where this segment ends.
        """
        if self._segment is None:
            self._segment = record.segment
        elif record.segment > self._segment:
            self._ending = True
        chain = self._chains[record.chain]
        chain.state_root = record.header.state_root
        chain.spec = runtime_spec(record.state.top)
        self._rows_of(schema.CHECKPOINTS, record.chain).append(
            rows.checkpoint_row(self.network, record, chain.position)
        )

    def candidate(self, record: records.BlockRecord) -> None:
        """Record a candidate that was judged.

        Raises `CommitError` if the chain has no checkpoint yet.
        """
        self._commit_if_ended()
        chain = self._chains[record.chain]
        if chain.spec is None:
            raise CommitError(f"chain {record.chain} has candidates before its first checkpoint")
        header = record.candidate.header
        slot = header.aura_slot()
        author = None if slot is None or not chain.authorities else turn_of(slot, chain.authorities)
        row = rows.block_row(
            self.network,
            record,
            chain.position,
            nodes=self._nodes,
            collator=author,
            parent_root=chain.state_root,
            spec=chain.spec,
        )
        chain.position += 1
        self._rows_of(schema.BLOCKS, record.chain).append(row)
        if record.due:
            self._rows_of(schema.TRUTH).append(rows.truth_row(row, record.due))
        if record.outcome is not None:
            chain.state_root = header.state_root
            chain.spec = runtime_spec(record.outcome.state.top)
            self._place += 1
            events = rows.block_events_row(
                self.network, record, record.outcome, place=self._place, relay_time=self._relay_time
            )
            self._rows_of(schema.EVENTS).append(events)
            self._rows_of(schema.DELIVERIES, record.chain).extend(
                rows.delivery_rows(rows.block_place(row), record.outcome.deliveries)
            )

    # Committing

    def close(self) -> None:
        """Commit the open segment. Raises `CommitError`."""
        # Changes of collators or subscriptions alone do not make a segment.
        required = {schema.RELAY_HEADERS.name, schema.BLOCKS.name, schema.CHECKPOINTS.name}
        if self._segment is not None and any(table in required for table, _ in self._rows):
            self._commit(self._segment)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()

    def _commit_if_ended(self) -> None:
        """Commit the segment if the next one has started.

        The first record that is not a checkpoint shows that all chains' checkpoints of the next
        segment have been reported.
        """
        if self._ending and self._segment is not None:
            self._commit(self._segment)
            self._segment += 1
            self._ending = False

    def _commit(self, segment: int) -> None:
        """Commit the rows of a segment, unless it is committed already."""
        positions = {int(chain): state.position for chain, state in self._chains.items()}
        self._rows_of(schema.NODES).extend(self._nodes.rows(self.network, segment))
        parts: list[HistoryPart] = []
        for name, table in HISTORY_TABLES.items():
            parts += [
                HistoryPart(table, held_rows, f"{segment:08d}", chain=chain)
                for (table_name, chain), held_rows in sorted(self._rows.items())
                if table_name == name
            ]
        commit = self._committed.get(segment)
        if commit is None:
            previous = self.commits[-1] if self.commits else None
            self._write_names()
            commit = write_commit(
                self.store,
                self.network,
                segment,
                parts=parts,
                next_positions=positions,
                after=previous,
            )
        self.commits.append(commit)
        self._rows.clear()
        self._nodes = rows.NodeTable()

    def _write_names(self) -> None:
        """Write the names of chains at the first call."""
        names = self._names
        self._names = {}
        if names:
            try:
                write_names(
                    self.store, self.network, {int(chain): name for chain, name in names.items()}
                )
            except OSError as error:
                raise CommitError(
                    f"nothing was added to {self.store}: {error.strerror or error}"
                ) from error

    def _rows_of(self, table: schema.Table, chain: int | None = None) -> list[Row]:
        """Return the list of rows of a table, and of a chain if the table is divided by chain."""
        return self._rows[table.name, chain]


@dataclass(slots=True)
class _Chain:
    """The state of one chain between records."""

    position: int = 0
    """The position of the next candidate."""
    authorities: tuple[bytes, ...] = ()
    state_root: Hash = Hash(bytes(32))  # noqa: RUF009  # not changed in place
    """The root of the state on which the next candidate is judged."""
    spec: RuntimeSpec | None = None
    """The runtime of that state, `None` before the first checkpoint."""

"""The history writer: an observer of a network that turns its records into committed segments."""

from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

from pubsub_emulator.emulator.network.records import (
    AuthorityRecord,
    BlockRecord,
    CheckpointRecord,
    Observer,
    RelayRecord,
    SubscriptionRecord,
)
from pubsub_emulator.primitives.header import turn_of
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec, runtime_spec
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.commit import HistoryPart, write_commit
from pubsub_emulator.spark_audit.history.manifest import Commit, CommitError, check_name, committed
from pubsub_emulator.spark_audit.history.names import write_names
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.rows import (
    NodeTable,
    block_events_row,
    block_place,
    block_row,
    checkpoint_row,
    delivery_rows,
    relay_events_row,
    relay_row,
    subscription_row,
    truth_row,
)
from pubsub_emulator.spark_audit.history.storage import Store, open_store

_CODE: Final = b":code"
_ROWS_PER_GROUP: Final = {
    **dict.fromkeys(("relay_headers", "deliveries", "events", "nodes", "truth"), 4096),
    "checkpoints": 1,
}
"""Of the tables that have others than usual."""


class HistoryWriter(Observer):
    """Writes what a network tells into the history at `path`, one commit a segment; use it as a context manager.

    A segment is committed when every chain's next checkpoint is there, the last one on leaving. Leaving by an exception
    drops the open segment: what is committed stays. One writer a network at a time. A writer that is to `resume` is
    told the same account once more, from its start, and leaves what is committed of it as it is. `names` are what
    chains are called in tables and reports. Raises `CommitError`.
    """

    def __init__(
        self,
        path: Address | Store,
        network: str = "emulator",
        *,
        resume: bool = False,
        names: Mapping[ParaId, str] | None = None,
    ) -> None:
        check_name(network)
        self.store = open_store(path)
        self.network = network
        self.commits: list[Commit] = []
        self._names = dict(names or {})
        self._segment: int | None = None
        self._ending = False
        self._relay: list[Row] = []
        self._authorities: list[Row] = []
        self._subscriptions: list[Row] = []
        self._checkpoints: dict[int, list[Row]] = {}
        self._blocks: dict[int, list[Row]] = {}
        self._deliveries: dict[int, list[Row]] = {}
        self._events: list[Row] = []
        self._place = 0
        self._relay_time = 0
        self._nodes = NodeTable()
        self._truth: list[Row] = []
        self._chains: dict[int, _Chain] = {}
        self._committed = {commit.segment: commit for commit in committed(self.store, network)}
        if self._committed and not resume:
            raise CommitError(
                f"the history at {self.store} already holds {network} up to segment {max(self._committed)}; "
                "write to another place or under another network name"
            )

    # An observer

    def relay_block(self, record: RelayRecord) -> None:
        """A relay block was built."""
        self._proceed()
        self._relay.append(relay_row(self.network, record))
        self._place, self._relay_time = 0, record.time
        events = relay_events_row(self.network, self._segment or 0, record)
        if events is not None:
            self._events.append(events)

    def authorities(self, record: AuthorityRecord) -> None:
        """A chain has a new collator set."""
        self._chain(record.chain).authorities = record.keys
        self._authorities.append(
            {"network": self.network, "chain": record.chain, "from_block": record.from_block, "keys": list(record.keys)}
        )

    def subscriptions(self, record: SubscriptionRecord) -> None:
        """A chain's subscriptions changed."""
        self._subscriptions.append(subscription_row(self.network, record))

    def checkpoint(self, record: CheckpointRecord) -> None:
        """A segment of a chain's history starts, or would start, here."""
        if self._segment is None:
            self._segment = record.segment
        elif record.segment > self._segment:
            self._ending = True
        chain = self._chain(record.chain)
        chain.state_root = record.header.state_root
        chain.spec = runtime_spec(record.state.top)
        row = checkpoint_row(self.network, record, chain.position)
        self._checkpoints.setdefault(record.chain, []).append(row)

    def candidate(self, record: BlockRecord) -> None:
        """A candidate was judged. Raises `CommitError` before the chain's first checkpoint."""
        self._proceed()
        chain = self._chain(record.chain)
        if chain.spec is None:
            raise CommitError(f"chain {record.chain} has candidates before its first checkpoint")
        header = record.candidate.header
        slot = header.aura_slot()
        author = None if slot is None or not chain.authorities else turn_of(slot, chain.authorities)
        row = block_row(
            self.network,
            record,
            chain.position,
            self._nodes,
            collator=author,
            parent_root=chain.state_root,
            spec=chain.spec,
        )
        chain.position += 1
        self._blocks.setdefault(record.chain, []).append(row)
        if record.due:
            self._truth.append(truth_row(row, record.due))
        if record.outcome is not None:
            chain.state_root = header.state_root
            chain.spec = runtime_spec(record.outcome.state.top)
            self._place += 1
            self._events.append(block_events_row(self.network, record, record.outcome, self._place, self._relay_time))
            rows = delivery_rows(block_place(row), record.outcome.deliveries)
            self._deliveries.setdefault(record.chain, []).extend(rows)

    # Committing

    def close(self) -> None:
        """Commit the open segment. Raises `CommitError`."""
        if self._segment is not None and (self._relay or self._blocks or self._checkpoints):
            self._commit(self._segment)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()

    def _proceed(self) -> None:
        """All checkpoints of the next segment are there when anything else comes."""
        if self._ending and self._segment is not None:
            self._commit(self._segment)
            self._segment += 1
            self._ending = False

    def _commit(self, segment: int) -> None:
        name = f"{segment:08d}"
        positions = {int(chain): state.position for chain, state in self._chains.items()}
        parts = [
            history_part(schema.RELAY_HEADERS, self._relay, name),
            history_part(schema.AUTHORITIES, self._authorities, name),
            history_part(schema.SUBSCRIPTIONS, self._subscriptions, name),
            *_by_chain(schema.CHECKPOINTS, self._checkpoints, name),
            *_by_chain(schema.BLOCKS, self._blocks, name),
            *_by_chain(schema.DELIVERIES, self._deliveries, name),
            history_part(schema.EVENTS, self._events, name),
            history_part(schema.NODES, self._nodes.rows(self.network, segment), name),
            history_part(schema.TRUTH, self._truth, name),
        ]
        commit = self._committed.get(segment)
        if commit is None:
            before = self.commits[-1] if self.commits else None
            self._write_names()
            commit = write_commit(self.store, self.network, segment, parts, positions, before)
        self.commits.append(commit)
        for rows in (self._relay, self._authorities, self._subscriptions, self._events, self._truth):
            rows.clear()
        for tables in (self._checkpoints, self._blocks, self._deliveries):
            tables.clear()
        self._nodes = NodeTable()

    def _write_names(self) -> None:
        names, self._names = self._names, {}
        if names:
            try:
                write_names(self.store, self.network, {int(chain): name for chain, name in names.items()})
            except OSError as error:
                raise CommitError(f"nothing was added to {self.store}: {error.strerror or error}") from error

    def _chain(self, chain: ParaId) -> "_Chain":
        return self._chains.setdefault(chain, _Chain())


class _Chain:
    """The writer's state of one chain between records."""

    __slots__ = ("authorities", "position", "spec", "state_root")

    def __init__(self) -> None:
        self.position = 0
        self.authorities: tuple[bytes, ...] = ()
        self.state_root = Hash(bytes(32))
        self.spec: RuntimeSpec | None = None


def history_part(table: schema.Table, rows: list[Row], name: str, chain: int | None = None) -> HistoryPart:
    """Rows of one chain, or of none, with as many in a row group as their table has."""
    return HistoryPart(table, rows, name, chain, _ROWS_PER_GROUP.get(table.name, 256))


def _by_chain(table: schema.Table, rows: Mapping[int, list[Row]], name: str) -> list[HistoryPart]:
    return [history_part(table, rows[chain], name, chain) for chain in sorted(rows)]

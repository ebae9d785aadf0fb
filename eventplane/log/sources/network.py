"""The log of an emulated network in the same process: an observer that appends each finished relay block (EV-4).

    with NetworkLog(network, store):
        network.step(100)

A network that was restored to an earlier moment has its log rewound to there (EV-3).
"""

from types import TracebackType
from typing import Final, Self

from pubsub_emulator.emulator.network.network import Network
from pubsub_emulator.emulator.network.records import (
    AuthorityRecord,
    BlockRecord,
    CheckpointRecord,
    RelayRecord,
    SubscriptionRecord,
)
from pubsub_emulator.eventplane.errors import SourceError
from pubsub_emulator.eventplane.log.follow import put
from pubsub_emulator.eventplane.log.rows import SLOT_MS, Block, ChainBlock, assemble
from pubsub_emulator.eventplane.log.sources.fields import fields_of, kind_of
from pubsub_emulator.eventplane.log.store import Store
from pubsub_emulator.primitives.header import BABE_ENGINE, DigestKind, Header
from pubsub_emulator.primitives.storage_keys import item_prefix
from pubsub_emulator.runtime.framework.storage import State

TIMESTAMP_NOW: Final = item_prefix("Timestamp", "Now")
_SLOT_AT: Final = 5
"""Bytes before the slot in a BABE pre-runtime digest: variant, authority index."""


class NetworkLog:
    """Observes `network` and appends to `store` what happens from now on; a context manager that flushes at its end.

    A relay block is appended once it is known to be complete: with the next one, or on `flush`.
    """

    def __init__(self, network: Network, store: Store) -> None:
        self._network = network
        self._store = store
        self._relay: ChainBlock | None = None
        self._parent = b""
        self._included: list[ChainBlock] = []
        genesis = network.relay.block(0)
        if genesis is not None:
            store.bind(genesis.header.hash())
        network.observe(self, past=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.flush()

    def flush(self) -> None:
        """Append the block that is complete by now."""
        block = self._finished()
        if block is not None:
            put(self._store, [block])

    # An observer

    def relay_block(self, record: RelayRecord) -> None:
        """A relay block was built; the one before it is complete."""
        self.flush()
        kept = self._network.relay.block(record.number)
        if kept is None or kept.header.hash() != record.hash:
            raise SourceError(f"relay block {record.number} is not the network's own")
        events = [(kind_of(event), fields_of(event)) for event in record.events]
        time = block_time(kept.state, relay_slot(kept.header))
        self._relay = ChainBlock(None, record.number, bytes(record.hash), time, events)
        self._parent = bytes(kept.header.parent_hash)

    def candidate(self, record: BlockRecord) -> None:
        """A candidate was judged; only an included one did anything."""
        if record.outcome is None or self._relay is None:
            return
        header = record.candidate.header
        events = [(kind_of(each.event), fields_of(each.event)) for each in record.outcome.events]
        time = block_time(record.outcome.state, None) or self._relay.time
        self._included.append(ChainBlock(int(record.chain), header.number, bytes(header.hash()), time, events))

    def authorities(self, record: AuthorityRecord) -> None:
        """No event."""

    def subscriptions(self, record: SubscriptionRecord) -> None:
        """No event: where it is one, the pallet says so."""

    def checkpoint(self, record: CheckpointRecord) -> None:
        """No event."""

    def _finished(self) -> Block | None:
        if self._relay is None:
            return None
        block = assemble(self._relay, self._included, parent=self._parent)
        self._relay, self._included = None, []
        return block


def relay_slot(header: Header) -> int | None:
    """The slot of a leading block by its BABE digest, `None` where it has none."""
    for item in header.digest:
        if item.kind is DigestKind.PRE_RUNTIME and item.engine == BABE_ENGINE:
            return int.from_bytes(item.data[_SLOT_AT : _SLOT_AT + 8], "little")
    return None


def block_time(state: State, slot: int | None) -> int:
    """Milliseconds: the block's own timestamp where it has one, else its slot's start; 0 where it has neither."""
    own = state.top.get(TIMESTAMP_NOW)
    if own is not None:
        return int.from_bytes(own, "little")
    return 0 if slot is None else slot * SLOT_MS

"""The log of an emulated network in the same process: an observer that appends each finished relay block (EV-4).

    with NetworkLog(network, store):
        network.step(100)

A network that was restored to an earlier moment has its log rewound to there (EV-3).
"""

from typing import Self

from pubsub_emulator.emulator.network.block_time import own_timestamp
from pubsub_emulator.emulator.network.network import Network
from pubsub_emulator.emulator.network.records import BlockRecord, Observer, RelayRecord
from pubsub_emulator.events.log.sources.fields import fields_of, kind_of
from pubsub_emulator.events.log.store import Store, put
from pubsub_emulator.events.rows import ChainBlock, assemble


class NetworkLog(Observer):
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

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.flush()

    def flush(self) -> None:
        """Append the block that is complete by now."""
        if self._relay is not None:
            block = assemble(self._relay, self._included, parent=self._parent)
            self._relay, self._included = None, []
            put(self._store, [block])

    # An observer

    def relay_block(self, record: RelayRecord) -> None:
        """A relay block was built; the one before it is complete."""
        self.flush()
        if record.parent is None:  # of before this observer came: its parachain blocks are not known
            return
        events = [(kind_of(event), fields_of(event)) for event in record.events]
        self._relay = ChainBlock(None, record.number, bytes(record.hash), record.time, events)
        self._parent = bytes(record.parent)

    def candidate(self, record: BlockRecord) -> None:
        """A candidate was judged; only an included one did anything."""
        if record.outcome is None or self._relay is None:
            return
        header = record.candidate.header
        events = [(kind_of(each.event), fields_of(each.event)) for each in record.outcome.events]
        own = own_timestamp(record.outcome.state)
        time = self._relay.time if own is None else own
        self._included.append(ChainBlock(int(record.chain), header.number, bytes(header.hash()), time, events))

"""The log of an emulated network in the same process (EV-4).

An observer appends each finished relay block:

    with NetworkLog(network, store):
        network.step(100)

If the network is restored to an earlier moment, the log is rewound to that moment (EV-3).
"""

from typing import Self

from interchain_events.events.log.sources.fields import fields_of, kind_of
from interchain_events.events.log.store import Store, put
from interchain_events.events.rows import ChainBlock, assemble
from pubsub_emulator.emulator.network.block_time import own_timestamp
from pubsub_emulator.emulator.network.network import Network
from pubsub_emulator.emulator.network.records import BlockRecord, Observer, RelayRecord


class NetworkLog(Observer):
    """An observer that appends the blocks of `network` from now on to `store`.

    A relay block is complete and is appended when the next one is built, or by `flush`. Used as a
    context manager, it appends the last block when the context ends.
    """

    def __init__(self, network: Network, store: Store) -> None:
        self._network = network
        self._store = store
        self._relay: ChainBlock | None = None
        """The relay block that is not complete yet."""
        self._parent = b""
        """The hash of the relay block's parent."""
        self._included: list[ChainBlock] = []
        """The parachain blocks that the relay block has included so far."""
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
        """Append the waiting relay block, which must be complete."""
        if self._relay is not None:
            block = assemble(self._relay, self._included, parent=self._parent)
            self._relay = None
            self._included = []
            put(self._store, [block])

    # An observer

    def relay_block(self, record: RelayRecord) -> None:
        """Note a relay block that was built. The one before it is now complete."""
        self.flush()
        # This block was built before the observer was added, so its parachain blocks are not known.
        if record.parent is None:
            return
        events = [(kind_of(event), fields_of(event)) for event in record.events]
        self._relay = ChainBlock(None, record.number, bytes(record.hash), record.time, events)
        self._parent = bytes(record.parent)

    def candidate(self, record: BlockRecord) -> None:
        """Note a parachain block that was included. Other candidates have no events."""
        if record.outcome is None or self._relay is None:
            return
        header = record.candidate.header
        events = [
            (kind_of(emitted.event), fields_of(emitted.event)) for emitted in record.outcome.events
        ]
        own = own_timestamp(record.outcome.state)
        time = self._relay.time if own is None else own
        self._included.append(
            ChainBlock(int(record.chain), header.number, bytes(header.hash()), time, events)
        )

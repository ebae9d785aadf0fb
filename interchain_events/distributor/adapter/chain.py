"""An emulated chain with pallet `DomeEvents`, and its ledger (ID-50)."""

import time
from collections.abc import Callable
from typing import Final

from interchain_events.distributor.adapter.ledger import Ledger, Published
from interchain_events.distributor.core.messages import No, Unknown
from interchain_events.distributor.event import Event, Notice, find_id
from interchain_events.pallets.dome_events import (
    PALLET,
    DomeEvents,
    Error,
    EventDOMEv1,
    Publication,
)
from interchain_events.pallets.dome_events.global_id import global_id
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.types import AccountId, Hash
from pubsub_emulator.runtime.accounts.timestamp import NOW
from pubsub_emulator.runtime.framework.dispatch import Call, ModuleError
from pubsub_emulator.runtime.framework.executive import Block, Executive, Extrinsic
from pubsub_emulator.runtime.framework.origin import Signed
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.trie import ordered_root

AUTHOR: Final = AccountId(blake2_256(b"DomeEvents adapter"))
"""The account with which an adapter signs unless another one is given."""


class DomeChain:
    """A chain with the pallet `DomeEvents`. It builds a final block for each call."""

    def __init__(self, network: str, *, unique: bool = True) -> None:
        self._executive = Executive((DomeEvents(network, unique=unique),))
        self._executive.integrity_test()
        storage = Storage(State())
        DomeEvents(network, unique=unique).genesis(storage)
        root = storage.commit()
        self._state = storage.state
        """The state after the newest block."""
        self.header = Header(Hash(bytes(32)), 0, root, ordered_root(()), ())
        """The header of the newest block."""

    def call(self, author: AccountId, publication: Publication, now: int) -> Block:
        """Build the next block, which contains one call of `emit_new_event`, and return it.

        `now` is the block's time in ms.
        """
        # The chain must not change if building the block fails.
        storage = Storage(self._state.fork())
        head = self.header
        NOW.put(storage, now)
        extrinsic = Extrinsic(
            Signed(author), Call(PALLET.name, "emit_new_event", tuple(publication))
        )
        block = self._executive.build_block(
            storage, head.number + 1, head.hash(), extrinsics=(extrinsic,)
        )
        self._state = storage.state
        self.header = block.header
        return block


def publication_of(event: Event, network: str) -> Publication:
    """Return the arguments of `emit_new_event` for an event."""
    return Publication(
        event_type=event.event_type.encode(),
        data_location=event.data_location.encode(),
        relevant_metadata=[value.encode() for value in event.metadata],
        entity_id=bytes.fromhex(event.entity[2:]),
        previous_entity_hash=bytes.fromhex(event.previous[2:]),
        iss=None if event.iss is None else bytes.fromhex(event.iss[2:]),
        network=network.encode(),
    )


def notice_of(emitted: EventDOMEv1, now: int, block: bytes) -> Notice:
    """Return the notice of an event that the pallet has emitted.

    `now` is the time of its block in ms, and `block` is the block's hash. The signer's Ethereum
    address is the last 20 bytes of the author's account. An event without `iss` has the author as
    its issuer.
    """
    author = bytes(emitted.author)
    issuer = author if emitted.iss is None else emitted.iss
    # The pallet accepts any bytes. Only publications through an adapter are known to be UTF-8.
    event = Event(
        emitted.event_type.decode(errors="replace"),
        emitted.data_location.decode(errors="replace"),
        tuple(value.decode(errors="replace") for value in emitted.relevant_metadata),
        entity="0x" + emitted.entity_id.hex(),
        previous="0x" + emitted.previous_entity_hash.hex(),
        iss="0x" + issuer.hex(),
    )
    event_id, fault = find_id(event.data_location)
    return Notice(
        emitted.index + 1,
        now // 1000,
        event,
        id=event_id,
        signer="0x" + author[-20:].hex(),
        fault=fault,
        block="0x" + block.hex(),
    )


class ChainLedger(Ledger):
    """The ledger of an emulated chain in this process."""

    def __init__(
        self, network: str, *, unique: bool = True, clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__()
        self._network = network
        self._clock = clock
        self.chain = DomeChain(network, unique=unique)

    async def publish(self, event: Event) -> Published | No | Unknown:
        """Build a block that publishes the event.

        The answer is `No` if the pallet refuses it.
        """
        now = int(self._clock() * 1000)
        block = self.chain.call(AUTHOR, publication_of(event, self._network), now)
        error = block.outcomes[0].error if block.outcomes else None
        if error == ModuleError(Error.AlreadyPublished):
            return Published(self._times.get(global_id(event.data_location), 0), new=False)
        if error is not None:
            return No(str(error))
        block_hash = block.header.hash()
        self._grow(
            notice_of(record.event, now, block_hash)
            for record in block.events
            if isinstance(record.event, EventDOMEv1)
        )
        return Published(now // 1000, new=True)

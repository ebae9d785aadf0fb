"""A PRISM node over an emulated chain, all in one process, for examples, notebooks and tests.

    with LocalPrism() as node:
        created = node.follow(Filter(FilterType.CREATE_DID_FILTER))
        node.anchor(operation)                       # one block with one object
        [event.did_suffix for event in created.new()]

The chain has pallet `Prism` and executes signed calls. Its events go through a log to the same
tables as those of a node.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

from interchain_events.events.errors import CursorAbandoned
from interchain_events.events.filters.algebra import OneOf
from interchain_events.events.log.sources.fields import fields_of, kind_of
from interchain_events.events.log.sql_store import open_store
from interchain_events.events.log.store import check_cursor, put
from interchain_events.events.rows import ChainBlock, assemble
from interchain_events.events.subscriptions.cursor import Cursor
from interchain_events.pallets.prism import PALLET, Prism
from interchain_events.prism.core.filters import Filter, normal_form
from interchain_events.prism.core.identifiers import suffix_of
from interchain_events.prism.core.state import Batch, Did, StorageEntry
from interchain_events.prism.make import IssuedBatch, Signed, atala_object
from interchain_events.prism.tables.ledger import load_batch, load_did, load_entry
from interchain_events.prism.tables.operations import Event, OperationLog, OperationRow, log_filter
from interchain_events.prism.tables.processor import Processor
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.types import AccountId, Hash
from pubsub_emulator.runtime.framework.dispatch import Call
from pubsub_emulator.runtime.framework.executive import Executive, Extrinsic
from pubsub_emulator.runtime.framework.origin import Signed as SignedBy
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.trie import ordered_root

_ANCHORER: Final = AccountId(blake2_256(b"PRISM node"))
"""The account that anchors."""
_BLOCK_MS: Final = 6_000
"""The time between two blocks in ms."""
_PAGE: Final = 500


class FollowedOperations:
    """A selection of operations, and the reader's position in it."""

    def __init__(self, log: OperationLog, filters: Sequence[Filter], cursor: Cursor) -> None:
        self._log = log
        self._where = OneOf(*map(log_filter, normal_form(filters)))
        self.cursor = cursor

    def new(self) -> list[Event]:
        """Return the operations since the last call, each once and in order.

        Raises `CursorAbandoned` after a rewind that took back operations which were returned.
        """
        check_cursor(self._log.head(), *self.cursor, self._log.common(self.cursor.epoch))
        events: list[Event] = []
        while True:
            page = self._log.read(self.cursor.seq, _PAGE, self._where)
            events += [row.event for row in page.rows if isinstance(row, OperationRow)]
            self.cursor = Cursor(page.head.epoch, page.through)
            if page.is_last:
                return events

    def again(self, cut: CursorAbandoned) -> None:
        """Continue after the last operation that remained at a rewind."""
        self.cursor = Cursor(cut.epoch, cut.common)


class LocalPrism:
    """A chain and a node in one process.

    `depth` is the number of blocks that must be above a block before it is processed. Use this as a
    context manager. Its files are deleted when the context ends.
    """

    def __init__(self, depth: int = 0) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="prism-")
        self.log = open_store(str(Path(self._folder.name) / "prism.db"), "local")
        self.processor = Processor(self.log.database, self.log, depth=depth)
        self.operations = OperationLog(self.log.database)
        self._executive = Executive((Prism(),))
        storage = Storage(State())
        root = storage.commit()
        self._chain = [(Header(Hash(bytes(32)), 0, root, ordered_root(()), ()), storage.state)]
        """The header of each block and the state after it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.log.close()
        self._folder.cleanup()

    def anchor(self, *signed: Signed | IssuedBatch | bytes) -> int:
        """Build a block with one object of these operations. Returns the block's number.

        Blocks that are deep enough are processed.
        """
        return self.build(atala_object([_raw(operation) for operation in signed]))

    def build(self, *objects: bytes) -> int:
        """Build a block that anchors any objects, and return the block's number."""
        header, state = self._chain[-1]
        storage = Storage(state.fork())
        extrinsics = tuple(
            Extrinsic(SignedBy(_ANCHORER), Call(PALLET.name, "anchor", (raw,))) for raw in objects
        )
        block = self._executive.build_block(
            storage, header.number + 1, header.hash(), extrinsics=extrinsics
        )
        self._chain.append((block.header, storage.state))
        events = [(kind_of(emitted.event), fields_of(emitted.event)) for emitted in block.events]
        number = block.header.number
        chain_block = ChainBlock(
            None, number, bytes(block.header.hash()), time=number * _BLOCK_MS, events=events
        )
        put(self.log, [assemble(chain_block, (), parent=bytes(header.hash()))])
        self.processor.run()
        return number

    def back_to(self, number: int) -> None:
        """Take back the blocks after block `number`, as a restored network does."""
        del self._chain[number + 1 :]
        self.log.rewind(number)
        self.processor.run()

    def follow(self, *filters: Filter, everything: bool = False) -> FollowedOperations:
        """Return a subscription to later operations, or to all if `everything` is true.

        Filters may name a DID by its suffix or in full.
        """
        head = self.operations.head()
        by_suffix: list[Filter] = []
        for part in filters:
            if part.did_suffix is None:
                by_suffix.append(part)
            else:
                by_suffix.append(part._replace(did_suffix=suffix_of(part.did_suffix)))
        cursor = Cursor(head.epoch, 0 if everything else head.seq)
        return FollowedOperations(self.operations, by_suffix, cursor)

    def did(self, did: str) -> Did | None:
        """Return the current state of a DID, given in full or by its suffix, `None` without one."""
        with self.log.database.transaction() as session:
            return load_did(session, suffix_of(did))

    def storage_entry(self, entry_id: str) -> StorageEntry | None:
        """Return the current state of a storage entry, `None` if there is none.

        If its DID has ended, the entry has ended, too, whatever its state says.
        """
        with self.log.database.transaction() as session:
            return load_entry(session, entry_id)

    def batch(self, batch_id: str) -> Batch | None:
        """Return the current state of a credential batch, `None` if there is none."""
        with self.log.database.transaction() as session:
            return load_batch(session, batch_id)


def _raw(operation: Signed | IssuedBatch | bytes) -> bytes:
    """Return the bytes of the SignedAtalaOperation."""
    if isinstance(operation, IssuedBatch):
        return operation.signed.raw
    return operation if isinstance(operation, bytes) else operation.raw

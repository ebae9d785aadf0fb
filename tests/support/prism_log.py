"""A log of blocks that anchor objects, and dumps of PRISM's tables."""

from collections.abc import Iterable
from typing import Any

from pubsub_emulator.database.database import Database
from pubsub_emulator.events.log.follow import put
from pubsub_emulator.events.log.store import Store
from pubsub_emulator.events.rows import Block, ChainBlock, assemble
from pubsub_emulator.prism.core.identifiers import sha256
from pubsub_emulator.prism.make import atala_object

TABLES = {
    "atala_operations": "coalesce(atala_operation_seq_no, 0), signed_atala_operation_id",
    "atala_objects": "atala_object_id",
    "revoked_credentials": "credential_hash, seq_no",
    "processed_blocks": "block_number",
}


class Chain:
    """Writes a log, block by block; every block also has an event that is nobody's."""

    def __init__(self, log: Store) -> None:
        self.log = log
        self.number = 0
        self.branch = 0

    def hash(self, number: int) -> bytes:
        """The hash of a block on the present branch."""
        return self._hashes[number]

    _hashes: dict[int, bytes] = {0: bytes(32)}  # noqa: RUF012  # replaced by each chain's own

    def build(self, *objects: bytes) -> int:
        """The next block, with these objects; its number."""
        self._hashes = dict(self._hashes)
        self.number += 1
        number = self.number
        self._hashes[number] = sha256(f"{self.branch} {number}".encode())
        events: list[tuple[str, dict[str, Any]]] = [("System.ExtrinsicSuccess", {"n": number})]
        events += [("Prism.ObjectAnchored", {"who": bytes(32), "object": raw}) for raw in objects]
        self.put(
            assemble(
                ChainBlock(None, number, self._hashes[number], number * 6_000, events),
                (),
                parent=self._hashes[number - 1],
            )
        )
        return number

    def put(self, block: Block) -> None:
        """Append."""
        put(self.log, [block])

    def anchor(self, *signed: Any) -> int:
        """The next block, with one object of these operations."""
        return self.build(atala_object([each.raw for each in signed]))

    def back_to(self, number: int) -> None:
        """Take back every block after this one; what comes is on another branch."""
        self.log.rewind(number)
        self.number = number
        self.branch += 1


def dump(database: Database, tables: Iterable[str] = TABLES) -> dict[str, list[tuple[Any, ...]]]:
    """The tables as lists."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    with database.transaction() as session:
        for name in tables:
            rows = session.run(f"SELECT * FROM {name} ORDER BY {TABLES[name]}")  # noqa: S608  # the names above
            found[name] = [tuple(bytes(each) if isinstance(each, memoryview) else each for each in row) for row in rows]
    return found

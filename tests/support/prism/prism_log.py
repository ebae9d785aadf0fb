"""A log of blocks that anchor objects, and dumps of PRISM's tables."""

from collections.abc import Iterable
from typing import Any

from interchain_events.database.database import Database
from interchain_events.events.log.store import Store, put
from interchain_events.events.rows import Block, ChainBlock, assemble
from interchain_events.prism.core.identifiers import sha256
from interchain_events.prism.make import atala_object

TABLES = {
    "atala_operations": "coalesce(atala_operation_seq_no, 0), signed_atala_operation_id",
    "atala_objects": "atala_object_id",
    "revoked_credentials": "credential_hash, seq_no",
    "processed_blocks": "block_number",
}


def anchoring(number: int, branch: int, parent: bytes, objects: Iterable[bytes]) -> Block:
    """Return a block of a branch with these objects and an event of another pallet."""
    events: list[tuple[str, dict[str, Any]]] = [("System.ExtrinsicSuccess", {"n": number})]
    events += [("Prism.ObjectAnchored", {"who": bytes(32), "object": raw}) for raw in objects]
    found = ChainBlock(None, number, sha256(f"{branch} {number}".encode()), number * 6_000, events)
    return assemble(found, (), parent=parent)


class Chain:
    """Writes a log, block by block."""

    def __init__(self, log: Store) -> None:
        self.log = log
        self.number = self.branch = 0
        self._hashes = {0: bytes(32)}

    def hash(self, number: int) -> bytes:
        """Return the hash of a block on the present branch."""
        return self._hashes[number]

    def build(self, *objects: bytes) -> int:
        """Append a block with these objects, and return its number."""
        block = anchoring(self.number + 1, self.branch, self._hashes[self.number], objects)
        put(self.log, [block])
        self.number = block.number
        self._hashes[self.number] = block.hash
        return self.number

    def anchor(self, *signed: Any) -> int:
        """Append a block with one object of these operations, and return its number."""
        return self.build(atala_object([each.raw for each in signed]))

    def back_to(self, number: int) -> None:
        """Remove all blocks after this one, and begin another branch."""
        self.log.rewind(number)
        self.number = number
        self.branch += 1


def dump(database: Database, tables: Iterable[str] = TABLES) -> dict[str, list[tuple[Any, ...]]]:
    """Return the tables as lists."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    with database.transaction() as session:
        for name in tables:
            rows = session.run(f"SELECT * FROM {name} ORDER BY {TABLES[name]}")  # noqa: S608  # the names above
            found[name] = [
                tuple(bytes(each) if isinstance(each, memoryview) else each for each in row)
                for row in rows
            ]
    return found

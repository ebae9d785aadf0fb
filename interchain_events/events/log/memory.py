"""A log in memory.

Tests compare the other logs with it, and it is fast enough for simulated stories.
"""

import secrets
import threading
from bisect import bisect_right
from collections.abc import Sequence

from interchain_events.events.errors import AnotherChain, NotTheNextBlock
from interchain_events.events.filters.algebra import ANY, Filter
from interchain_events.events.filters.predicate import compile_filter
from interchain_events.events.log.store import SPAN, Head, Page, Store, follows
from interchain_events.events.rows import Block, Row


class MemoryStore(Store):
    """A log whose content is lost with the object.

    `identity` is the log's id, by default a random one.
    """

    def __init__(self, network: str, identity: bytes | None = None) -> None:
        self.network = network
        self.id = secrets.token_bytes(16) if identity is None else identity
        self._head = Head()
        self._rows: list[Row] = []
        self._blocks: dict[int, tuple[bytes, int]] = {}
        """The hash of each leading block and the log's last `seq` after it, by number."""
        self._rewinds: list[tuple[int, int]] = []
        """The epoch that began with each rewind, and the last `seq` that remained."""
        self._genesis: bytes | None = None
        self._closed = False
        self._changed = threading.Condition()
        """The lock of all fields, notified when the log changes."""

    def head(self) -> Head:
        return self._head

    def hash_at(self, anchor: int) -> bytes | None:
        if anchor not in self._blocks:
            return None
        block_hash, _ = self._blocks[anchor]
        return block_hash

    def bind(self, genesis: bytes) -> None:
        if self._genesis not in {None, genesis}:
            raise AnotherChain(f"the source's genesis is 0x{genesis.hex()}, not that of the log")
        self._genesis = genesis

    def append(self, blocks: Sequence[Block]) -> int:
        with self._changed:
            head = self._head
            fresh: dict[int, tuple[bytes, int]] = {}
            rows: list[Row] = []
            for block in blocks:
                stored = fresh.get(block.number) or self._blocks.get(block.number)
                if follows(head, block, None if stored is None else stored[0]):
                    rows += block.rows(head.seq)
                    head = head.after(block)
                    fresh[block.number] = (block.hash, head.seq)
            self._rows += rows
            self._blocks |= fresh
            self._head = head
            self._changed.notify_all()
            return len(fresh)

    def rewind(self, anchor: int) -> Head:
        with self._changed:
            if anchor == self._head.anchor:
                return self._head
            if anchor not in self._blocks:
                raise NotTheNextBlock(
                    f"the log has no block {anchor} to go back to; it ends at {self._head.anchor}"
                )
            block_hash, common = self._blocks[anchor]
            del self._rows[common:]
            self._blocks = {
                number: block for number, block in self._blocks.items() if number <= anchor
            }
            self._head = Head(self._head.epoch + 1, common, anchor, hash=block_hash)
            self._rewinds.append((self._head.epoch, common))
            self._changed.notify_all()
            return self._head

    def common(self, epoch: int) -> int | None:
        return min((common for began, common in self._rewinds if began > epoch), default=None)

    def epochs(self) -> list[tuple[int, int]]:
        return list(self._rewinds)

    def read(self, after: int, limit: int, where: Filter = ANY, span: int = SPAN) -> Page:
        with self._changed:
            head = self._head
            until = min(after + span, head.seq)
            first = bisect_right(self._rows, after, key=lambda row: row.seq)
            candidates = self._rows[first:until]
        matches = compile_filter(where)
        rows: list[Row] = []
        for row in candidates:
            if matches(row, row.fields):
                rows.append(row)
                if len(rows) == limit:
                    return Page(rows, row.seq, head)
        return Page(rows, max(until, after), head)

    def wait(self, known: Head, timeout: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._closed or self._head != known, timeout)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

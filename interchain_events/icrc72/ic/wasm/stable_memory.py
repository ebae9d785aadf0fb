"""Stable memory, which survives upgrades, with a journal that can undo an execution."""

from typing import Final

from interchain_events.icrc72.ic.errors import Trap

PAGE: Final = 1 << 16


class StableMemory:
    """A memory of pages of 64 KiB. The bytes that a write replaces go into a journal."""

    def __init__(self, most_bytes: int, data: bytes = b"") -> None:
        self.most_pages = most_bytes // PAGE
        self.data = bytearray(data)
        self._journal: list[tuple[int, bytes]] = []

    @property
    def pages(self) -> int:
        """Return the number of pages."""
        return len(self.data) // PAGE

    def grow(self, pages: int) -> int:
        """Add pages. Return how many there were before, or -1 if there would be too many."""
        before = self.pages
        if before + pages > self.most_pages:
            return -1
        self.data.extend(bytes(pages * PAGE))
        return before

    def read(self, at: int, size: int) -> bytes:
        """Return bytes. Raises `Trap` outside of the memory."""
        self._check(at, size)
        return bytes(self.data[at : at + size])

    def write(self, at: int, data: bytes) -> None:
        """Write bytes. Raises `Trap` outside of the memory."""
        self._check(at, len(data))
        self._journal.append((at, bytes(self.data[at : at + len(data)])))
        self.data[at : at + len(data)] = data

    def commit(self) -> None:
        """Clear the journal: writes so far cannot be undone any more."""
        self._journal.clear()

    def mark(self) -> tuple[int, int]:
        """Return the present state for `undo`: the size, and the length of the journal."""
        return len(self.data), len(self._journal)

    def undo(self, mark: tuple[int, int]) -> None:
        """Undo all writes and growth since a mark."""
        size, length = mark
        while len(self._journal) > length:
            at, before = self._journal.pop()
            self.data[at : at + len(before)] = before
        del self.data[size:]

    def _check(self, at: int, size: int) -> None:
        if at + size > len(self.data):
            raise Trap(f"{size} bytes at {at} are outside the stable memory")

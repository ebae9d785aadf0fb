"""Stable memory: bytes that outlive an upgrade, with a journal that undoes a trap."""

from typing import Final

from pubsub_emulator.icrc72.ic.errors import Trap

PAGE: Final = 1 << 16


class StableMemory:
    """A memory of pages of 64 KiB. What is written is kept in a journal until the execution is over."""

    def __init__(self, most_bytes: int, data: bytes = b"") -> None:
        self.most_pages = most_bytes // PAGE
        self.data = bytearray(data)
        self._journal: list[tuple[int, bytes]] = []

    @property
    def pages(self) -> int:
        """The number of pages."""
        return len(self.data) // PAGE

    def grow(self, pages: int) -> int:
        """Add pages; returns how many there were, or -1 if there would be too many."""
        before = self.pages
        if before + pages > self.most_pages:
            return -1
        self.data.extend(bytes(pages * PAGE))
        return before

    def read(self, at: int, size: int) -> bytes:
        """Bytes. Raises `Trap` where there are none."""
        self._check(at, size)
        return bytes(self.data[at : at + size])

    def write(self, at: int, data: bytes) -> None:
        """Write bytes. Raises `Trap` where there are none."""
        self._check(at, len(data))
        self._journal.append((at, bytes(self.data[at : at + len(data)])))
        self.data[at : at + len(data)] = data

    def commit(self) -> None:
        """Forget how to undo what was written."""
        self._journal.clear()

    def mark(self) -> tuple[int, int]:
        """The mark for `undo`: the size, and the length of the journal."""
        return len(self.data), len(self._journal)

    def undo(self, mark: tuple[int, int]) -> None:
        """Undo what was done since `mark`."""
        size, length = mark
        while len(self._journal) > length:
            at, before = self._journal.pop()
            self.data[at : at + len(before)] = before
        del self.data[size:]

    def _check(self, at: int, size: int) -> None:
        if at + size > len(self.data):
            raise Trap(f"{size} bytes at {at} are outside the stable memory")

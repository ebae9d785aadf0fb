"""Stable memory, which survives upgrades, with a journal that can undo an execution."""

from typing import Final

from interchain_events.icrc72.ic.errors import Trap

PAGE: Final = 1 << 16
_BLOCK: Final = 1 << 12
_ZEROS: Final = bytes(_BLOCK)


class StableMemory:
    """A memory of pages of 64 KiB.

    It is kept in blocks of 4 KiB that never change: a write replaces them. Blocks of zeros are not
    kept. The journal has the blocks as they were before the first write to them, so that it takes
    at most as much as the memory, however often an execution writes.
    """

    def __init__(self, most_bytes: int, former: "StableMemory | None" = None) -> None:
        """Begin with an empty memory, or with the content of another one."""
        self.most_pages = most_bytes // PAGE
        self.size = 0
        """The size in bytes."""
        self._blocks: dict[int, bytes] = {}
        if former is not None:
            self.size = former.size
            self._blocks = former.blocks()
        self._journal: dict[int, bytes] = {}
        self._size_before = self.size

    @property
    def pages(self) -> int:
        """Return the number of pages."""
        return self.size // PAGE

    @property
    def data(self) -> bytes:
        """Return the whole content."""
        return self.read(0, self.size)

    def blocks(self) -> dict[int, bytes]:
        """Return a copy of the blocks by their number."""
        return dict(self._blocks)

    def grow(self, pages: int) -> int:
        """Add pages. Return how many there were before, or -1 if there would be too many."""
        before = self.pages
        if before + pages > self.most_pages:
            return -1
        self.size += pages * PAGE
        return before

    def read(self, at: int, size: int) -> bytes:
        """Return `size` bytes from the offset `at`. Raises `Trap` outside of the memory."""
        self.check(at, size)
        if not size:
            return b""
        first = at // _BLOCK
        last = (at + size - 1) // _BLOCK
        blocks = b"".join(self._blocks.get(number, _ZEROS) for number in range(first, last + 1))
        if len(blocks) == size:
            return blocks
        begin = at - first * _BLOCK
        return blocks[begin : begin + size]

    def write(self, at: int, data: bytes) -> None:
        """Write bytes at the offset `at`. Raises `Trap` outside of the memory."""
        self.check(at, len(data))
        done = 0
        while done < len(data):
            number, begin = divmod(at + done, _BLOCK)
            part = data[done : done + _BLOCK - begin]
            before = self._blocks.get(number, _ZEROS)
            self._journal.setdefault(number, before)
            self._put(number, before[:begin] + part + before[begin + len(part) :])
            done += len(part)

    def commit(self) -> None:
        """Clear the journal, so that writes and growth until now cannot be undone any more."""
        self._journal.clear()
        self._size_before = self.size

    def undo(self) -> None:
        """Undo all writes and growth since the last `commit`."""
        for number, block in self._journal.items():
            self._put(number, block)
        self._journal.clear()
        self.size = self._size_before

    def check(self, at: int, size: int) -> None:
        """Raise `Trap` if `size` bytes from the offset `at` are not all inside the memory."""
        if at + size > self.size:
            raise Trap(f"{size} bytes at {at} are outside the stable memory")

    def _put(self, number: int, block: bytes) -> None:
        if block == _ZEROS:
            self._blocks.pop(number, None)
        else:
            self._blocks[number] = block

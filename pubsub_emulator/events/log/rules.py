"""Which block may be appended, and how far a rewind goes: the pure rules of EV-2 and EV-3, for every store."""

from dataclasses import dataclass

from pubsub_emulator.events.errors import CursorAbandoned, NotTheNextBlock
from pubsub_emulator.events.rows import Block


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a log. `anchor` and `hash` are those of its last leading block, `None` while it has none."""

    epoch: int = 0
    """How often something was taken back."""
    seq: int = 0
    """The last row's, 0 while there is none."""
    anchor: int | None = None
    hash: bytes | None = None

    def after(self, block: Block) -> "Head":
        """The head once `block` is appended."""
        return Head(self.epoch, self.seq + len(block.entries), block.number, block.hash)


def follows(head: Head, block: Block, kept: bytes | None) -> bool:
    """Whether `block` is to be appended; `False` when the log has it already.

    `kept` is the hash that the log has at `block.number`. An empty log starts with any block. Raises `NotTheNextBlock`.
    """
    if head.anchor is None or head.hash is None:
        return True
    if kept == block.hash:
        return False
    is_next = block.number == head.anchor + 1 or (block.after_gap and block.number > head.anchor)
    if is_next and block.parent == head.hash:
        return True
    raise NotTheNextBlock(
        f"block {block.number} (0x{block.hash.hex()}, parent 0x{block.parent.hex()}) does not follow block "
        f"{head.anchor} (0x{head.hash.hex()}), the last one of the log"
    )


def check_cursor(head: Head, epoch: int, seq: int, common: int | None) -> bool:
    """Whether a cursor (`epoch`, `seq`) belongs to this log; `False` when it is beyond what the log ever was.

    `common` is the least `seq` that rewinds after `epoch` left, `None` if there were none. Raises `CursorAbandoned`.
    """
    if epoch > head.epoch:
        return False
    if common is not None and seq > common:
        raise CursorAbandoned(common, head.epoch)
    return seq <= head.seq

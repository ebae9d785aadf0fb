"""When parachain blocks may be built, and which segment of a history a relay block belongs to."""

from dataclasses import dataclass
from typing import Final

from pubsub_emulator.primitives.types import Slot

ATTEMPTS: Final = 2
"""Candidates that may be tried for one block: after a refused one, the next collator's."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """`slots` parachain slots a relay block, and `segment_length` relay blocks between two checkpoints of all chains.

    There are slots enough for every collator to be first and for every block to be tried again.
    """

    slots: int
    segment_length: int

    def newest_slot(self, number: int) -> Slot:
        """The newest slot that a candidate judged in relay block `number` may claim."""
        return Slot((number + 1) * self.slots - 1)

    def first_slot(self, number: int, collators: int) -> Slot:
        """The slot in which relay block `number` finds collator `number mod collators` at its turn."""
        start = number * self.slots
        return Slot(start + (number - start) % collators)

    def segment(self, number: int) -> int:
        """The segment of relay block `number`; genesis and the first block are of the first one."""
        return (number - 1) // self.segment_length if number else 0

    def begins_segment(self, number: int) -> bool:
        """Whether relay block `number` is the first of a segment after another one."""
        return number > 1 and number % self.segment_length == 1 % self.segment_length

"""The slots of parachain blocks, and the segments of a history."""

from dataclasses import dataclass
from typing import Final

from pubsub_emulator.primitives.types import Slot

ATTEMPTS: Final = 2
"""How many candidates may be tried for one block: after a refused one, the next collator's."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Parachain slots per relay block, enough for all collators and tries, and relay blocks between checkpoints."""

    slots: int
    segment_length: int

    def newest_slot(self, number: int) -> Slot:
        """The newest slot that a candidate judged in relay block `number` may claim."""
        return Slot((number + 1) * self.slots - 1)

    def first_slot(self, number: int, collators: int) -> Slot:
        """The first slot of candidates for relay block `number`, which is collator `number mod collators`'s."""
        start = number * self.slots
        return Slot(start + (number - start) % collators)

    def segment(self, number: int) -> int:
        """The segment of relay block `number`; genesis and the first block are in the first one."""
        return (number - 1) // self.segment_length if number else 0

    def begins_segment(self, number: int) -> bool:
        """Whether relay block `number` is the first of a segment other than the first."""
        return number > 1 and number % self.segment_length == 1 % self.segment_length

"""When messages arrive and which are refused: the schedules that IC-6 permits."""

from dataclasses import dataclass

from pubsub_emulator.collator.draws import draw


@dataclass(frozen=True, slots=True)
class MessageLimits:
    """The limits of IC-5 and IC-7."""

    message_bytes: int = 2_097_152
    under_way: int = 500
    messages_a_round: int = 100
    timeout: int = 10
    own_subnet: int = 1
    across: int = 2


@dataclass(frozen=True, slots=True)
class Schedule:
    """A fair schedule, drawn by hashes: late by up to `delay` rounds, `refuse` percent of requests refused."""

    seed: bytes
    delay: int = 0
    refuse: int = 0

    def late(self, number: int) -> int:
        """The rounds by which message `number` arrives later than usual."""
        return draw(self.seed, b"late", number) % (self.delay + 1) if self.delay else 0

    def refuses(self, number: int) -> bool:
        """True when request `number` is refused."""
        return self.refuse > 0 and draw(self.seed, b"refuse", number) % 100 < self.refuse

    def place(self, arrival: int, label: bytes) -> int:
        """The place in its round of what arrives together under one label."""
        return draw(self.seed, b"place" + label, arrival)

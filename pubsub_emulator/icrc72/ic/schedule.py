"""When messages arrive and which are refused: the schedules that IC-6 permits."""

from dataclasses import dataclass
from hashlib import blake2b


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of IC-5 and IC-7."""

    message_bytes: int = 2_097_152
    under_way: int = 500
    messages_a_round: int = 100
    timeout: int = 10
    own_subnet: int = 1
    across: int = 2


@dataclass(frozen=True, slots=True)
class Schedule:
    """A fair schedule that is drawn: each draw is a hash of the seed and of what it is for.

    `delay` is how many rounds a message may take longer, `refuse` how many percent of requests are refused.
    """

    seed: bytes
    delay: int = 0
    refuse: int = 0

    def late(self, number: int) -> int:
        """How many rounds later than usual message `number` arrives."""
        return self._draw(b"late", number) % (self.delay + 1) if self.delay else 0

    def refuses(self, number: int) -> bool:
        """True when request `number` is refused."""
        return self.refuse > 0 and self._draw(b"refuse", number) % 100 < self.refuse

    def place(self, arrival: int, label: bytes) -> int:
        """Where in its round what arrives together under one label is executed."""
        return self._draw(b"place" + label, arrival)

    def _draw(self, label: bytes, number: int) -> int:
        drawn = blake2b(label + number.to_bytes(8, "big"), digest_size=4, key=self.seed[:64])
        return int.from_bytes(drawn.digest(), "big")


__all__ = ["Limits", "Schedule"]

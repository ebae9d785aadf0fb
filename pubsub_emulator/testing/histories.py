"""Actions on a network as data: a history is a list of actions, played in order.

Actions are frozen and print as the code that makes them, so a shrunk counterexample can be pasted into a test.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pubsub_emulator.emulator.network import Network, Step
from pubsub_emulator.primitives.types import PubsubKey


@dataclass(frozen=True, slots=True)
class Publish:
    """A parachain publishes a key."""

    para: int
    key: PubsubKey
    value: bytes
    ttl: int = 0

    def apply(self, network: Network) -> list[Step]:
        """Do it; takes no time."""
        network.publish(self.para, self.key, self.value, self.ttl)
        return []


@dataclass(frozen=True, slots=True)
class Delete:
    """Keys of a publisher are deleted, by root or by its manager."""

    para: int
    keys: tuple[PubsubKey, ...]

    def apply(self, network: Network) -> list[Step]:
        """Do it; takes no time."""
        network.delete(self.para, self.keys)
        return []


@dataclass(frozen=True, slots=True)
class SendDownward:
    """The relay chain sends a parachain a message."""

    para: int
    message: bytes

    def apply(self, network: Network) -> list[Step]:
        """Do it; takes no time."""
        network.send_downward(self.para, self.message)
        return []


@dataclass(frozen=True, slots=True)
class Go:
    """Some relay blocks pass."""

    blocks: int = 1

    def apply(self, network: Network) -> list[Step]:
        """The steps."""
        return network.step(self.blocks)


Action = Publish | Delete | SendDownward | Go
History = tuple[Action, ...]


def play(network: Network, history: Iterable[Action]) -> list[Step]:
    """Apply the actions in order and return the steps of all relay blocks."""
    return [step for action in history for step in action.apply(network)]

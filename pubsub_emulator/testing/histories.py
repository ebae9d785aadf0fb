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


@dataclass(frozen=True, slots=True)
class Delete:
    """Keys of a publisher are deleted, by root or by its manager."""

    para: int
    keys: tuple[PubsubKey, ...]


@dataclass(frozen=True, slots=True)
class SendDownward:
    """The relay chain sends a parachain a message."""

    para: int
    message: bytes


@dataclass(frozen=True, slots=True)
class Go:
    """Some relay blocks pass."""

    blocks: int = 1


Action = Publish | Delete | SendDownward | Go
History = tuple[Action, ...]


def play(network: Network, history: Iterable[Action]) -> list[Step]:
    """Do the actions in order and return the steps of all relay blocks; `Go` alone takes time."""
    steps: list[Step] = []
    for action in history:
        match action:
            case Publish(para, key, value, ttl):
                network.publish(para, key, value, ttl)
            case Delete(para, keys):
                network.delete(para, keys)
            case SendDownward(para, message):
                network.send_downward(para, message)
            case Go(blocks):
                steps += network.step(blocks)
    return steps

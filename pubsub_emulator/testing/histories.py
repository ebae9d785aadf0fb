"""Actions on a network as data. A history is a list of actions, which are applied in order.

Actions are immutable, and their `repr` is the code that creates them. A shrunk counterexample can
therefore be pasted into a test.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pubsub_emulator.emulator.network import Network, Step
from pubsub_emulator.primitives.types import PubsubKey


@dataclass(frozen=True, slots=True)
class Publish:
    """Let a parachain publish a key."""

    para: int
    key: PubsubKey
    value: bytes
    ttl: int = 0


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete keys of a publisher, by root or by its manager."""

    para: int
    keys: tuple[PubsubKey, ...]


@dataclass(frozen=True, slots=True)
class SendDownward:
    """Send a message from the relay chain to a parachain."""

    para: int
    message: bytes


@dataclass(frozen=True, slots=True)
class Go:
    """Build relay blocks."""

    blocks: int = 1


Action = Publish | Delete | SendDownward | Go
History = tuple[Action, ...]


def play(network: Network, history: Iterable[Action]) -> list[Step]:
    """Apply the actions in order and return the steps of all relay blocks.

    Only `Go` builds blocks.
    """
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
